"""Draw the calls and results of tools; an application can bring views of its own tools."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import ToolMessage

from todo_tools._calls.answers import format_call
from todo_tools._list.formatting import one_line
from todo_tools.rendering._calls import call_lines
from todo_tools.rendering._lines import Line, Span, result_lines


@dataclass(frozen=True, slots=True)
class ToolView:
    """How calls and results of a tool of your own are shown.

    Pass it by the name of the tool, as `views={"buy": ToolView(...)}`. The texts of its lines are
    escaped for you.

    Example:
        ```python
        from todo_tools.rendering.lowlevel import Line, Span

        view = ToolView(call=lambda args: [Line((Span(f"Buy {args.get('item', '')}", "accent"),))])
        assert str(show_call("buy", {"item": "Bread"}, views={"buy": view})) == "Buy Bread"
        ```
    """

    call: Callable[[Mapping[str, Any]], Sequence[Line] | None] | None = None
    """Returns the lines of a call, from its arguments as the model wrote them: they may have any
    shape. `None`, or no lines, means the usual form."""
    result: Callable[[ToolMessage], Sequence[Line] | None] | None = None
    """Returns the lines of a result. `None`, or no lines, means the usual form."""


ToolViews = Mapping[str, ToolView]

_USUAL = ToolView()
_SHORT = 200


def shown_call(
    name: str, args: Mapping[str, Any], label: str, views: ToolViews | None
) -> tuple[Line, ...]:
    """Draw a call in its own form or, if it has none, in the usual one."""
    return _own_call(name, args, views) or call_lines(name, args, label)


def short_call(name: str, args: Mapping[str, Any], views: ToolViews) -> str:
    """Format a call as one short line."""
    own = _own_call(name, args, views)
    return f"{own[0]}"[:_SHORT] if own else format_call(name, args)


def shown_result(message: ToolMessage, views: ToolViews | None) -> tuple[Line, ...]:
    """Draw a result in its own form or, if it has none, in the usual one."""
    own = (views or {}).get(message.name or "", _USUAL).result
    return _escaped(own(message) if own else None) or result_lines(message)


def _own_call(name: str, args: Mapping[str, Any], views: ToolViews | None) -> tuple[Line, ...]:
    own = (views or {}).get(name, _USUAL).call
    return _escaped(own(args) if own else None)


def _escaped(lines: Iterable[Line] | None) -> tuple[Line, ...]:
    """Escape the texts, which may be the model's."""

    def spans(given: tuple[Span, ...]) -> tuple[Span, ...]:
        return tuple(replace(span, text=one_line(span.text)) for span in given)

    return tuple(
        replace(line, body=spans(line.body), lead=spans(line.lead)) for line in lines or ()
    )
