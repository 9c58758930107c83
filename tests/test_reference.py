"""The page of the API reference."""

import re

import reference

from tests.test_border import PUBLIC

PAGE = reference.PAGE.read_text(encoding="utf-8")


def test_it_is_what_the_docstrings_say() -> None:
    """After a change of a docstring or a signature, `make reference` writes it again."""
    assert reference.page() == PAGE


def test_it_has_every_public_name() -> None:
    """Each module has a section, with an entry for each of its names."""
    sections = re.split(r"^## `(.+)`$", PAGE, flags=re.MULTILINE)[1:]
    found = {
        module: " ".join(re.findall(r"^### `(.+)`$", section, re.MULTILINE))
        for module, section in zip(sections[::2], sections[1::2], strict=True)
    }
    assert found == {module: names for module, names in PUBLIC.items() if names}


def test_signatures_have_no_private_names() -> None:
    """Nobody could import them."""
    signatures = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(signatures) > 40
    assert re.findall(r"\b_\w+", " ".join(signatures)) == []
