"""File operations that never leave a directory."""

import errno
import os
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

MOST_BYTES = 100_000_000
"""A file is read into memory as a whole, so a longer one is refused."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# Without this flag, opening a named pipe would block. It does not affect files.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Found(NamedTuple):
    """A file or link that a walk has found."""

    path: PurePosixPath
    folder: int
    """The open folder that contains it."""

    @property
    def size(self) -> int | None:
        """Its length; `None` if it is not a regular file."""
        found = os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def read(self) -> bytes:
        """Its content."""
        return _read(self.path.name, self.folder)


class Directory:
    """The regular files below a directory.

    A path is opened name by name, each relative to the open folder before it, and never through a
    symbolic link. If another process replaces a folder by a link at any moment, the result is an
    error; no operation leaves the directory. Paths are relative; all operations raise `OSError`.

    Args:
        root: The directory.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: PurePosixPath) -> bytes:
        """Read a file."""
        with self.folder(path.parent) as folder:
            return _read(path.name, folder)

    def names(self, path: PurePosixPath) -> list[str]:
        """List a folder in arbitrary order."""
        with self.folder(path) as folder, os.scandir(folder) as entries:
            return [entry.name for entry in entries]

    def write(self, path: PurePosixPath, content: bytes) -> None:
        """Write a file, and create missing folders; a full disk leaves its content as it is."""
        with self.folder(path.parent, make=True) as folder:
            opened = os.open(path.name, os.O_WRONLY | os.O_CREAT | _FILE, 0o644, dir_fd=folder)
            with os.fdopen(opened, "wb") as file:
                _check_is_file(opened)
                _reserve(opened, len(content))
                file.write(content)
                file.truncate()

    def remove(self, path: PurePosixPath) -> None:
        """Remove a file, or a folder with its content."""
        with self.folder(path.parent) as folder:
            found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(path.name, dir_fd=folder)
            else:
                os.unlink(path.name, dir_fd=folder)

    @contextmanager
    def folder(self, path: PurePosixPath, *, make: bool = False) -> Generator[int, None, None]:
        """Open a folder."""
        opened = os.open(self._root, _FOLDER)
        try:
            for name in path.parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=opened)
                below = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=opened)
                os.close(opened)
                opened = below
            yield opened
        finally:
            os.close(opened)

    def walk(self, path: PurePosixPath, leave_out: frozenset[str]) -> Iterator[Found]:
        """Yield everything that is not a folder, at any depth, sorted by name.

        Args:
            path: The folder to start from. If it is a file, that file is yielded.
            leave_out: Names of folders to skip.
        """
        with ExitStack() as stack:
            try:
                top = stack.enter_context(self.folder(path))
            except NotADirectoryError:
                yield Found(path, stack.enter_context(self.folder(path.parent)))
                return
            for below, folders, names, folder in os.fwalk(".", dir_fd=top):
                folders[:] = sorted(set(folders) - leave_out)
                for name in sorted(names):
                    yield Found(path / below / name, folder)


def _read(name: str, folder: int) -> bytes:
    opened = os.open(name, os.O_RDONLY | _FILE, dir_fd=folder)
    with os.fdopen(opened, "rb") as file:
        _check_is_file(opened)
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"it is larger than {MOST_BYTES:,} bytes; use a command")
    return content


def _reserve(opened: int, size: int) -> None:
    """Get the room for a file before anything of it is replaced.

    A new file that takes the place of the old one would lose its mode, its owner and its hard
    links.
    """
    if not size or not hasattr(os, "posix_fallocate"):
        return
    before = os.fstat(opened).st_size
    try:
        os.posix_fallocate(opened, 0, size)
    except OSError as error:
        os.ftruncate(opened, before)
        if error.errno in _NO_ROOM:  # others mean that the file system cannot do this
            raise


def _check_is_file(opened: int) -> None:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise OSError("it is not a regular file")
