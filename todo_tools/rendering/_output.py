"""Draw the output of tools as lines to print: while they run, and the rest when they answer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from todo_tools._list.formatting import one_line
from todo_tools.rendering._followed import KEPT_CHARACTERS, Followed
from todo_tools.rendering._lines import Line, Span, counted

_LINES_AT_ONCE = 12
_NAME_WIDTH = 30
_BAR = Span("  │ ", "dim", plain="  | ")
_INDENT = (Span("  "),)
# A shell's answer marks the lines of its standard error; its output does not while it runs.
_STDERR = "[stderr] "


class OutputLines:
    """Draws the output of tools for a place where lines are printed and never change.

    Each line is drawn once. If several tools run at the same time and one of them has output while
    it runs, each line begins with the number and the name of its call.
    """

    def __init__(self) -> None:
        self._answer: str | None = None
        self._sources = dict[str, _Source]()

    def after(self, followed: Followed) -> tuple[Line, ...]:
        """Draw the lines that are complete since the last call.

        Of many lines that arrive at once, only the last ones are drawn, after a line with the
        number of the others. A line without a line break is complete when its tool has ended.
        """
        lines = list[Line]()
        if followed.answer != self._answer:  # the calls of another turn may have the same ids
            lines += (line for source in self._sources.values() for line in source.end())
            self._answer, self._sources = followed.answer, {}
        for call, _ in followed.open:
            if call and call not in self._sources:
                self._sources[call] = _Source(_lead(followed, call))
        for call, text, length in followed.outputs:
            lines += self._sources[call].take(text, length)
        running = {output.call for output in followed.outputs}
        for call, source in self._sources.items():
            lines += () if call in running else source.end()
        return tuple(lines)

    def result(self, call: str, lines: Sequence[Line]) -> tuple[Line, ...]:
        """Draw the end of a result, without the lines that were drawn while its tool ran."""
        source = self._sources.get(call, _Source(_BAR))
        lead = source.lead if any(each.length for each in self._sources.values()) else _BAR
        older, newest = (
            [line for line in part if not source.has_drawn(line)]
            for part in (lines[:-_LINES_AT_ONCE], lines[-_LINES_AT_ONCE:])
        )
        return tuple(_drawn(newest, len(older), lead))


@dataclass
class _Source:
    """A tool with output, and what has been drawn of it."""

    lead: Span
    length: int = 0
    begun: str = ""
    """The text since the last line break."""
    drawn: Counter[str] = field(default_factory=Counter[str])

    def take(self, text: str, length: int) -> Iterator[Line]:
        """Draw the new lines of an output; `text` is its end, `length` its whole length."""
        new = text[-(length - self.length) :] if length > self.length else ""
        self.length = length
        *complete, begun = (self.begun + new).replace("\r\n", "\n").split("\n")
        self.begun = begun[-KEPT_CHARACTERS:]
        yield from self._draw(complete)

    def end(self) -> Iterator[Line]:
        """Draw the last line if it has no line break."""
        begun, self.begun = self.begun, ""
        yield from self._draw([begun] if begun else [])

    def has_drawn(self, line: Line) -> bool:
        """Whether a line of the result was drawn before; each drawn line counts once."""
        text = str(line).removeprefix(_STDERR)
        self.drawn[text] -= 1
        return self.drawn[text] >= 0

    def _draw(self, texts: Sequence[str]) -> Iterator[Line]:
        lines = [Line((Span(one_line(text)),)) for text in texts]
        self.drawn.update(map(str, lines))
        newest = lines[-_LINES_AT_ONCE:]
        yield from _drawn(newest, len(lines) - len(newest), self.lead)


def _lead(followed: Followed, call: str) -> Span:
    """The text before each line; it names the call if there are several in the turn."""
    if not followed.commands[1:]:
        return _BAR
    name = dict(followed.open).get(call, "")
    short = name if len(name) <= _NAME_WIDTH else f"{name[:_NAME_WIDTH]}…"
    text = f"  {followed.turn.index(call) + 1} {short} │ "
    return Span(text, "dim", plain=text.replace("…", "...").replace("│", "|"))


def _drawn(lines: Sequence[Line], hidden: int, lead: Span) -> Iterator[Line]:
    if hidden:
        yield Line((Span(f"({counted(hidden, 'line')} not shown)", "dim"),), _INDENT)
    yield from (replace(line, lead=(lead, *line.lead)) for line in lines)
