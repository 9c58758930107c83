"""What was typed before a question is shown is not an answer to it."""

import os
import termios


def drop_typed(file: int) -> None:
    """Drop what was typed and not read yet, right before a question is shown.

    Only a terminal is emptied. A pipe is a script that was written before any question, so it keeps
    its order.

    Args:
        file: The file descriptor of the input.
    """
    if os.isatty(file):
        termios.tcflush(file, termios.TCIFLUSH)
