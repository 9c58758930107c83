"""The files of a workspace: nothing outside is read or written, even through links."""

import os
import resource
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from graphs.terminal.tools.directory import Directory
from graphs.terminal.tools.workspace import Workspace

SECRET = "secret"
OPERATIONS: dict[str, Callable[[Workspace], Any]] = {
    "read": lambda workspace: workspace.read("folder/file"),
    "write": lambda workspace: workspace.write("folder/file", "mine"),
    "edit": lambda workspace: workspace.edit("folder/file", "open", "mine"),
    "edit what is outside": lambda workspace: workspace.edit("folder/file", "token", "mine"),
    "ls": lambda workspace: workspace.ls("folder"),
    "glob": lambda workspace: workspace.glob("*"),
    "glob below": lambda workspace: workspace.glob("*", "folder"),
    "grep": lambda workspace: workspace.grep(""),
    "grep below": lambda workspace: workspace.grep("", "folder"),
    "delete": lambda workspace: workspace.delete("folder/file"),
    "delete a folder": lambda workspace: workspace.delete("folder"),
    "upload": lambda workspace: workspace.upload_files([("folder/file", b"mine")]),
    "download": lambda workspace: workspace.download_files(["folder/file"]),
}


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "folder" / "file").write_text("open")
    return inside


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text(f"{SECRET}: token")
    (outside / "private").write_text(f"{SECRET}: token")
    return outside


def content_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


