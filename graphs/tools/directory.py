"""A directory whose files are reached without leaving it."""

import os
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# A named pipe would otherwise be waited for; a file has no use for it.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK


class Found(NamedTuple):
    """A file or link that a walk has come to."""

    path: PurePosixPath
    folder: int
    """The open folder that it is in."""

    @property
    def size(self) -> int | None:
        """Its length; `None` if it is no regular file."""
        found = os.stat(self.path.name, dir_fd=self.folder, follow_symlinks=False)
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def read(self) -> bytes:
        """Its content."""
        return _read(self.path.name, self.folder)


class Directory:
    """The regular files below a directory, and nothing else.

    A path is followed name by name, each from the open folder before it and never through a
    symbolic link. So a link that is put in the way, at whatever moment, leads to an error and never
    out of the directory. Paths are relative; all operations raise `OSError`.

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
        """List a folder, in no order."""
        with self.folder(path) as folder, os.scandir(folder) as entries:
            return [entry.name for entry in entries]

    def write(self, path: PurePosixPath, content: bytes) -> None:
        """Write a file, and make the folders it needs."""
        with self.folder(path.parent, make=True) as folder:
            opened = os.open(path.name, os.O_WRONLY | os.O_CREAT | _FILE, 0o644, dir_fd=folder)
            with os.fdopen(opened, "wb") as file:
                _check_is_file(opened)
                file.truncate()
                file.write(content)

    def remove(self, path: PurePosixPath) -> None:
        """Remove a file, or a folder with all that is in it."""
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
        """Find what is no folder, at any depth, in the order of its names.

        Args:
            path: Where to begin. A file is found itself.
            leave_out: Names of folders that are not entered.
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
        return file.read()


def _check_is_file(opened: int) -> None:
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        raise OSError("it is not a regular file")
