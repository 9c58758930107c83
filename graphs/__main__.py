"""`python -m graphs`: an agent works through a checklist; `python -m graphs chat`: a chat."""

import signal
import sys


def _main(argv: list[str]) -> int:
    try:
        if argv[:1] == ["chat"]:
            from graphs.terminal import chat  # noqa: PLC0415  its screen is loaded only where there is one

            return chat.main(argv[1:])
        from graphs.terminal import checklist  # noqa: PLC0415

        return checklist.main(argv)
    except KeyboardInterrupt:  # while it is being imported
        return 130


# SIGTERM is handled like Ctrl-C, so that nothing the agent started keeps running.
signal.signal(signal.SIGTERM, signal.default_int_handler)
sys.exit(_main(sys.argv[1:]))
