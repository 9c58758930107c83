"""The package: its names, its wheel, and that it needs nothing but what it requires."""

import subprocess
import sys
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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What PyPI would get."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(out)]
    subprocess.run([*command, str(ROOT)], check=True)
    (path,) = out.glob("*.whl")
    return path


@pytest.mark.slow
class TestWheel:
    def test_it_holds_the_library_and_nothing_else(self, wheel: Path) -> None:
        """It has the marker for type checkers and the licence, and neither tests nor graphs."""
        names = zipfile.ZipFile(wheel).namelist()
        tops = {name.split("/")[0] for name in names}
        assert tops == {"todo_tools", f"langgraph_todo_tools-{todo_tools.__version__}.dist-info"}
        assert "todo_tools/py.typed" in names
        assert any(name.endswith("licenses/LICENSE") for name in names)

    def test_it_imports_where_only_the_required_packages_are(
        self, wheel: Path, tmp_path: Path
    ) -> None:
        """Only the middleware does not; its error names the extra that it needs."""
        venv.create(tmp_path / "env", with_pip=True)
        python = tmp_path / "env" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
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
