"""What became of the items of an item runner, as text and as a page."""

from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from tests.pages import ELEMENTS, page
from tests.support import items
from todo_tools import ItemReport, create_item_runner
from todo_tools.rendering import show_reports


def report(text: str, **fields: Any) -> ItemReport:
    empty = ItemReport(
        text=text, status="completed", report="", reasons=[], calls=0, tokens=0, seconds=0
    )
    return ItemReport(**{**empty, **fields})  # type: ignore[typeddict-item]


def test_each_run_has_its_figures_and_its_first_line() -> None:
    """A refused answer was an attempt; an abandoned item shows the last reason; the end adds up."""
    done: Any = {"report": "\nTwo boards.\nOak.", "reasons": ["Too long"], "calls": 3}
    given_up: Any = {"status": "abandoned", "report": "Red?", "reasons": ["No brush", "No paint"]}
    reports = [
        report("Cut", **done, tokens=12_345, seconds=4.4),
        report("Paint", **given_up, calls=2, tokens=1, seconds=59.7),
    ]
    assert f"{show_reports({'reports': dict(enumerate(reports))})}".splitlines() == [
        "✓ Cut (2 attempts, 3 calls, 12,345 tokens, 4 seconds)",
        "  Two boards.",
        "✗ Paint (2 attempts, 2 calls, 1 token, 60 seconds)",
        "  No paint",
        "2 runs: 4 attempts, 5 calls, 12,346 tokens, 64 seconds",
    ]


def test_the_state_of_a_runner_is_shown() -> None:
    """One report needs no total, and a state without reports shows nothing."""

    def answer(_: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [AIMessage("Two boards.")]}

    begin: Any = {"todos": items("Cut")}
    final = create_item_runner(RunnableLambda(answer)).compile().invoke(begin)
    lines = ["✓ Cut (1 attempt, 1 call, 0 tokens, 0 seconds)", "  Two boards."]
    assert f"{show_reports(final)}".splitlines() == lines
    assert f"{show_reports(begin)}" == ""


def test_no_text_acts() -> None:
    """Items, reports and reasons are texts of models."""
    hostile = "<script>alert(1)</script>\u202e"
    for fields in ({"report": hostile}, {"status": "abandoned", "reasons": [hostile]}):
        read = page(show_reports({"reports": {"1": report(hostile, **fields)}}))
        assert set(read.tags) <= ELEMENTS
        assert read.text.count("<script>alert(1)</script><U+202E>") == 2
