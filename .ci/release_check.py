"""What must be put right before a release, and what only a person can do: `make release-check`."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

BY_HAND = """\
Only a person can do this, and no program can check it:
- Own the name on the package index: an account, or a trusted publisher for the repository.
- Fill in who you are: `authors` in pyproject.toml and CITATION.cff, the holder in LICENSE.
- On the code host, switch on private vulnerability reports, which SECURITY.md names.
- Choose where `site/` is published."""


def problems(root: Path) -> Iterator[str]:
    """Each placeholder that is left, and each version that is not that of `pyproject.toml`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    if "/OWNER/" in address:
        yield (
            f"pyproject.toml: the address of the repository is a placeholder, {address}; set "
            "`repository` under [tool.hatch.metadata.hooks.custom]"
        )
    version = project["project"]["version"]
    release, _, development = version.partition(".dev")
    if development:
        yield f"pyproject.toml: {version} is a version in development; set {release}"
    named = {
        "CITATION.cff": f"version: {version}",
        "CHANGELOG.md": f"## {release} (unreleased)" if development else f"## {release}",
    }
    for name, text in named.items():
        if text not in (root / name).read_text(encoding="utf-8").splitlines():
            yield f"{name}: has no line {text!r}, the version in pyproject.toml"
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        for mark in re.findall(r"^@[A-Z]+@$", page.read_text(encoding="utf-8"), re.MULTILINE):
            yield f"{page.relative_to(root)}: {mark} is still to be filled in"


if __name__ == "__main__":
    found = list(problems(ROOT))
    print(BY_HAND, end="\n\n")
    sys.exit("\n".join(found) if found else 0)
