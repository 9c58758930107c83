"""Directories that git knows."""

import subprocess
from pathlib import Path


def repository(folder: Path, *, committed: str) -> Path:
    """Make a directory with one committed file, `file`."""
    folder.mkdir(parents=True)
    (folder / "file").write_text(committed)
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "Begin"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder
