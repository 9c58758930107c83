"""A directory that a coding agent works in: its files and its shell."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from deepagents.backends.protocol import (
    EditResult,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)

from graphs.tools.shell import LocalShell

EXCLUDED = frozenset({".git", "node_modules"})
MAX_FOUND = 1_000


class Workspace(LocalShell):
    """The maintained file operations and shell, with one name for each file.

    A path means the same everywhere: relative to the directory, as `/path` from the directory, or
    absolute on the machine. What is found is named relative to the directory, which file tools and
    commands both understand. File operations stay inside the directory; commands do not.

    What goes wrong is an answer to the model, not an exception. Files are not searched in `.git`
    and `node_modules`, unless the search begins inside; at most 1,000 are named.

    Args:
        workdir: The directory.
        timeout: Seconds after which a command is ended.
        env: Variables for commands, added to the few that they get.
    """

    def __init__(
        self, workdir: Path, *, timeout: int = 120, env: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(workdir, timeout=timeout, env=env, virtual_mode=True)

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Read a window of lines."""
        try:
            return super().read(self._inside(file_path), offset, limit)
        except ValueError as error:
            return ReadResult(error=f"Error reading file '{file_path}': {error}")

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file and the directories it needs."""
        try:
            result = super().write(self._inside(file_path), content)
        except ValueError as error:
            return WriteResult(error=f"Error writing file '{file_path}': {error}")
        return WriteResult(result.error, _relative(result.path))

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # noqa: FBT001, FBT002  the base class has it
    ) -> EditResult:
        """Replace a text that occurs once; the file keeps its line endings."""
        inside = self._inside(file_path)
        path = self.cwd / inside.lstrip("/")
        try:
            windows = _has_windows_endings(path)
            if not windows and _has_carriage_returns(path):
                return EditResult(
                    f"Error editing file '{file_path}': its line endings are mixed, and would not "
                    "be kept; change it with a command"
                )
            result = super().edit(inside, old_string, new_string, replace_all)
            if windows and not result.error:
                path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        except (OSError, ValueError) as error:
            return EditResult(f"Error editing file '{file_path}': {error}")
        return EditResult(result.error, _relative(result.path), result.occurrences)

    def ls(self, path: str) -> LsResult:
        """List a directory: sorted without regard to case, `/` behind directories."""
        inside = self._inside(path)
        try:
            result = super().ls(inside)
            if result.entries is None:
                return result
            # The maintained listing leaves out what it cannot stat, such as a broken link.
            children = sorted((self.cwd / inside.lstrip("/")).iterdir(), key=_without_case)
            return LsResult(entries=[self._entry(child) for child in children])
        except (OSError, ValueError) as error:
            return LsResult(f"Path '{path}': {error}")

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Find files by a pattern."""
        base = self._inside(path or "/")
        try:
            result = super().glob(pattern, base)
        except ValueError as error:
            return GlobResult(error=f"Error searching '{path}': {error}")
        found = [
            FileInfo(path=_relative(match["path"]) or "")
            for match in result.matches or []
            if not _is_excluded(match["path"], base)
        ]
        cut = len(found) > MAX_FOUND
        return GlobResult(
            error=result.error,
            matches=found[:MAX_FOUND],
            truncated=result.truncated or cut,
            truncation_reason="budget" if cut else result.truncation_reason,
        )

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        *,
        max_count: int | None = None,
        context_lines: int = 0,
    ) -> GrepResult:
        """Find lines by a literal text."""
        base = self._inside(path or "/")
        # Counted here: matches in excluded directories must not use up the count.
        result = super().grep(pattern, base, glob, context_lines=context_lines)
        found = [
            _renamed(match)
            for match in result.matches or []
            if not _is_excluded(match["path"], base)
        ]
        cut = max_count is not None and len(found) > max_count
        return GrepResult(result.error, found[:max_count], result.truncated or cut)

    def _inside(self, path: str) -> str:
        """A path as the maintained operations take it, `/` being the directory."""
        given = PurePosixPath(path)
        if given.is_relative_to(self.cwd.as_posix()):
            given = given.relative_to(self.cwd.as_posix())
        return str(PurePosixPath("/") / given)

    def _entry(self, child: Path) -> FileInfo:
        is_dir = _is_dir(child)
        path = child.relative_to(self.cwd).as_posix()
        return FileInfo(path=f"{path}/" if is_dir else path, is_dir=is_dir)


def _has_windows_endings(path: Path) -> bool:
    """Whether every line of a file ends so; the maintained edit leaves none of them."""
    content = path.read_bytes() if path.is_file() else b""
    return 0 < content.count(b"\n") == content.count(b"\r\n") == content.count(b"\r")


def _has_carriage_returns(path: Path) -> bool:
    return path.is_file() and b"\r" in path.read_bytes()


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _without_case(path: Path) -> tuple[str, str]:
    return path.name.casefold(), path.name


def _relative(path: str | None) -> str | None:
    return path and path.lstrip("/")


def _renamed(match: GrepMatch) -> GrepMatch:
    renamed = match.copy()
    renamed["path"] = _relative(match["path"]) or ""
    return renamed


def _is_excluded(path: str, base: str) -> bool:
    found = PurePosixPath(path)
    below = found.relative_to(base) if found.is_relative_to(base) else found
    return not EXCLUDED.isdisjoint(below.parts[:-1])
