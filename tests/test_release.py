"""Readiness for a release: one place for the repository's address, absolute links in the README."""

import re
import runpy
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]
ADDRESS = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]


def test_the_address_of_the_repository_is_in_one_place() -> None:
    patterns = ["*.md", "*.yml", "*.cff", "*.py", "docs/**/*.md", ".ci/*", ".github/**/*.yml"]
    files = [file for pattern in patterns for file in ROOT.glob(pattern) if file.is_file()]
    assert len(files) > 20
    assert [file for file in files if ADDRESS in file.read_text(encoding="utf-8")] == []


class TestPackageIndex:
    @pytest.fixture
    def metadata(self) -> dict[str, Any]:
        """The metadata that the build hook makes from an address."""
        hook = runpy.run_path(str(ROOT / "hatch_build.py"))["PackageIndexHook"]
        metadata: dict[str, Any] = {"version": "1.2.3"}
        hook(str(ROOT), {"repository": "https://host/me/it"}).update(metadata)
        return metadata

    def test_every_link_of_the_readme_is_absolute(self, metadata: dict[str, Any]) -> None:
        text = metadata["readme"]["text"]
        links = re.findall(r"\]\(([^)]+)\)", text)
        assert [link for link in links if not link.startswith(("https://", "#"))] == []
        assert "(https://host/me/it/blob/v1.2.3/docs/stopping.md)" in text
        assert "(https://host/me/it/raw/v1.2.3/docs/pictures/demo.svg)" in text

    def test_every_url_leads_to_the_repository(self, metadata: dict[str, Any]) -> None:
        assert {"Documentation", "Repository", "Changelog", "Issues"} == metadata["urls"].keys()
        assert all(url.startswith("https://host/me/it") for url in metadata["urls"].values())


class TestReleaseCheck:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """A project that is ready for release."""
        shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=lambda *_: ["reliability.md"])
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        project = project.replace(ADDRESS, "https://host/me/it").replace(VERSION, "1.2.3")
        texts = {
            "pyproject.toml": project,
            "CITATION.cff": "version: 1.2.3\n",
            "CHANGELOG.md": "## 1.2.3\n",
            "README.md": "Read me.\n",
        }
        for name, text in texts.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    def problems(self, root: Path) -> list[str]:
        return list(runpy.run_path(str(ROOT / ".ci" / "release_check.py"))["problems"](root))

    def test_a_project_that_is_ready_has_no_problems(self, root: Path) -> None:
        assert self.problems(root) == []

    @pytest.mark.parametrize(
        ("name", "text", "problem"),
        [
            ("CITATION.cff", "version: 0.0.1\n", "CITATION.cff: has no line"),
            ("CHANGELOG.md", "## 1.2.3 (unreleased)\n", "CHANGELOG.md: has no line '## 1.2.3'"),
            ("README.md", "@TABLE@\n", "README.md: @TABLE@ is still to be filled in"),
        ],
    )
    def test_it_names_each_problem(self, root: Path, name: str, text: str, problem: str) -> None:
        (root / name).write_text(text, encoding="utf-8")
        (found,) = self.problems(root)
        assert found.startswith(problem)

    def test_a_version_in_development_is_a_problem_of_its_own(self, root: Path) -> None:
        """Its changelog says that it is not released."""
        project = (root / "pyproject.toml").read_text(encoding="utf-8")
        texts = {
            "pyproject.toml": project.replace("1.2.3", "1.2.3.dev0"),
            "CITATION.cff": "version: 1.2.3.dev0\n",
            "CHANGELOG.md": "## 1.2.3 (unreleased)\n",
        }
        for name, text in texts.items():
            (root / name).write_text(text, encoding="utf-8")
        assert self.problems(root) == [
            "pyproject.toml: 1.2.3.dev0 is a version in development; set 1.2.3"
        ]

    def test_it_names_an_address_that_is_a_placeholder(self, root: Path) -> None:
        placeholder = 'repository = "https://github.com/OWNER/it"'
        project = (root / "pyproject.toml").read_text(encoding="utf-8")
        project = re.sub(r"^repository = .*$", placeholder, project, flags=re.MULTILINE)
        (root / "pyproject.toml").write_text(project, encoding="utf-8")
        (found,) = self.problems(root)
        assert found.startswith("pyproject.toml: the address of the repository is a placeholder")
