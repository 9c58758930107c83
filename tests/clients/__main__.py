"""Build the interfaces and test with them, or say what is missing: `python -m tests.clients`."""

import shutil
import sys
from importlib.util import find_spec

import pytest

from tests.clients.build import NEEDS, build_all

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str:
    """What this machine lacks; empty if the tests can run."""
    if find_spec("playwright") is None:
        return "Python package playwright (dependency group `clients`)"
    if not any(map(shutil.which, BROWSERS)):
        return f"no browser: none of {', '.join(BROWSERS)} is on the PATH"
    return build_all()


def main() -> int:
    """Run the tests, unless something is missing."""
    if reason := missing():
        print(f"skipped: {reason}\n{NEEDS}")
        return 0
    return pytest.main(["tests/clients", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
