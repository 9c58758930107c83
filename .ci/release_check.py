"""What must be put right before a release: `make release-check`."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent


def problems(root: Path) -> Iterator[str]:
    """Each placeholder that is left, and each version that is not that of `pyproject.toml`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    if "/OWNER/" in address:
        yield f"pyproject.toml: the address of the repository is a placeholder, {address}"
    version = project["project"]["version"]
    named = {
        "CITATION.cff": f"version: {version}",
        "CHANGELOG.md": f"## {version}",
    }
    for name, text in named.items():
        if text not in (root / name).read_text(encoding="utf-8"):
            yield f"{name}: has no line {text!r}, the version in pyproject.toml"
    for page in [root / "README.md", *sorted((root / "docs").glob("*.md"))]:
        for mark in re.findall(r"^@[A-Z]+@$", page.read_text(encoding="utf-8"), re.MULTILINE):
            yield f"{page.relative_to(root)}: {mark} is still to be filled in"


if __name__ == "__main__":
    found = list(problems(ROOT))
    sys.exit("\n".join(found) if found else 0)
