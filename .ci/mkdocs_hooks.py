"""What MkDocs does not know by itself: where the repository is, and the files beside `docs/`."""

import re
import tomllib
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
_UPWARDS = re.compile(r"\]\((\.\./[^)#\s]+)")


def on_config(config: MkDocsConfig) -> None:
    """Take the address of the repository from `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    config.repo_url = hook["repository"]
    config.repo_name = project["project"]["name"]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the security policy, and the pictures that pages show from other directories."""
    pages = [(file.src_uri, file.content_string) for file in files.documentation_pages()]
    named = {_target(page, link) for page, text in pages for link in _UPWARDS.findall(text)}
    for name in named:
        if name.endswith(".svg"):
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    policy = str(ROOT / "SECURITY.md")  # where code hosts look for it
    files.append(File.generated(config, "security.md", abs_src_path=policy))


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of `docs/` to those pictures, or to the repository."""
    uri = page.file.src_uri

    def outside(link: re.Match[str]) -> str:
        name = _target(uri, link[1])
        if name.startswith("docs/"):
            return link[0]
        if not (ROOT / name).exists():
            raise FileNotFoundError(f"{uri} links to {name}, which does not exist")
        top = "../" * uri.count("/")
        if name == "SECURITY.md":
            return f"]({top}security.md"
        in_site = files.get_file_from_path(name) is not None
        return f"]({top}{name}" if in_site else f"]({config.repo_url}/blob/main/{name}"

    if uri == "security.md":
        return markdown.replace("](docs/", "](")
    return _UPWARDS.sub(outside, markdown)


def _target(page: str, link: str) -> str:
    """The path, from the root of the repository, of a link on a page of `docs/`."""
    return normpath(join("docs", dirname(page), link))
