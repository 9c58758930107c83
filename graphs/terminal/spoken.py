"""A model's text: Markdown in a terminal, plain lines anywhere else."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions
from rich.markdown import Markdown
from rich.table import Table

from todo_tools.rendering import Line, Span, View, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

# The whole text is shown: HTML, references, images and entities stay as they are written.
_PARSER = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["strikethrough", "table"])
    .disable(["reference", "image", "entity", "html_block", "html_inline"])
)


@dataclass(frozen=True, slots=True, repr=False)
class Spoken(View):
    """An answer from the model, as one block."""

    text: str = ""

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> "Iterable[RenderableType]":
        if not console.is_terminal or console.is_dumb_terminal or console.encoding != "utf-8":
            return View.__rich_console__(self, console, options)
        grid = Table.grid(padding=(0, 1))
        grid.add_row("💬", _Harmless(self.text))
        return [grid]


def spoken(text: str) -> Spoken:
    """Show a model's text."""
    lines = list[Line]()
    for number, line in enumerate(text.splitlines()):
        mark = Span("   ", plain="") if number else Span("💬 ", plain="")
        lines.append(Line((Span(one_line(line)),), (mark,)))
    return Spoken(tuple(lines), text=text)


class _Harmless(Markdown):
    """Markdown without active content that keeps each line of the text as a line."""

    def __init__(self, text: str) -> None:
        shown = "\n".join(one_line(line) for line in text.splitlines())
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = shown
        self.parsed = _PARSER.parse(shown)
        for token in self.parsed:
            for child in token.children or []:
                if child.type == "softbreak":
                    child.type = "hardbreak"
