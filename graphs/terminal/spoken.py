"""A model's text: Markdown in a terminal, plain lines anywhere else."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, ClassVar, cast

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments.token import Comment, Keyword, Number, String  # type: ignore[import-untyped]
from rich.console import Console, ConsoleOptions
from rich.markdown import Heading, ListItem, Markdown, MarkdownElement, TableElement
from rich.style import Style
from rich.syntax import ANSISyntaxTheme
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from todo_tools.rendering.lowlevel import Line, Span, View, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType, RenderResult

# The whole text is shown: HTML, references, images and entities stay as they are written.
# The parser drops what is nested deeper than its limit; it is shown as plain lines long before.
_PARSER = (
    MarkdownIt("commonmark", {"html": False, "maxNesting": 100})
    .enable(["strikethrough", "table"])
    .disable(["reference", "image", "entity", "html_block", "html_inline"])
)

# Below this rich would leave no room for the text of lists and quotes in each other.
_FEWEST_COLUMNS, _COLUMNS_A_LEVEL = 10, 4
_COLUMNS_A_CELL = 8
# The colours of code, which can be read on a dark and on a light background.
_CODE = ANSISyntaxTheme(
    {
        Comment: Style(dim=True),
        Keyword: Style(color="magenta"),
        Number: Style(color="cyan"),
        String: Style(color="green"),
    }
)
_CELL_BREAK = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True, repr=False)
class Spoken(View):
    """An answer from the model, as one block."""

    text: str = ""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> "Iterable[RenderableType]":
        if not console.is_terminal or console.is_dumb_terminal or console.encoding != "utf-8":
            return View.__rich_console__(self, console, options)
        answer = _Harmless(self.text)
        if options.max_width < _FEWEST_COLUMNS + _COLUMNS_A_LEVEL * answer.depth:
            return View.__rich_console__(self, console, options)
        grid = Table.grid(padding=(0, 1))
        grid.add_column()
        grid.add_column(overflow="fold")  # rich would cut words that are longer than a row
        grid.add_row("💬", answer)
        return [grid]


def spoken(text: str) -> Spoken:
    """Show a model's text."""
    lines = list[Line]()
    for number, line in enumerate(text.splitlines()):
        mark = Span("   ", plain="") if number else Span("💬 ", plain="")
        lines.append(Line((Span(one_line(line)),), (mark,)))
    return Spoken(tuple(lines), text=text)


class _WholeTable(TableElement):
    """A table that loses nothing: long words are broken.

    The lines are shown as they are written if the columns do not fit, or if a row has more cells
    than the heading: Markdown ignores those.
    """

    def __init__(self, written: Sequence[str] = ()) -> None:
        super().__init__()
        self.written = written

    @override
    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        begin, end = token.map or (0, 0)
        return cls(markdown.markup.split("\n")[begin:end])

    @override
    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> "Iterable[RenderableType]":
        rows = (row.strip().removeprefix("|").removesuffix("|") for row in self.written)
        cells = [len(_CELL_BREAK.split(row)) for row in rows]
        if max(cells) > cells[0] or cells[0] * _COLUMNS_A_CELL > options.max_width:
            yield Text("\n".join(self.written))
            return
        for table in super().__rich_console__(console, options):
            assert isinstance(table, Table)
            for column in table.columns:
                column.overflow = "fold"
            yield table


class _WrittenNumber(ListItem):
    """An item with the number that the model wrote; rich counts on from the first one."""

    def __init__(self, number: str) -> None:
        super().__init__()
        self.number = number

    @override
    @classmethod
    def create(cls, markdown: Markdown, token: Token) -> MarkdownElement:
        return cls(token.info)

    @override
    def render_number(
        self, console: Console, options: ConsoleOptions, number: int, last_number: int
    ) -> "RenderResult":
        written = int(self.number)
        return super().render_number(console, options, written, max(written, last_number))


class _LeftHeading(Heading):
    """A heading at the left; rich centres the first level."""

    LEVEL_ALIGN: ClassVar = {}


class _Harmless(Markdown):
    """Markdown without active content that keeps each line of the text as a line."""

    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
        "list_item_open": _WrittenNumber,
        "table_open": _WholeTable,
    }

    def __init__(self, text: str) -> None:
        shown = "\n".join(one_line(line) for line in text.splitlines())
        super().__init__("", code_theme=cast("str", _CODE), hyperlinks=False)
        self.markup = shown
        self.parsed = _PARSER.parse(shown)
        inside = (t.nesting for t in self.parsed if t.type.startswith(("blockquote", "list_item")))
        self.depth = max(accumulate(inside), default=0)
        for token in self.parsed:
            for child in token.children or []:
                if child.type == "softbreak":
                    child.type = "hardbreak"
