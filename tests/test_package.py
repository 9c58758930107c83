"""This package: its names, its wheel, and its requirements."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import todo_tools
from tests.support import ROOT


def test_the_version_is_that_of_the_distribution() -> None:
    assert todo_tools.__version__ == version("langgraph-todo-tools")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the files for PyPI: an sdist, and the wheel that is built from it."""
    out = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    (path,) = distributions.glob("*.whl")
    return path


@pytest.mark.slow
def test_pypi_would_accept_the_distributions(distributions: Path, wheel: Path) -> None:
    """The metadata is complete, the README can be rendered, and no file is in a wrong place."""
    files = list(map(str, distributions.iterdir()))
    twine = [sys.executable, "-m", "twine", "check", "--strict", *files]
    subprocess.run(twine, check=True, capture_output=True)
    contents = [sys.executable, "-m", "check_wheel_contents", str(wheel)]
    subprocess.run(contents, check=True, capture_output=True, cwd=distributions)


def link_required(site: Path) -> None:
    """Link all that the wheel requires, directly or not, where an installer would put it.

    An installer would fetch and compile it, which takes five times as long and a network.
    """
    (info,) = site.glob("*.dist-info")
    left: list[Distribution] = [Distribution.at(info)]
    known = set[str]()
    while left:
        for line in left.pop().requires or ():
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            if name not in known and applies(requirement):
                known.add(name)
                left.append(distribution(name))
                link_files(left[-1], site)


def applies(requirement: Requirement) -> bool:
    """Whether it is required here, and by no extra."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def link_files(package: Distribution, site: Path) -> None:
    for file in package.files or ():
        if ".." not in file.parts:  # programs
            path = site / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(str(file.locate()))


@pytest.mark.slow
class TestWheel:
    def test_it_holds_the_library_and_nothing_else(self, wheel: Path) -> None:
        """It has `py.typed` and the licence, and neither tests nor graphs."""
        names = zipfile.ZipFile(wheel).namelist()
        tops = {name.split("/")[0] for name in names}
        assert tops == {"todo_tools", f"langgraph_todo_tools-{todo_tools.__version__}.dist-info"}
        assert "todo_tools/py.typed" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)

    def test_it_can_be_imported_with_only_the_required_packages(
        self, wheel: Path, tmp_path: Path
    ) -> None:
        """Only the middleware cannot; its error names the missing extra."""
        site = tmp_path / "site"
        zipfile.ZipFile(wheel).extractall(site)
        link_required(site)
        program = (
            "import pkgutil, importlib, todo_tools\n"
            "for module in pkgutil.walk_packages(todo_tools.__path__, 'todo_tools.'):\n"
            "    try:\n"
            "        importlib.import_module(module.name)\n"
            "    except ImportError as error:\n"
            "        print(module.name, error)\n"
        )
        run = subprocess.run(
            # -S: without the packages of this environment.
            [sys.executable, "-S", "-W", "error::DeprecationWarning:todo_tools", "-c", program],
            check=True,
            text=True,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(site)},
        )
        assert {line.partition(" ")[2] for line in run.stdout.splitlines()} == {
            "todo_tools.middleware needs langchain; pip install 'langgraph-todo-tools[langchain]'"
        }
