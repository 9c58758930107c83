"""The output of a command: its beginning and its end, within a limit."""

import codecs
import threading

_MAX_NEW = 2_000


class Output:
    """The output of a command; bytes beyond the limit are dropped as they arrive.

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

    def add(self, chunk: bytes) -> None:
        """Add what was read."""
        with self._lock:
            self._size += len(chunk)
            self._new = (self._new + chunk)[-_MAX_NEW:]
            room = self._max_first - len(self._first)
            self._first += chunk[:room]
            self._last += chunk[room:]
            del self._last[: -self._max_last]

    def take_new(self) -> str:
        """The output since the last call; if there is much, only its end."""
        with self._lock:
            new, self._new = bytes(self._new), bytearray()
        return self._decoder.decode(new)

    @property
    def missing(self) -> int:
        """How many bytes were dropped."""
        return self._size - len(self._first) - len(self._last)

    def text(self) -> str:
        """The output kept so far; a line says how much is missing between its two ends."""
        with self._lock:
            first, last, missing = bytes(self._first), bytes(self._last), self.missing
        if not missing:
            return (first + last).decode(errors="replace").rstrip("\n")
        ends = [part.decode(errors="replace").strip("\n") for part in (first, last)]
        return f"\n[{missing:,} bytes are missing here]\n".join(ends)
