"""The package: its names, its wheel, and its requirements."""

import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

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


@pytest.mark.slow
def test_the_sdist_contains_the_sources_of_the_wheel(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = {Path(name).parts[1] for name in tar.getnames()}
    texts = {"CHANGELOG.md", "LICENSE", "README.md"}
    assert names == {"todo_tools", "pyproject.toml", "PKG-INFO", ".gitignore", *texts}


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
        venv.create(tmp_path / "env")  # without pip, which takes seconds to install
        python = str(tmp_path / "env" / "bin" / "python")
        pip = [sys.executable, "-m", "pip", "--python", python]
        subprocess.run([*pip, "install", "--quiet", str(wheel)], check=True)
        program = (
            "import pkgutil, importlib, todo_tools\n"
            "for module in pkgutil.walk_packages(todo_tools.__path__, 'todo_tools.'):\n"
            "    try:\n"
            "        importlib.import_module(module.name)\n"
            "    except ImportError as error:\n"
            "        print(module.name, error)\n"
        )
        run = subprocess.run(
            [python, "-W", "error::DeprecationWarning:todo_tools", "-c", program],
            check=True,
            text=True,
            capture_output=True,
            cwd=tmp_path,
        )
        assert run.stdout == (
            "todo_tools.middleware todo_tools.middleware needs langchain; "
            "pip install 'langgraph-todo-tools[langchain]'\n"
        )
