"""Show the cost of each item as a table."""

from todo_tools._list.formatting import one_line
from todo_tools.ledger import Cost, Ledger
from todo_tools.rendering._lines import Line, Span
from todo_tools.rendering._views import View

_HEADINGS = ("share", "calls", "in", "cached", "out", "tools", "errors", "time")


def show_ledger(costs: Ledger) -> View:
    """Show the cost of each item of a list.

    Args:
        costs: The result of `todo_tools.ledger.ledger`.

    Returns:
        A table with a line for each item, the cost outside items, the total, the bookkeeping, and
        what finished items left out of the prompts.
        The columns are: share of all tokens, model calls, input tokens, cached input tokens, output
        tokens, tool calls, failed calls, and time. Empty columns are left out.

    Example:
        ```python
        print(show_ledger(ledger(state["messages"])))
        ```
    """
    total = costs.total
    named = [(_name(item.index), one_line(item.todo["text"]), item.cost) for item in costs.items]
    named += [("", "no item", costs.other), ("", "all", total)]
    named += [("", "bookkeeping (included above)", costs.bookkeeping)]
    tokens = total.usage["total_tokens"]
    shown = [(name, text, _cells(cost, tokens)) for name, text, cost in named]
    if costs.left_out:
        shown.append(("", "left out of prompts (not included)", _sent(f"~{costs.left_out:,}")))
    rows = [_HEADINGS, *(cells for *_, cells in shown)]
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    leads = ["".join(map(_padded, row, widths)) for row in zip(*columns, strict=True)]
    leads = leads or [""] * len(rows)  # a history without model calls has no columns
    return View(
        (
            Line((Span("item", "dim"),), (Span(leads[0], "dim"),)),
            *(
                Line((Span(text, "text" if name else "muted"),), (Span(lead), Span(name, "accent")))
                for lead, (name, text, _) in zip(leads[1:], shown, strict=True)
            ),
        )
    )


def _name(index: int | None) -> str:
    return "[-] " if index is None else f"[{index}] "


def _padded(cell: str, width: int) -> str:
    return cell.rjust(width) + "  "


def _sent(figure: str) -> tuple[str, ...]:
    """Return cells of which only that of the input tokens is filled."""
    return tuple(figure if heading == "in" else "" for heading in _HEADINGS)


def _cells(cost: Cost, tokens: int) -> tuple[str, ...]:
    usage = cost.usage
    figures = (
        cost.calls,
        usage["input_tokens"],
        usage.get("input_token_details", {}).get("cache_read", 0),
        usage["output_tokens"],
        sum(cost.tools.values()),
        cost.errors,
    )
    share = f"{usage['total_tokens'] / tokens:.0%}" if tokens else ""
    time = f"{cost.seconds:,.0f} s" if cost.seconds else ""
    return (share, *(f"{figure:,}" if figure else "" for figure in figures), time)
