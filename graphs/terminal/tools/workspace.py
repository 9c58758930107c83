"""The directory in which a coding agent works: its files and its shell."""

import os
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from deepagents.backends import FilesystemBackend
from deepagents.backends.protocol import (
    DEFAULT_GREP_TIMEOUT,
    FILE_NOT_FOUND,
    INVALID_PATH,
    DeleteResult,
    EditResult,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import compile_grep_include_glob, validate_path
from typing_extensions import override

from graphs.terminal.tools.directory import Directory, Found
from graphs.terminal.tools.matches import matches_in
from graphs.terminal.tools.output import saved_outputs
from graphs.terminal.tools.shell import LocalShell

EXCLUDED = frozenset({".git", "node_modules"})
MAX_FOUND = 1_000
SECONDS_TO_FIND = 5

# RuntimeError: a circle of links, before Python 3.13.
_ERRORS = (OSError, RuntimeError, ValueError)


class _Files(FilesystemBackend):
    """deepagents' files, where dots in names such as `[...slug]` do not count as `..`."""

    @override
    def _resolve_path(self, key: str) -> Path:
        if ".." not in key or ".." in PurePosixPath(key).parts:
            return super()._resolve_path(key)
        full = (self.cwd / key.lstrip("/")).resolve()
        if not full.is_relative_to(self.cwd):
            raise ValueError(f"Path:{full} outside root directory: {self.cwd}")
        return full


class Workspace(_Files, LocalShell):
    """The file operations and shell of deepagents, with the same paths in both.

    Every operation accepts the same paths: relative to the directory, `/path` from the directory,
    or absolute on the machine. Results name files relative to the directory, so file tools and
    commands can both use them.

    File operations stay inside the directory, even if links change while they run (`Directory`);
    commands do not. A link is followed only if it leads to a place inside. Only regular files are
    read and written. A hard link counts as a file inside, wherever its other names are. They change
    nothing in `.git`, because git runs programs that are named there. One change ends before the
    next begins.

    Errors are results for the model, not exceptions. Searches skip `.git` and `node_modules`,
    unless they begin inside, and return at most 1,000 files.

    Args:
        workdir: The directory.
        timeout: Seconds after which a command is ended.
        env: Variables for commands, added to the few that they always get.
    """

    def __init__(
        self, workdir: Path, *, timeout: int = 120, env: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(workdir, timeout=timeout, env=env, virtual_mode=True)
        self._directory = Directory(self.cwd)
        self._changes = threading.Lock()  # the calls of one answer run in parallel

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read a window of lines, also of a saved output, which is outside."""
        try:
            if Path(file_path).parent == saved_outputs():
                outputs = FilesystemBackend(saved_outputs(), virtual_mode=True)
                return outputs.read(f"/{Path(file_path).name}", offset, limit)
            with self._copied(file_path) as (copies, _):
                return copies.read(self._inside(file_path), offset, limit)
        except _ERRORS as error:
            return ReadResult(error=f"Error reading file '{file_path}': {_reason(error)}")

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file and the directories it needs."""
        try:
            with self._changes:
                self._directory.write(self._place_to_change(file_path), content.encode())
        except _ERRORS as error:
            return WriteResult(error=f"Error writing file '{file_path}': {_reason(error)}")
        return WriteResult(path=self._name(file_path))

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # noqa: FBT001, FBT002  the base class has it
    ) -> EditResult:
        """Replace a text that occurs once; the file keeps its line endings."""
        try:
            with self._changes:
                result, content = self._edited(file_path, old_string, new_string, replace_all)
                if not result.error:
                    self._directory.write(self._place_to_change(file_path), content)
        except _ERRORS as error:
            return EditResult(f"Error editing file '{file_path}': {_reason(error)}")
        return EditResult(result.error, self._name(file_path), result.occurrences)

    def check_edit(self, path: str, old: str, new: str, *, replace_all: bool = False) -> str | None:
        """The error that an edit would cause now, if any; changes nothing."""
        try:
            self._place_to_change(path)
            return self._edited(path, old, new, replace_all)[0].error
        except _ERRORS as error:
            return f"Error editing file '{path}': {_reason(error)}"

    def check_write(self, path: str) -> str | None:
        """The error that a write would cause now, if any; changes nothing."""
        try:
            place = self._place_to_change(path)
            with suppress(FileNotFoundError):
                self._directory.read(place)
        except _ERRORS as error:
            return f"Error writing file '{path}': {_reason(error)}"
        return None

    def delete(self, file_path: str) -> DeleteResult:
        """Delete a file, or a directory with its content."""
        try:
            with self._changes:
                self._directory.remove(self._place_to_change(file_path))
        except _ERRORS as error:
            return DeleteResult(f"Error deleting '{file_path}': {_reason(error)}")
        return DeleteResult(path=self._name(file_path))

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write files of any content."""
        return [self._upload(path, content) for path, content in files]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """Read files of any content."""
        return [self._download(path) for path in paths]

    def ls(self, path: str) -> LsResult:
        """List a directory: sorted without regard to case, `/` after directories."""
        try:
            place = self._place(path)
            names = sorted(self._directory.names(place), key=lambda name: (name.casefold(), name))
        except FileNotFoundError:
            return LsResult(f"Path '{path}': path_not_found")
        except NotADirectoryError:
            return LsResult(f"Path '{path}': not_a_directory")
        except _ERRORS as error:
            return LsResult(f"Path '{path}': {_reason(error)}")
        return LsResult(entries=[self._entry(place / name) for name in names])

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by a pattern."""
        found = list[FileInfo]()
        try:
            for file in self._files(path, pattern, SECONDS_TO_FIND):
                if not self._is_file(file):
                    continue
                if len(found) == MAX_FOUND:
                    return GlobResult(matches=found, truncated=True, truncation_reason="budget")
                found.append(FileInfo(path=str(file.path)))
        except TimeoutError:
            return GlobResult(matches=found, truncated=True, truncation_reason="budget")
        except _ERRORS as error:
            return GlobResult(error=f"Error searching '{path or '/'}': {_reason(error)}")
        return GlobResult(matches=found)

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        context_lines: int = 0,
    ) -> GrepResult:
        """Find lines by a literal text; links, very long files and binary files are skipped."""
        found, unread = list[GrepMatch](), list[str]()
        try:
            for file in self._files(path, glob, DEFAULT_GREP_TIMEOUT):
                try:
                    found += matches_in(file, pattern, context_lines, self.max_file_size_bytes)
                except OSError:
                    unread.append(str(file.path))
                if max_count is not None and len(found) > max_count:
                    return GrepResult(matches=found[:max_count], truncated=True)
        except TimeoutError:
            return GrepResult(matches=found, truncated=True)
        except _ERRORS as error:
            return GrepResult(error=f"Error searching '{path or '/'}': {_reason(error)}")
        return GrepResult(f"Cannot read {', '.join(unread)}" if unread else None, found)

    def _edited(
        self,
        path: str,
        old: str,
        new: str,
        replace_all: bool,  # noqa: FBT001
    ) -> tuple[EditResult, bytes]:
        """Apply deepagents' edit to a copy of a file."""
        with self._copied(path) as (copies, copy):
            windows = copy.is_file() and _has_windows_endings(copy.read_bytes())
            result = copies.edit(self._inside(path), old, new, replace_all)
            content = b"" if result.error else copy.read_bytes()
            return result, content.replace(b"\n", b"\r\n") if windows else content

    def _inside(self, path: str) -> str:
        """A path as deepagents' operations expect it, where `/` is the directory."""
        given, cwd = PurePosixPath(path), self.cwd.as_posix()
        if given.is_absolute() and not given.is_relative_to(cwd):
            # A person may name the directory by a path that is or has a link.
            real = PurePosixPath(os.path.realpath(given))
            if real.as_posix() != cwd:  # a link in the directory keeps its name
                real = PurePosixPath(os.path.realpath(given.parent), given.name)
            given = real if real.is_relative_to(cwd) else given
        if given.is_relative_to(cwd):
            given = given.relative_to(cwd)
        return str(PurePosixPath("/") / given)

    def _place(self, path: str) -> PurePosixPath:
        """Resolve a path inside the directory; raises one of `_ERRORS` if it is outside."""
        resolved = self._resolve_path(self._inside(path))
        return PurePosixPath(resolved.relative_to(self.cwd).as_posix())

    def _place_to_change(self, path: str) -> PurePosixPath:
        """The same, unless git keeps its files there: it would run the programs that they name."""
        validate_path(path)  # deepagents' tools do so when they run
        place = self._place(path)
        if not place.parts:
            raise ValueError("it is the working directory itself")
        if ".git" in map(str.casefold, (*place.parts, *PurePosixPath(path).parts)):
            raise ValueError("git may run programs that are named in it; use a command")
        return place

    def _name(self, path: str) -> str:
        return self._inside(path).lstrip("/")

    @contextmanager
    def _copied(self, path: str) -> Generator[tuple[FilesystemBackend, Path], None, None]:
        """Copy a file, if it exists; yields deepagents' operations on the copy, and its path.

        They open files by path, and another process could replace a path by a link before that.
        """
        place = self._place(path)
        with tempfile.TemporaryDirectory(prefix="workspace-") as folder:
            copy = Path(folder, self._name(path))
            with suppress(FileNotFoundError):
                content = self._directory.read(place)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(content)
            yield _Files(folder, virtual_mode=True), copy

    def _files(self, path: str | None, pattern: str | None, seconds: float) -> Iterator[Found]:
        """Yield the files whose paths match; raises `TimeoutError` if this takes too long."""
        base, deadline = self._place(path or "/"), time.monotonic() + seconds
        is_wanted = compile_grep_include_glob(pattern) if pattern else None
        for file in self._directory.walk(base, EXCLUDED):
            if time.monotonic() > deadline:
                raise TimeoutError
            below = file.path.name if file.path == base else str(file.path.relative_to(base))
            if is_wanted is None or is_wanted(below):
                yield file

    def _is_file(self, found: Found) -> bool:
        """Whether it is a regular file, or a link to one inside the directory."""
        with suppress(*_ERRORS):
            return found.size is not None or self._target(found.path).is_file()
        return False

    def _entry(self, place: PurePosixPath) -> FileInfo:
        is_dir = False
        with suppress(*_ERRORS):
            is_dir = self._target(place).is_dir()
        return FileInfo(path=f"{place}/" if is_dir else str(place), is_dir=is_dir)

    def _target(self, place: PurePosixPath) -> Path:
        return self._resolve_path(f"/{place}")

    def _upload(self, path: str, content: bytes) -> FileUploadResponse:
        try:
            with self._changes:
                self._directory.write(self._place_to_change(path), content)
        except _ERRORS:
            return FileUploadResponse(path, error=INVALID_PATH)
        return FileUploadResponse(path)

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            return FileDownloadResponse(path, self._directory.read(self._place(path)))
        except FileNotFoundError:
            return FileDownloadResponse(path, error=FILE_NOT_FOUND)
        except _ERRORS:
            return FileDownloadResponse(path, error=INVALID_PATH)


def _has_windows_endings(content: bytes) -> bool:
    """Whether all lines or none end in CRLF; deepagents' edit would make all endings the same."""
    windows, returns = content.count(b"\r\n"), content.count(b"\r")
    if returns and not windows == returns == content.count(b"\n"):
        raise ValueError(
            "its line endings are mixed, and would not be kept; change it with a command"
        )
    return windows > 0


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
