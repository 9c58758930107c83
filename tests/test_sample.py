"""`make sample` finds the texts of the repository, and draws the same ones for a seed."""

import sample

from tests.support import ROOT

MODULE = """
def check(name: str) -> None:
    if not name:
        raise ValueError(f"a name must not be empty, got {name!r}; "
                         "give one")
    if name == "calls":
        raise CapReachedError("calls")
    raise KeyError
"""

PAGE = """# Heading

A paragraph
on two lines.

- One item.
- Another item.

```python
x = 1  # no paragraph
```

| case | what happens |
| --- | --- |
| 10 | a row with words |

`TodoState`,
`model_view`
"""


def test_errors_show_what_is_put_into_them() -> None:
    """An error without a text is left out, and so is one whose text is a single word."""
    assert list(sample.errors(MODULE)) == [(4, "a name must not be empty, got {name}; give one")]


def test_paragraphs_and_items_are_found() -> None:
    """Code, headings, the rows of tables, and lists of names are not."""
    assert list(sample.paragraphs(PAGE)) == [
        (3, "A paragraph\non two lines."),
        (6, "- One item."),
        (7, "- Another item."),
    ]


def test_a_seed_draws_the_same_texts_of_all_kinds() -> None:
    """Ten of each; another seed draws others."""
    drawn = sample.sample(ROOT, seed=1)
    assert [len(texts) for texts in drawn.values()] == [10, 10, 10, 10]
    assert drawn == sample.sample(ROOT, seed=1) != sample.sample(ROOT, seed=2)
