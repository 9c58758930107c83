"""Build the interfaces from public source, and the React page: `python -m tests.clients.build`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

NEEDS = """\
It needs Chromium, git, Node.js 20 or newer, and a network: GitHub for the source of the interfaces,
the npm registry for what they require, PyPI for playwright. UI_MIRROR names a directory of clones
to use instead of GitHub, each in <owner>+<name>/repo."""

ROOT = Path(__file__).parent.parent.parent
CACHE = ROOT / ".clients"
REACT = CACHE / "react"
"""Where `graphs/react` is built."""

# The build of the pages loads a font from Google. Replacing it makes the build independent of that
# site and changes only the shapes of the letters.
_FONT = 'import { Inter } from "next/font/google";'
_NO_FONT = 'const Inter = (_options: object) => ({ className: "" });'


class Interface(NamedTuple):
    """A user interface: its source, and how to install its requirements."""

    name: str
    commit: str
    install: tuple[str, ...]

    @property
    def directory(self) -> Path:
        """Where it is built; the name has the commit, so each commit has its own folder."""
        return CACHE / f"{self.name}-{self.commit[:12]}"

    @property
    def is_built(self) -> bool:
        """Whether it can be started."""
        return (self.directory / ".built").exists()


AGENT_CHAT_UI = Interface(
    name="agent-chat-ui",
    commit="fdc87e65307581b02898d33c62b3f285e56bd85b",
    install=("pnpm@10.5.1", "install", "--frozen-lockfile"),
)
DEEP_AGENTS_UI = Interface(
    name="deep-agents-ui",
    commit="f6a4f34565b42688be06498031fc9351c152614e",
    install=("yarn@1.22.22", "install", "--frozen-lockfile"),
)
INTERFACES = (AGENT_CHAT_UI, DEEP_AGENTS_UI)


def build(interface: Interface) -> None:
    """Build an interface, unless it is already built.

    Args:
        interface: The interface.

    Raises:
        subprocess.CalledProcessError: The source or a package is unavailable, or the build failed.
    """
    if interface.is_built:
        return
    directory = interface.directory
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    _run("git", "init", "--quiet", cwd=directory)
    _run(
        "git", "fetch", "--quiet", "--depth=1", _source(interface), interface.commit, cwd=directory
    )
    _run("git", "checkout", "--quiet", "--detach", "FETCH_HEAD", cwd=directory)
    layout = directory / "src" / "app" / "layout.tsx"
    layout.write_text(layout.read_text(encoding="utf-8").replace(_FONT, _NO_FONT), encoding="utf-8")
    _run("npx", "--yes", *interface.install, cwd=directory)
    _run("node_modules/.bin/next", "build", cwd=directory)
    (directory / ".built").touch()


def build_react() -> None:
    """Build the React page of this repository, and check its types.

    Raises:
        subprocess.CalledProcessError: A package is unavailable, or the page is wrong.
    """
    shutil.rmtree(REACT, ignore_errors=True)
    shutil.copytree(ROOT / "graphs" / "react", REACT, ignore=shutil.ignore_patterns("node_modules"))
    for command in ("ci", "run check", "run build"):
        _run("npm", *command.split(), cwd=REACT)


def _source(interface: Interface) -> str:
    mirror = os.environ.get("UI_MIRROR")
    if mirror:
        return f"{mirror}/langchain-ai+{interface.name}/repo"
    return f"https://github.com/langchain-ai/{interface.name}"


def _run(*command: str, cwd: Path) -> None:
    environment = {**os.environ, "CI": "1", "NEXT_TELEMETRY_DISABLED": "1"}
    subprocess.run(command, cwd=cwd, check=True, env=environment)


def build_all() -> str:
    """Build all; returns the reason if that fails."""
    if absent := [name for name in ("git", "node", "npm", "npx") if shutil.which(name) is None]:
        return f"{', '.join(absent)} not on the PATH"
    try:
        for interface in INTERFACES:
            build(interface)
        build_react()
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)} ended with {error.returncode}"
    return ""


if __name__ == "__main__":
    sys.exit(build_all() or 0)
