"""Print the sizes of the repository beside what they may be: `make size`. It judges nothing."""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


class Size(NamedTuple):
    """A figure, the budget for it, and what is counted."""

    figure: int
    budget: str
    name: str


def lines(paths: Iterable[Path]) -> int:
    """The lines of files, as `wc -l` counts them."""
    return sum(path.read_bytes().count(b"\n") for path in paths)


def sizes(root: Path) -> Iterator[Size]:
    """Every figure of a checkout."""
    library = set((root / "todo_tools").rglob("*.py"))
    drawing = set((root / "todo_tools" / "rendering").rglob("*.py"))
    yield Size(lines(library - drawing), "5100, end 5500", "todo_tools without rendering, lines")
    yield Size(lines(drawing), "1950", "todo_tools/rendering, lines")
    public = [path for path in library if is_public(path.relative_to(root))]
    yield Size(sum(map(exported, public)), "56, end 62", "exported names")
    body, function = max(body for path in sorted(library) for body in bodies(path))
    yield Size(body, "40", f"longest function body, lines: {function}")
    module = max(sorted(library), key=lambda path: lines([path]))
    yield Size(lines([module]), "350", f"longest module, lines: {module.relative_to(root)}")
    for folder, budget in (
        ("graphs", "4300"),
        ("graphs/terminal", "3000"),
        ("graphs/terminal/tools", "1400"),
        ("tests", "30000, after the core 20500, end 22000"),
        ("tests/terminal", "2800"),
    ):
        yield Size(lines((root / folder).rglob("*.py")), budget, f"{folder}, lines of Python")
    apart = {"index.md", "reference.md", "fine-print.md", "promises.md"}
    pages = [path for path in (root / "docs").glob("*.md") if path.name not in apart]
    yield Size(len(pages), "14", "pages of docs for users")
    yield Size(lines(pages), "2000", "pages of docs for users, lines")
    yield Size(lines([root / "CHANGELOG.md"]), "80", "CHANGELOG.md, lines")
    words = (root / "README.md").read_text(encoding="utf-8").split()
    yield Size(len(words), "700", "README.md, words")


def is_public(path: Path) -> bool:
    """Whether no part of a module's name but `__init__` begins with an underscore."""
    return not any(
        part.startswith("_") for part in path.with_suffix("").parts if part != "__init__"
    )


def exported(path: Path) -> int:
    """How many names the literal `__all__` of a module has."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return len(ast.literal_eval(node.value))
    return 0


def bodies(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of each function's body without its docstring and the functions in it."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, functions):
            body = node.body[ast.get_docstring(node) is not None :]
            inner = [each for each in ast.walk(node) if isinstance(each, functions)]
            taken = {line for each in inner if each is not node for line in span(each)}
            numbers = {line for statement in body for line in span(statement)}
            yield len(numbers - taken), f"{node.name} in {path.name}"


def span(node: ast.stmt) -> range:
    """The numbers of the lines of a statement, with its decorators."""
    above = getattr(node, "decorator_list", [])
    return range(min(each.lineno for each in (node, *above)), (node.end_lineno or 0) + 1)


if __name__ == "__main__":
    for size in sizes(ROOT):
        sys.stdout.write(f"{size.figure:>6}  {size.budget:<38}  {size.name}\n")
