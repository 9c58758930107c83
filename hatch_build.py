"""What the package index shows: its links, and the README with absolute links and pictures."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!\[[^\]]*)?\]\((?!https?://|#)([^)\s]+)\)")


class PackageIndexHook(MetadataHookInterface):
    """Make URLs and README from the address of the repository in `pyproject.toml`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `urls` and `readme`, with links to the files of this version."""
        repository, version = self.config["repository"], f"v{metadata['version']}"
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(readme, repository, version),
        }
        metadata["urls"] = {
            "Documentation": f"{repository}/blob/{version}/docs/start.md",
            "Repository": repository,
            "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }


def with_absolute_links(markdown: str, repository: str, revision: str) -> str:
    """Make relative links absolute, as a code host resolves them; pictures lead to the raw file."""

    def absolute(link: re.Match[str]) -> str:
        image, target = link[1] or "", link[2]
        kind = "raw" if image else "blob"
        return f"{image}]({repository}/{kind}/{revision}/{target})"

    return _LINK.sub(absolute, markdown)
