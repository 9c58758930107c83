"""A rich console that records what is printed on it."""

import io
import re
from typing import Any

from rich.console import Console

_ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class RecordingConsole(Console):
    """A stream that a program takes for its terminal, or for a pipe."""

    def __init__(
        self,
        *,
        encoding: str = "utf-8",
        terminal: bool = True,
        term: str = "xterm-256color",
        **settings: Any,
    ) -> None:
        self._bytes = io.BytesIO()
        self._encoding_of_file = encoding
        file = io.TextIOWrapper(self._bytes, encoding=encoding, newline="", write_through=True)
        super().__init__(file=file, force_terminal=terminal, _environ={"TERM": term}, **settings)

    @property
    def written(self) -> str:
        """Everything that was printed."""
        return self._bytes.getvalue().decode(self._encoding_of_file)

    @property
    def text(self) -> str:
        """The same without colours and cursor movements."""
        return _ANSI.sub("", self.written)
