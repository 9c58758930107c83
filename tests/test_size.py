"""The figures of `make size`."""

from pathlib import Path

import size

MODULE = '''"""A module."""

__all__ = ["outer"]


def outer() -> int:
    """A docstring is not counted."""

    @staticmethod
    def inner() -> int:
        return 1

    return inner()
'''


def test_names_and_bodies_are_counted(tmp_path: Path) -> None:
    """A body is counted without its docstring and the functions in it."""
    path = tmp_path / "module.py"
    path.write_text(MODULE, encoding="utf-8")
    assert size.exported(path) == 1
    assert list(size.bodies(path)) == [(1, "outer in module.py"), (1, "inner in module.py")]
    assert [size.is_public(Path(name)) for name in ("a/__init__.py", "a/_b/c.py")] == [True, False]


def test_every_figure_of_this_checkout_has_a_budget() -> None:
    """So a folder that is renamed is noticed."""
    for each in size.sizes(size.ROOT):
        assert each.figure > 0, each.name
        assert each.budget
