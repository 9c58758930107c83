"""What a browser reads from a drawn view."""

from html.parser import HTMLParser

from todo_tools.rendering.lowlevel import View

ELEMENTS = {"style", "div", "span", "bdi", "s", "samp", "b", "progress", "ul", "li"}
"""The elements that a view is drawn with."""


class Page(HTMLParser):
    """What a browser reads: the elements and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.pieces: list[str] = []
        self._in_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        if not self._in_style:
            self.pieces.append(data)

    @property
    def text(self) -> str:
        return "".join(self.pieces)


def page(view: View) -> Page:
    return Page(view._repr_html_())
