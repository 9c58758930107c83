"""The forms that an application brings for the calls and results of its own tools."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage

from tests.support import items
from todo_tools.rendering import ToolView, show_call, show_messages, show_result
from todo_tools.rendering.lowlevel import Followed, Line, Span
from todo_tools.testing import call, turn


def draw_call(args: Mapping[str, Any]) -> list[Line] | None:
    """Nothing for a call without an item."""
    if "item" not in args:
        return None
    lines = [Line((Span(f"Buy {args['item']}", "accent"),), (Span("+ "),))]
    return [*lines, Line((Span("at the shop"),))]


def draw_result(message: ToolMessage) -> list[Line] | None:
    return [Line((Span(f"bought {message.artifact}"),))] if message.artifact else None


VIEWS = {"buy": ToolView(call=draw_call, result=draw_result)}
HOSTILE = "a\n\x1b[2J"


def bought(artifact: Any, name: str | None = "buy") -> ToolMessage:
    return ToolMessage("text", name=name, tool_call_id="1", artifact=artifact)


def test_calls_and_results_have_the_form_of_the_application() -> None:
    messages = [turn("", call("buy", item="Bread")), bought(2)]
    assert f"{show_messages(messages, views=VIEWS)}".split("\n") == [
        "→  Buy Bread",
        "   at the shop",
        "   │ bought 2",
    ]
    assert f"{show_call('buy', {'item': 'Bread'}, views=VIEWS)}" == "+ Buy Bread\nat the shop"
    assert f"{show_result(bought(2), views=VIEWS)}" == "bought 2"


def test_a_form_may_leave_what_it_does_not_know_to_the_usual_one() -> None:
    """So do an empty view, and a result without the name of its tool."""
    assert f"{show_call('buy', {'count': 2}, label='Buy', views=VIEWS)}" == "Buy 2"
    for result in (bought(None), bought(2, name=None)):
        assert f"{show_result(result, views=VIEWS)}" == "text"
    assert f"{show_call('buy', {'item': 1}, views={'buy': ToolView()})}" == "buy 1"


def test_what_a_form_shows_is_escaped() -> None:
    """A model cannot break its line or send control codes through it."""
    assert f"{show_call('buy', {'item': HOSTILE}, views=VIEWS)}".startswith("+ Buy a␊␛[2J\n")
    assert f"{show_result(bought(HOSTILE), views=VIEWS)}" == "bought a␊␛[2J"


def test_a_run_shows_the_first_line_of_the_call_that_runs() -> None:
    """Calls in subgraphs have the form, too."""
    for path in ((), ("child:1",)):
        answer = turn("", call("buy", item="x" * 300), call("buy", count=2))
        chunk = (path, ("updates", {"agent": {"messages": [answer], "todos": items("a")}}))
        followed = Followed(views=VIEWS).after(chunk)
        shown = dict(followed.below)[path].open if path else followed.open
        assert [text for _, text in shown] == [f"+ Buy {'x' * 194}", "buy 2"]
