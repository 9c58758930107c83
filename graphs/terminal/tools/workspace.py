"""The directory in which a coding agent works: its files and its shell."""

import os
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from deepagents.backends.protocol import (
    DEFAULT_GREP_TIMEOUT,
    EditResult,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    WriteResult,
)
from deepagents.backends.utils import compile_grep_include_glob
from typing_extensions import override

from graphs.terminal.tools.shell import LocalShell

EXCLUDED = frozenset({".git", "node_modules"})
MAX_FOUND = 1_000
SECONDS_TO_FIND = 5

# RuntimeError: a circle of links, before Python 3.13.
_ERRORS = (OSError, RuntimeError, ValueError)


class Workspace(LocalShell):
    """The file operations and shell of deepagents, with the same paths in both.

    Every operation accepts the same paths: relative to the directory, `/path` from the directory,
    or absolute on the machine. Results name files relative to the directory, so file tools and
    commands can both use them.

    File operations stay inside the directory: a link is followed only to a place inside. Commands
    can leave it. Errors are results for the model, not exceptions. Searches skip `.git` and
    `node_modules`, unless they begin inside, and return at most 1,000 files.
    """

    @override
    def _resolve_path(self, key: str) -> Path:
        """The real path of a file or folder, which need not exist; `OSError` if it is outside."""
        given = PurePosixPath(key)
        if ".." in given.parts or key.startswith("~"):
            raise PermissionError("path traversal not allowed")
        place = Path(self.cwd, self._name(key)).resolve()
        if not place.is_relative_to(self.cwd):
            raise PermissionError(f"it is outside the directory {self.cwd}")
        if place.exists() and not (place.is_file() or place.is_dir()):
            raise PermissionError("it is not a regular file")  # opening it might block
        return place

    def _name(self, path: str) -> str:
        """A path relative to the directory."""
        given = PurePosixPath(path)
        base = self.cwd if given.is_relative_to(self.cwd) else PurePosixPath("/")
        return str(given.relative_to(base) if given.is_absolute() else given)

    @override
    def _to_virtual_path(self, path: Path) -> str:
        return _text(path.relative_to(self.cwd).as_posix())

    @override
    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file and the directories it needs."""
        result = super().write(file_path, content)
        return result if result.error else WriteResult(path=self._name(file_path))

    @override
    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        """Replace a text that occurs once; CRLF at the end of the first line stays at all ends."""
        try:
            place = self._resolve_path(file_path)
            has_windows_endings = place.is_file() and _has_windows_endings(place)
            result = super().edit(file_path, old_string, new_string, replace_all)
            if result.error:
                return result
            if has_windows_endings:
                place.write_bytes(place.read_bytes().replace(b"\n", b"\r\n"))
        except _ERRORS as error:
            return EditResult(f"Error editing file '{file_path}': {error}")
        return EditResult(path=self._name(file_path), occurrences=result.occurrences)

    @override
    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by a pattern."""
        found = list[FileInfo]()
        try:
            for file in self._files(path, pattern, SECONDS_TO_FIND):
                if len(found) == MAX_FOUND:
                    return GlobResult(matches=found, truncated=True, truncation_reason="budget")
                found.append(FileInfo(path=self._to_virtual_path(file)))
        except TimeoutError:
            return GlobResult(matches=found, truncated=True, truncation_reason="budget")
        except _ERRORS as error:
            return GlobResult(error=f"Error searching '{path or '/'}': {error}")
        return GlobResult(matches=found)

    @override
    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        context_lines: int = 0,
    ) -> GrepResult:
        """Find lines by a literal text, without context; skip what is very long or no text."""
        found = list[GrepMatch]()
        try:
            for file in self._files(path, glob, DEFAULT_GREP_TIMEOUT):
                for number, line in enumerate(self._lines(file), 1):
                    if pattern not in line:
                        continue
                    if len(found) == max_count:
                        return GrepResult(matches=found, truncated=True)
                    place = self._to_virtual_path(file)
                    found.append(GrepMatch(path=place, line=number, text=line))
        except TimeoutError:
            return GrepResult(matches=found, truncated=True)
        except _ERRORS as error:
            return GrepResult(error=f"Error searching '{path or '/'}': {error}")
        return GrepResult(matches=found)

    def _files(self, path: str | None, pattern: str | None, seconds: float) -> Iterator[Path]:
        """Yield the files whose paths match; raises `TimeoutError` if this takes too long."""
        base, deadline = self._resolve_path(path or "/"), time.monotonic() + seconds
        is_wanted = compile_grep_include_glob(pattern) if pattern else None
        if base.is_file():
            yield base
        for folder, below, names in os.walk(base):
            below[:] = sorted(set(below) - EXCLUDED)
            for name in sorted(names):
                if time.monotonic() > deadline:
                    raise TimeoutError
                file = Path(folder, name)
                matches = is_wanted is None or is_wanted(file.relative_to(base).as_posix())
                if matches and file.is_file() and file.resolve().is_relative_to(self.cwd):
                    yield file

    def _lines(self, file: Path) -> list[str]:
        """The lines of a file; none if it is very long, no text, or cannot be read."""
        try:
            is_short = file.stat().st_size <= self.max_file_size_bytes
            return file.read_text(encoding="utf-8").split("\n") if is_short else []
        except (OSError, UnicodeDecodeError):
            return []


def _has_windows_endings(file: Path) -> bool:
    with file.open("rb") as content:
        return content.readline().endswith(b"\r\n")


def _text(name: str) -> str:
    """A name as text that can be sent to a model; it may have bytes that are none."""
    return os.fsencode(name).decode(errors="replace")
