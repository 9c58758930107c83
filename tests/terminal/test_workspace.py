"""The files of a workspace: nothing outside is read or written, not even through links."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.terminal.tools.workspace import Workspace

SECRET = "secret"
OPERATIONS: dict[str, Callable[[Workspace], Any]] = {
    "read": lambda workspace: workspace.read("folder/file"),
    "write": lambda workspace: workspace.write("folder/file", "mine"),
    "edit": lambda workspace: workspace.edit("folder/file", "token", "mine"),
    "ls": lambda workspace: workspace.ls("folder"),
    "glob": lambda workspace: workspace.glob("*"),
    "glob below": lambda workspace: workspace.glob("*", "folder"),
    "grep": lambda workspace: workspace.grep(""),
    "grep below": lambda workspace: workspace.grep("", "folder"),
    "delete": lambda workspace: workspace.delete("folder/file"),
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


class TestLinks:
    @pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
    def test_a_link_that_leads_outside_is_refused(
        self, operation: Callable[[Workspace], Any], inside: Path, outside: Path
    ) -> None:
        before = content_of(outside)
        (inside / "folder").rename(inside / "moved")
        (inside / "folder").symlink_to(outside)
        answer = repr(operation(Workspace(inside)))
        assert SECRET not in answer
        assert "private" not in answer
        assert content_of(outside) == before

    def test_links_inside_are_followed(self, inside: Path) -> None:
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


@pytest.mark.parametrize("path", ["~/.profile", "../x", "a/../../x"])
@pytest.mark.parametrize("tool", ["read", "write", "edit", "ls", "glob", "grep"])
def test_a_path_that_leads_outside_is_an_error_result(tool: str, path: str, inside: Path) -> None:
    workspace = Workspace(inside)
    results: dict[str, Callable[[], Any]] = {
        "read": lambda: workspace.read(path),
        "write": lambda: workspace.write(path, "mine"),
        "edit": lambda: workspace.edit(path, "open", "mine"),
        "ls": lambda: workspace.ls(path),
        "glob": lambda: workspace.glob("*", path),
        "grep": lambda: workspace.grep("open", path),
    }
    assert "path traversal not allowed" in results[tool]().error


def test_a_name_may_have_two_dots(inside: Path) -> None:
    """Routes of some web frameworks are called so."""
    workspace = Workspace(inside)
    assert workspace.write("app/[...slug]/page.tsx", "old").error is None
    assert workspace.edit("app/[...slug]/page.tsx", "old", "new").error is None
    read = workspace.read("app/[...slug]/page.tsx").file_data
    assert read is not None
    assert read["content"] == "new"


def test_an_edited_file_keeps_its_mode(inside: Path) -> None:
    """An executable file stays executable."""
    (inside / "folder" / "file").chmod(0o755)
    assert Workspace(inside).edit("folder/file", "open", "mine").path == "folder/file"
    assert (inside / "folder" / "file").stat().st_mode & 0o777 == 0o755


@pytest.fixture(params=["pipe", "socket"])
def special(request: pytest.FixtureRequest, inside: Path) -> Any:
    """What is no regular file; opening it may block for ever."""
    if request.param == "pipe":
        os.mkfifo(inside / "special")
        yield
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(inside / "special"))
            yield


@pytest.mark.usefixtures("special")
class TestWhatIsNoRegularFile:
    @pytest.mark.parametrize("operation", ["read", "write", "edit"])
    def test_it_is_refused(self, operation: str, inside: Path) -> None:
        texts = {"read": [], "write": ["mine"], "edit": ["a", "b"]}[operation]
        result = getattr(Workspace(inside), operation)("special", *texts)
        assert "'special': it is not a regular file" in result.error

    def test_searches_skip_it(self, inside: Path) -> None:
        found = Workspace(inside).glob("*").matches or []
        assert [match["path"] for match in found] == ["folder/file"]
        searched = Workspace(inside).grep("open")
        assert [match["path"] for match in searched.matches or []] == ["folder/file"]
        assert searched.error is None


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
