"""The output of a command: its beginning and its end, within a limit, and all of it in a file."""

import atexit
import codecs
import os
import re
import shutil
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

_STDERR = "[stderr] "
_MAX_NEW = 2_000
# The bytes of a UTF-8 character of several bytes, which a cut may break.
_CHARACTER_AT_END = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")
_REST_OF_CHARACTER = re.compile(rb"\A[\x80-\xbf]{1,3}")


@dataclass(frozen=True)
class Excerpt:
    """The first and the last bytes of a stream, and how many are missing between them."""

    first: bytes
    last: bytes = b""
    missing: int = 0

    def cut(self, limit: int) -> "Excerpt":
        """Keep at most `limit` bytes, half of them from each end."""
        whole = self.first + self.last
        if len(whole) <= limit:
            return self
        begin, end = limit // 2, len(whole) - (limit - limit // 2)
        return _excerpt(whole[:begin], whole[end:], len(whole) + self.missing)

    def fitting(self, limit: int, mark: str = "") -> "Excerpt":
        """Keep as much as fits into `limit` characters, with a mark before each line."""
        size, fitting = limit, self.cut(limit)
        while (length := len(fitting.text(mark))) > limit and size:  # the marks need space too
            size = size * limit // length
            fitting = self.cut(size)
        return fitting

    def text(self, mark: str = "") -> str:
        """Return the text with a mark before each line; a line replaces the missing part."""
        first, last = (_lines(part, mark) for part in (self.first, self.last))
        note = f"[{self.missing:,} bytes are missing here]" if self.missing else ""
        return "\n".join(filter(None, [first, note, last]))


class Output:
    """One stream of a command; bytes beyond the limit are dropped as they arrive.

    Args:
        max_bytes: How many bytes are kept, half of them from each end.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_first = max_bytes // 2
        self._max_last = max_bytes - max_bytes // 2
        self._first = bytearray()
        self._last = bytearray()
        self._size = 0
        self._new = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lock = threading.Lock()

    def read(self, stream: IO[bytes]) -> bytes:
        """Read what is available; nothing at the end of the stream."""
        chunk = os.read(stream.fileno(), 1 << 16)
        with self._lock:
            self._size += len(chunk)
            self._new = (self._new + chunk)[-_MAX_NEW:]
            room = self._max_first - len(self._first)
            self._first += chunk[:room]
            self._last += chunk[room:]
            del self._last[: -self._max_last]
        return chunk

    def take_new(self) -> str:
        """The output since the last call; if there is much, only its end."""
        with self._lock:
            new, self._new = bytes(self._new), bytearray()
        return self._decoder.decode(new)

    @property
    def excerpt(self) -> Excerpt:
        """The output kept so far."""
        with self._lock:
            first, last, size = bytes(self._first), bytes(self._last), self._size
        if len(first) + len(last) == size:
            return Excerpt(first + last)
        return _excerpt(first, last, size)


@cache
def saved_outputs() -> Path:
    """The folder of the long outputs, which only the user can read; the program removes it."""
    folder = tempfile.mkdtemp(prefix="outputs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder).resolve()


class WholeOutput:
    """All output of a command, both streams as they came; if it is long, in a file.

    Args:
        max_bytes: How many bytes need no file.
        max_saved: How many bytes the file may have.
    """

    def __init__(self, max_bytes: int, max_saved: int = 100_000_000) -> None:
        self._max_bytes = max_bytes
        self._room = max_saved
        self._unsaved = bytearray()
        self._path: Path | None = None
        self._lock = threading.Lock()

    def add(self, chunk: bytes) -> None:
        """Add what was read."""
        with self._lock:
            self._unsaved += chunk[: self._room]
            self._room -= len(chunk[: self._room])
            if len(self._unsaved) > self._max_bytes:
                self._save()

    def note(self) -> str:
        """Save it, and say where it is; empty if it cannot be saved."""
        with self._lock:
            self._save()
            which = "whole output is" if self._room else "beginning of the output is"
            return f"[the {which} in {self._path} until the program ends]" if self._path else ""

    def _save(self) -> None:
        if not self._unsaved:
            return
        try:
            if not self._path:
                handle, path = tempfile.mkstemp(".txt", "output-", saved_outputs())
                os.close(handle)
                self._path = Path(path)
            with self._path.open("ab") as file:
                file.write(self._unsaved)
        except OSError:  # for example, the disk is full; it is not tried again
            self._path, self._room = None, 0
        self._unsaved.clear()


def both(out: Excerpt, err: Excerpt, limit: int) -> tuple[str, bool]:
    """Show the two streams of a command, with the lines of the second one marked.

    Each takes at most half of the limit, unless the other one needs less.

    Returns:
        A text of at most `limit` characters, and whether a part is missing.
    """
    room = limit - 1  # for the line break between them
    needed = len(err.fitting(room, _STDERR).text(_STDERR))
    out = out.fitting(max(room // 2, room - needed))
    err = err.fitting(room - len(out.text()), _STDERR)
    text = "\n".join(filter(None, [out.text(), err.text(_STDERR)]))
    return text, bool(out.missing or err.missing)


def _excerpt(first: bytes, last: bytes, size: int) -> Excerpt:
    """The two ends of a stream of `size` bytes, without characters that the cut may have broken."""
    first, last = _CHARACTER_AT_END.sub(b"", first), _REST_OF_CHARACTER.sub(b"", last)
    return Excerpt(first, last, size - len(first) - len(last))


def _lines(part: bytes, mark: str) -> str:
    text = part.decode(errors="replace").rstrip("\n")
    return "\n".join(f"{mark}{line}" for line in text.split("\n")) if text else ""