class TestLinksThatAreSwapped:
    """Another process replaces a folder by a link after a path was checked."""

    @pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
    @pytest.mark.parametrize("moment", range(8))
    def test_nothing_outside_is_read_or_written(
        self,
        operation: Callable[[Workspace], Any],
        moment: int,
        inside: Path,
        outside: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The link appears just before each of the first opened files."""
        before, opened = content_of(outside), 0
        really_open = os.open

        def swap_and_open(*arguments: Any, **settings: Any) -> int:
            nonlocal opened
            if opened == moment:
                (inside / "folder").rename(inside / "moved")
                (inside / "folder").symlink_to(outside)
            opened += 1
            return really_open(*arguments, **settings)

        workspace = Workspace(inside)
        monkeypatch.setattr(os, "open", swap_and_open)
        answer = repr(operation(workspace))
        monkeypatch.undo()
        assert SECRET not in answer
        assert "private" not in answer
        assert content_of(outside) == before

    @pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
    def test_a_link_that_leads_outside_is_refused(
        self, operation: Callable[[Workspace], Any], inside: Path, outside: Path
    ) -> None:
        """The link exists before the operation starts."""
        before = content_of(outside)
        (inside / "folder").rename(inside / "moved")
        (inside / "folder").symlink_to(outside)
        answer = repr(operation(Workspace(inside)))
        assert SECRET not in answer
        assert "private" not in answer
        assert content_of(outside) == before

    @pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
    def test_nothing_is_left_open(
        self, operation: Callable[[Workspace], Any], inside: Path
    ) -> None:
        """This holds whether the operation succeeds or fails."""
        descriptors = Path("/proc/self/fd")
        before = len(list(descriptors.iterdir()))
        operation(Workspace(inside))
        (inside / "folder" / "file").unlink(missing_ok=True)
        operation(Workspace(inside))
        assert len(list(descriptors.iterdir())) == before


class TestEditing:
    @pytest.mark.parametrize("content", [b"a\nb\n", b"a\r\nb\r\n", b"a\r\nb\n"])
    @pytest.mark.parametrize("path", ["link", "../file", "/../file"])
    def test_the_line_endings_of_a_file_outside_are_not_revealed(
        self, content: bytes, path: str, inside: Path
    ) -> None:
        """The path is checked before the file is read."""
        (inside.parent / "file").write_bytes(content)
        (inside / "link").symlink_to(inside.parent / "file")
        error = Workspace(inside).edit(path, "a", "b").error or ""
        assert "mixed" not in error
        assert "outside root directory" in error or "traversal not allowed" in error

    def test_mixed_line_endings_are_refused(self, inside: Path) -> None:
        """The file is not changed."""
        (inside / "mixed").write_bytes(b"a\r\nb\n")
        assert "mixed" in (Workspace(inside).edit("mixed", "a", "b").error or "")
        assert (inside / "mixed").read_bytes() == b"a\r\nb\n"

    def test_a_refused_edit_names_the_file(self, inside: Path) -> None:
        """The error has the path that the model wrote."""
        assert "folder/nothing" in (Workspace(inside).edit("folder/nothing", "a", "b").error or "")

    def test_a_file_keeps_its_mode(self, inside: Path) -> None:
        """An executable file stays executable."""
        (inside / "folder" / "file").chmod(0o755)
        assert Workspace(inside).edit("folder/file", "open", "mine").path == "folder/file"
        assert (inside / "folder" / "file").stat().st_mode & 0o777 == 0o755

    @pytest.mark.parametrize("form", ["folder/file", "link", "{inside}/folder/file"])
    def test_of_two_edits_at_once_none_is_lost(
        self, inside: Path, monkeypatch: pytest.MonkeyPatch, form: str
    ) -> None:
        """If both could read the file before one of them writes it, they would do so here."""
        (inside / "link").symlink_to("folder/file")
        (inside / "folder" / "file").write_text("first, last")
        both_have_read = Barrier(2, timeout=0.5)
        really_read = Directory.read

        def read(directory: Directory, path: PurePosixPath) -> bytes:
            content = really_read(directory, path)
            with suppress(BrokenBarrierError):
                both_have_read.wait()
            return content

        monkeypatch.setattr(Directory, "read", read)
        workspace = Workspace(inside)
        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(workspace.edit, "folder/file", "first", "1")
            other = threads.submit(workspace.edit, form.format(inside=inside), "last", "2")
        assert (one.result().error, other.result().error) == (None, None)
        assert (inside / "folder" / "file").read_text() == "1, 2"

    def test_a_name_may_have_two_dots(self, inside: Path, outside: Path) -> None:
        """Routes of some web frameworks are called so. No link leads outside there either."""
        workspace = Workspace(inside)
        assert workspace.write("app/[...slug]/page.tsx", "old").error is None
        assert workspace.edit("app/[...slug]/page.tsx", "old", "new").error is None
        assert workspace.read("app/[...slug]/page.tsx").file_data == {
            "content": "new",
            "encoding": "utf-8",
        }
        (inside / "a..b").symlink_to(outside)
        assert "outside root directory" in (workspace.write("a..b/new", "mine").error or "")
        assert not (outside / "new").exists()

    @pytest.mark.parametrize("path", ["~/.profile", "C:/x", "../x", "/", "."])
    def test_a_path_that_the_tools_refuse_is_refused_before_a_person_is_asked(
        self, path: str, inside: Path
    ) -> None:
        assert "Error writing" in (Workspace(inside).check_write(path) or "")

    def test_the_directory_may_be_named_by_a_link(self, inside: Path) -> None:
        """A link that leads elsewhere still names the path from the directory."""
        link = inside.parent / "link"
        link.symlink_to(inside)
        workspace = Workspace(link.resolve())
        assert workspace.edit(f"{link}/folder/file", "open", "mine").path == "folder/file"
        assert workspace.write(f"{link}/new", "mine").path == "new"
        assert [each["path"] for each in workspace.ls(str(link)).entries or []] == [
            "folder/",
            "new",
        ]
        (inside.parent / "other").symlink_to(inside.parent)
        assert workspace.write("/other/new", "mine").path == "other/new"


class TestGit:
    @pytest.mark.parametrize(
        "change",
        [
            lambda workspace: workspace.write("folder/.git/config", "mine").error,
            lambda workspace: workspace.edit("folder/.git/config", "theirs", "mine").error,
            lambda workspace: workspace.edit("folder/link/config", "theirs", "mine").error,
            lambda workspace: workspace.delete("folder/.git").error,
            lambda workspace: workspace.upload_files([("folder/.git/config", b"mine")])[0].error,
        ],
        ids=["write", "edit", "through a link", "delete", "upload"],
    )
    def test_what_belongs_to_git_is_not_changed(
        self, change: Callable[[Workspace], str | None], inside: Path
    ) -> None:
        """git runs programs that are named there. Reading it is allowed."""
        config = inside / "folder" / ".git" / "config"
        config.parent.mkdir()
        config.write_text("theirs")
        (inside / "folder" / "link").symlink_to(".git")
        assert change(Workspace(inside))
        assert config.read_text() == "theirs"
        assert "theirs" in repr(Workspace(inside).read("folder/.git/config"))

    def test_a_link_of_that_name_is_not_followed_either(self, inside: Path) -> None:
        (inside / "store").mkdir()
        (inside / ".git").symlink_to("store")
        assert Workspace(inside).write(".git/config", "mine").error
        assert not (inside / "store" / "config").exists()


class TestWhatIsNoRegularFile:
    """Opening a special file may block forever or have an effect."""

    @pytest.fixture(params=["pipe", "socket"])
    def special(self, request: pytest.FixtureRequest, inside: Path) -> Any:
        """A named pipe with a reader that waits for data."""
        if request.param == "pipe":
            os.mkfifo(inside / "special")
            reading = os.open(inside / "special", os.O_RDONLY | os.O_NONBLOCK)
            yield lambda: os.read(reading, 1)
            os.close(reading)
        else:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(inside / "special"))
                yield lambda: b""

    @pytest.mark.parametrize(
        "operation",
        [
            lambda workspace: workspace.read("special"),
            lambda workspace: workspace.write("special", "mine"),
            lambda workspace: workspace.edit("special", "a", "b"),
        ],
        ids=["read", "write", "edit"],
    )
    def test_a_special_file_is_refused(
        self, operation: Callable[[Workspace], Any], special: Callable[[], bytes], inside: Path
    ) -> None:
        """The error names the file."""
        assert "special" in operation(Workspace(inside)).error
        assert special() == b""

    @pytest.mark.parametrize(
        "operation",
        [
            lambda workspace: workspace.read("huge"),
            lambda workspace: workspace.edit("huge", "a", "b"),
        ],
        ids=["read", "edit"],
    )
    def test_a_huge_file_is_refused(
        self, operation: Callable[[Workspace], Any], inside: Path
    ) -> None:
        """It would be read into memory."""
        with (inside / "huge").open("wb") as file:
            file.truncate(200_000_000_000)
        assert "larger than 100,000,000 bytes; use a command" in operation(Workspace(inside)).error

    def test_a_pipe_without_a_reader_does_not_block(self, inside: Path) -> None:
        """The error comes at once."""
        os.mkfifo(inside / "pipe")
        assert Workspace(inside).write("pipe", "mine").error

    def test_searches_skip_special_files(self, special: Any, inside: Path) -> None:
        found = Workspace(inside).glob("*").matches or []
        assert [match["path"] for match in found] == ["folder/file"]
        searched = Workspace(inside).grep("open")
        assert [match["path"] for match in searched.matches or []] == ["folder/file"]
        assert searched.error is None


def test_a_write_that_fails_leaves_the_file_as_it_was(inside: Path) -> None:
    """The limit of the process stands for a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        error = Workspace(inside).write("folder/file", "x" * 1_000).error or ""
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "File too large" in error
    assert (inside / "folder" / "file").read_text() == "open"


class TestLinksInside:
    def test_links_inside_are_followed(self, inside: Path) -> None:
        """Every operation follows links to files and to folders."""
        (inside / "link").symlink_to("folder")
        (inside / "folder" / "other").symlink_to("file")
        workspace = Workspace(inside)
        assert workspace.write("link/other", "mine").path == "link/other"
        assert (inside / "folder" / "file").read_text() == "mine"
        assert workspace.edit("link/other", "mine", "yours").error is None
        read = workspace.read("link/file").file_data
        assert read is not None
        assert read["content"] == "yours"
        assert [entry["path"] for entry in workspace.ls("/").entries or []] == ["folder/", "link/"]
        found = workspace.glob("*").matches or []
        assert [match["path"] for match in found] == ["folder/file", "folder/other"]


class TestSearching:
    def test_a_file_can_be_searched(self, inside: Path) -> None:
        """Its neighbours are not searched."""
        (inside / "folder" / "other").write_text("open")
        matches = Workspace(inside).grep("open", "folder/file").matches or []
        assert [match["path"] for match in matches] == ["folder/file"]

    def test_a_name_that_is_no_text_is_shown_as_one(self, inside: Path) -> None:
        """Otherwise the result could not be sent to a model."""
        (inside / os.fsdecode(b"caf\xe9")).write_text("find")
        (match,) = Workspace(inside).grep("find").matches or []
        assert match["path"] == "caf\ufffd"

    def test_lines_around_a_match_are_given_on_request(self, inside: Path) -> None:
        """Matching lines are not repeated as neighbours."""
        (inside / "folder" / "file").write_text("one\r\ntwo\nfind\nfind\nthree")
        first, second = Workspace(inside).grep("find", context_lines=1).matches or []
        assert first["context_before"] == [{"line": 2, "text": "two"}]
        assert first["context_after"] == second["context_before"] == []
        assert second["context_after"] == [{"line": 5, "text": "three"}]

    def test_binary_and_very_long_files_are_skipped(self, inside: Path) -> None:
        (inside / "binary").write_bytes(b"open\xff")
        with (inside / "long").open("wb") as file:
            file.write(b"open")
            file.truncate(11 * 1024 * 1024)
        matches = Workspace(inside).grep("open").matches or []
        assert [match["path"] for match in matches] == ["folder/file"]

    def test_the_matches_are_counted(self, inside: Path) -> None:
        """The result has at most the requested number, and says whether there are more."""
        (inside / "folder" / "file").write_text("find\nfind\nfind")
        some = Workspace(inside).grep("find", max_count=2)
        assert (len(some.matches or []), some.truncated) == (2, True)
        everything = Workspace(inside).grep("find", max_count=3)
        assert (len(everything.matches or []), everything.truncated) == (3, False)


class TestRemoving:
    def test_the_directory_itself_is_not_removed(self, inside: Path) -> None:
        assert Workspace(inside).delete("/").error
        assert (inside / "folder" / "file").exists()

    def test_files_and_folders_are_removed(self, inside: Path) -> None:
        workspace = Workspace(inside)
        assert workspace.delete("folder/file").path == "folder/file"
        assert workspace.delete("folder").error is None
        assert not list(inside.iterdir())


def test_any_content_is_moved(inside: Path) -> None:
    """Files are uploaded and downloaded, each with its own result."""
    workspace = Workspace(inside)
    (uploaded, refused) = workspace.upload_files([("new/a", b"\xff"), ("../a", b"")])
    assert (uploaded.error, refused.error) == (None, "invalid_path")
    there, missing, bad = workspace.download_files(["new/a", "nothing", "../a"])
    assert (there.content, missing.error, bad.error) == (b"\xff", "file_not_found", "invalid_path")
