"""Draw the output of running tools for a place where lines are printed and never change."""

from collections.abc import Iterator
from dataclasses import dataclass

from todo_tools._list.formatting import one_line
from todo_tools.rendering._followed import KEPT_CHARACTERS, Followed
from todo_tools.rendering._lines import Line, Span

_NAME_WIDTH = 30
_BAR = Span("  │ ", "dim", plain="  | ")


class OutputLines:
    """Draws each line of output once; among several calls, it begins with the name of its call."""

    def __init__(self) -> None:
        self._answer: str | None = None
        self._sources = dict[str, _Source]()

    def after(self, followed: Followed) -> Iterator[Line]:
        """Draw the lines that are complete since the last call; the last one when it ends."""
        if followed.answer != self._answer:  # the calls of another turn may have the same ids
            for source in self._sources.values():
                yield from source.end()
            self._answer, self._sources = followed.answer, {}
        for call, text, length in followed.outputs:
            source = self._sources.setdefault(call, _Source(_lead(followed, call)))
            yield from source.take(text, length)
        running = {output.call for output in followed.outputs}
        for call, source in self._sources.items():
            if call not in running:
                yield from source.end()


@dataclass
class _Source:
    """A tool with output, and how much of it has been drawn."""

    lead: Span
    length: int = 0
    begun: str = ""
    """The text since the last line break."""

    def take(self, text: str, length: int) -> Iterator[Line]:
        """Draw the new lines of an output; `text` is its end, `length` its whole length."""
        new = text[-(length - self.length) :] if length > self.length else ""
        self.length = length
        *complete, begun = (self.begun + new).replace("\r\n", "\n").split("\n")
        self.begun = begun[-KEPT_CHARACTERS:]
        yield from map(self._drawn, complete)

    def end(self) -> Iterator[Line]:
        """Draw the last line if it has no line break."""
        begun, self.begun = self.begun, ""
        if begun:
            yield self._drawn(begun)

    def _drawn(self, text: str) -> Line:
        return Line((Span(one_line(text)),), (self.lead,))


def _lead(followed: Followed, call: str) -> Span:
    """Return the text before each line; it names the call if there are several in the turn."""
    if not followed.commands[1:]:
        return _BAR
    name = dict(followed.open).get(call, "")
    short = name if len(name) <= _NAME_WIDTH else f"{name[:_NAME_WIDTH]}…"
    text = f"  {followed.turn.index(call) + 1} {short} │ "
    return Span(text, "dim", plain=text.replace("…", "...").replace("│", "|"))
