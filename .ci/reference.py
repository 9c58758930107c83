"""Write `docs/reference.md` from the docstrings of the public names: `make reference`."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any

import griffe

PAGE = Path(__file__).parent.parent / "docs" / "reference.md"
_WIDTH = 100


class _Settings(griffe.Extension):
    """Take pydantic's dataclasses for those of Python, which griffe knows."""

    def on_alias_instance(self, *, alias: griffe.Alias, **_: Any) -> None:
        alias.target_path = alias.target_path.removeprefix("pydantic.")


def modules(module: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The public modules that export names, each with what it exports."""
    if module.exports:
        yield module, [module[f"{name}"] for name in module.exports]
    for name, inner in sorted(module.modules.items()):
        if not name.startswith("_"):
            yield from modules(inner)


_PACKAGE: Any = griffe.load("todo_tools", extensions=griffe.load_extensions(_Settings))
_PUBLIC = {entry.canonical_path for _, entries in modules(_PACKAGE) for entry in entries}


def code(part: Any) -> str:
    """An expression, with the values of private names in their place."""
    match part:
        case griffe.ExprAttribute() if part.canonical_path.startswith("todo_tools."):
            return code(part.last)
        case griffe.ExprSubscript(griffe.ExprName("Annotated"), griffe.ExprTuple([kind, *_])):
            return code(kind)
        case griffe.ExprCall(griffe.ExprName("TypeVar"), [*_, griffe.ExprKeyword(value=bound)]):
            return code(bound)
        case griffe.ExprName(name):
            _, is_ours, path = part.canonical_path.partition("todo_tools.")
            thing = _PACKAGE[path] if is_ours and part.canonical_path not in _PUBLIC else None
            if thing and thing.is_attribute:
                return value if len(value := code(thing.value)) < _WIDTH else "..."
            return "dict[str, Any]" if thing and "TypedDict" in map(str, thing.bases) else name
        case griffe.Expr():
            return "".join(map(code, part.iterate(flat=False)))
    return (part or "").replace("'", '"')


def signature(entry: Any) -> str:
    """The head of a class or function, with a line for each parameter if it is long."""
    if entry.is_class and not entry.parameters:
        keys = [f"\n    {name}: {code(key.annotation)}" for name, key in entry.members.items()]
        return "".join([f"class {entry.name}({', '.join(map(code, entry.bases))}):", *keys])
    for each in entry.parameters:  # a comma in a type or a default separates no parameters
        each.annotation = code(each.annotation).replace(", ", ",\0") or None
        each.default = code(each.default).replace(", ", ",\0") or None
    head: str = "async " * ("async" in entry.labels) + entry.signature(return_type=False)
    end = f" -> {code(entry.returns)}" if entry.is_function else ""
    if len(head + end) > _WIDTH:
        head = head[:-1].replace("(", "(\n    ", 1).replace(", ", ",\n    ") + ",\n)"
    return head.replace("\0", " ") + end


def sections(entry: Any) -> Iterator[str]:
    """What the docstring of a name says, and those of a class's own members."""
    options = {"returns_named_value": False, "returns_multiple_items": False}
    for section in entry.docstring.parse("google", **options) if entry.docstring else ():
        match section.kind.value, section.value:
            case "parameters", found:
                yield _rows("Arguments", [(each.name, each.description) for each in found])
            case "raises", found:
                yield _rows("Raises", [(each.annotation, each.description) for each in found])
            case "returns", [found]:  # griffe takes what stands before a colon for a type
                start = "" if found.annotation == entry.returns else f"{found.annotation}: "
                yield f"**Returns**\n\n{start}{found.description}"
            case _, text:
                yield f"**{section.title}**\n\n{text.contents}" if section.title else text
    members = entry.members.values() if entry.is_class else ()
    if own := [each for each in members if each.docstring and not each.name.startswith("_")]:
        yield _rows("Members", [(each.name, each.docstring.value.split("\n\n")[0]) for each in own])


def _rows(title: str, rows: list[tuple[Any, str]]) -> str:
    lines = (f"- `{name}`: {text}".replace("\n", "\n  ") for name, text in rows)
    return f"**{title}**\n\n" + "\n".join(lines)


def page() -> str:
    """The whole page."""
    parts = [
        "# API reference",
        "These are the public names, by module; everything else may change in any release.",
        "<!-- `make reference` writes this page from the docstrings. -->",
    ]
    for module, entries in modules(_PACKAGE):
        links = " ".join(f"[`{each.name}`](#{each.name.lower()})," for each in entries)[:-1]
        parts += [f"## `{module.path}`", *sections(module), fill(links, 140)]
        for each in entries:  # `py`: to tests of pages, a signature is no program
            head = "" if each.is_attribute else f"\n\n```py\n{signature(each)}\n```"
            parts += [f"### `{each.name}`{head}", *sections(each)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
