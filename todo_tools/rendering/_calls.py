"""Draw a tool call as lines: the tool, the action and the arguments."""

from collections.abc import Iterator, Mapping
from typing import Any

from todo_tools._calls.answers import call_parts
from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import one_line
from todo_tools._list.todos import Token
from todo_tools.rendering._lines import Line, Span, counted

_MAIN = ("command", "query", "file_path", "path", "pattern", "url", "text", "task_id", "id")
_LONG = 100
_MOST_CHARACTERS = 1_000
_MOST_LINES = 12
_INDENT = (Span("    "),)


def call_lines(name: str, args: Mapping[str, Any], label: str = "") -> tuple[Line, ...]:
    """Draw a tool call as `Label: action main option=value`, with long texts on extra lines."""
    if name in TOOLS:
        return (_todo_call(name, args),)
    return tuple(_call(label or name, args))


def _todo_call(name: str, args: Mapping[str, Any]) -> Line:
    *parts, last = call_parts(name, args)
    spaced: list[tuple[str, Token]] = [*((f"{text} ", token) for text, token in parts), last]
    return Line(tuple(Span(text, token, bold=not at) for at, (text, token) in enumerate(spaced)))


def _call(title: str, args: Mapping[str, Any]) -> Iterator[Line]:
    rest = {name: value if isinstance(value, str) else repr(value) for name, value in args.items()}
    action = rest.pop("action", "")
    main = next((name for name in _MAIN if name in rest), next(iter(rest), None))
    spans = [Span(one_line(title) + (":" if action else ""), "toolTitle", bold=True)]
    if action:
        spans.append(Span(f" {one_line(action)}", "warning"))
    further = list[tuple[str, str]]()
    for name in sorted(rest, key=lambda name: name != main):
        text = one_line(rest[name])
        if len(text) > _LONG:
            further.append((name, rest[name]))
        elif name == main:
            spans.append(Span(f" {text}", "accent"))
        else:
            spans.append(Span(f" {one_line(name)}={text}", "muted"))
    yield Line(tuple(spans))
    for name, text in further:
        yield from _long(name, text, named=name != main)


def _long(name: str, text: str, *, named: bool) -> Iterator[Line]:
    """Draw a long text; if it is very long, cut it and say how many characters are missing."""
    if named:
        yield Line((Span(f"{one_line(name)}:", "muted"),), _INDENT)
    lines = text.replace("\r\n", "\n")[:_MOST_CHARACTERS].split("\n")[:_MOST_LINES]
    yield from (Line((Span(one_line(line), "muted"),), _INDENT) for line in lines)
    missing = len(text) - len("\n".join(lines))
    if missing > 0:
        yield Line((Span(f"… {counted(missing, 'more character')}", "dim"),), _INDENT)
