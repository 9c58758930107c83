"""Draw the output of running tools for a place where lines are printed and never change."""

from collections.abc import Iterator
from dataclasses import dataclass

from todo_tools._list.formatting import one_line
from todo_tools.rendering._followed import KEPT_CHARACTERS, Followed
from todo_tools.rendering._lines import Line, Span

_WIDTH = 30


def bar(followed: Followed, call: str = "") -> Span:
    """Draw what is before a line of output: the item, the call among several, and a bar."""
    names = [followed.item] if followed.item else []
    if call and followed.commands[1:]:
        names.append(f"{followed.turn.index(call) + 1} {dict(followed.open).get(call, '')}")
    cut = (name if len(name) <= _WIDTH else f"{name[:_WIDTH]}…" for name in names)
    text = " ".join([" ", *cut, "│ "])
    return Span(text, "dim", plain=text.replace("…", "...").replace("│", "|"))


class OutputLines:
    """Draws each line of output once; among several calls, it begins with the name of its call."""

    def __init__(self) -> None:
        self._sources = dict[tuple[str, str | None, str], _Source]()

    def after(self, followed: Followed) -> Iterator[Line]:
        """Draw the lines that are complete since the last call; the last one when it ends."""
        running = {  # the calls of another turn may have the same ids
            (item, each.answer, output.call): (each, output)
            for item, each in followed.conversations
            for output in each.outputs
        }
        for key in [key for key in self._sources if key not in running]:
            yield from self._sources.pop(key).end()
        for key, (each, (call, text, length)) in running.items():
            source = self._sources.setdefault(key, _Source(bar(each, call)))
            yield from source.take(text, length)


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
