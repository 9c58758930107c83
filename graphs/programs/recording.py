"""Recording a program in a terminal, and drawing the recording as an animated SVG.

The SVG needs no script and no font from elsewhere, so that it moves as a plain picture in a README.
Each row of the screen is drawn once for each time that it is shown; CSS makes it visible then.
Where nothing moves, the last frame is shown.
"""

import os
import pty
import select
import struct
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fcntl import ioctl
from html import escape
from itertools import groupby
from termios import TIOCSWINSZ
from typing import Any
from unicodedata import east_asian_width

import pyte

_STEP = 0.1
_HOLD = 4.0
_POSTER = 2.0

# The look of a cell: colour, bold, struck through.
_Look = tuple[str, bool, bool]
_Row = tuple[tuple[_Look, str], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """What a terminal shows from a moment on."""

    at: float
    """Seconds since the start."""
    rows: tuple[_Row, ...]
    """Runs of text of one look, row by row."""

    def __str__(self) -> str:
        return "\n".join("".join(text for _, text in row).rstrip() for row in self.rows)


class _Screen(pyte.Screen):
    """A terminal that knows faint text, which pyte leaves out."""

    def select_graphic_rendition(self, *attrs: int, **kwargs: Any) -> None:
        super().select_graphic_rendition(*(90 if attr == 2 else attr for attr in attrs), **kwargs)  # noqa: PLR2004


def record(
    command: Sequence[str], *, columns: int, rows: int, env: dict[str, str] | None = None
) -> list[Frame]:
    """Run a program in a terminal of its own and keep what it shows.

    Args:
        command: The program and its arguments.
        columns: Width of the terminal.
        rows: Height of the terminal.
        env: More environment variables.

    Returns:
        A frame for each tenth of a second in which the screen changed.

    Raises:
        subprocess.CalledProcessError: The program failed.
    """
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": "", **(env or {})}
    variables = {name: value for name, value in variables.items() if value}
    with subprocess.Popen(  # noqa: S603  the caller's own command
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables, start_new_session=True
    ) as process:
        os.close(theirs)
        frames = list(_frames(ours, columns, rows))
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return frames


def _frames(terminal: int, columns: int, rows: int) -> Iterator[Frame]:
    screen = _Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    start, shown = time.monotonic(), None
    while True:
        until = time.monotonic() + _STEP
        is_open = True
        while is_open and (rest := until - time.monotonic()) > 0:
            if select.select([terminal], [], [], rest)[0]:
                read = _read(terminal)
                is_open = bool(read)
                stream.feed(read)
        now = tuple(_row(screen, y) for y in range(rows))
        if now != shown:
            yield Frame(round(time.monotonic() - start, 1), now)
            shown = now
        if not is_open:
            return


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the program has closed its side
        return b""


def _row(screen: pyte.Screen, y: int) -> _Row:
    cells = [screen.buffer[y][x] for x in range(screen.columns)]
    looks = groupby(cells, lambda cell: (cell.fg, cell.bold, cell.strikethrough))
    row = [(look, "".join(cell.data for cell in run)) for look, run in looks]
    while row and not row[-1][1].strip():
        row.pop()
    return tuple(row)


_COLORS = {
    "default": "#d8dee9",
    "brightblack": "#8b96a8",
    "red": "#ff7b72",
    "green": "#7ee787",
    "brown": "#f2cc60",
    "cyan": "#76e3ea",
    "blue": "#79c0ff",
    "magenta": "#d2a8ff",
}
_CELL, _LINE, _MARGIN = 8.4, 19, 14


def animate(frames: Sequence[Frame], *, title: str) -> str:
    """Draw a recording.

    Args:
        frames: What `record` returned.
        title: What a reader is told who cannot see it.

    Returns:
        The SVG, which plays again and again.
    """
    last = frames[-1]
    length = _POSTER + last.at + _HOLD
    shown = [Frame(0.0, last.rows), *(Frame(f.at + _POSTER, f.rows) for f in frames)]
    height = max(len(_trimmed(frame)) for frame in frames)
    columns = max(_width(row) for frame in frames for row in frame.rows)
    keyframes: dict[str, str] = {}
    drawn: dict[_Row, str] = {}
    uses: list[str] = []
    for y in range(height):
        times: dict[_Row, list[tuple[float, float]]] = {}
        for row, run in groupby(enumerate(shown), lambda item: item[1].rows[y]):
            places = [place for place, _ in run]
            after = places[-1] + 1
            end = shown[after].at if after < len(shown) else length
            if row:
                times.setdefault(row, []).append((shown[places[0]].at, end))
        for row, spans in times.items():
            rule = _keyframes(spans, length)
            name = keyframes.setdefault(rule, f"k{len(keyframes)}")
            hidden = "" if row == last.rows[y] else ' class="h"'
            place = f'href="#{drawn.setdefault(row, f"r{len(drawn)}")}" y="{y * _LINE}"'
            uses.append(f'<use {place}{hidden} style="animation-name:{name}"/>')
    texts = "".join(_text(row, name) for row, name in drawn.items())
    rules = "".join(f"@keyframes {name}{{{rule}}}" for rule, name in keyframes.items())
    width, tall = columns * _CELL + 2 * _MARGIN, height * _LINE + 2 * _MARGIN
    colors = "".join(f".{name}{{fill:{color}}}" for name, color in _COLORS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {tall}" role="img">'
        f"<title>{escape(title)}</title><style>"
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
        f"white-space:pre;fill:{_COLORS['default']}}}use{{animation:{length:.1f}s step-end infinite}}"
        f".h{{visibility:hidden}}.b{{font-weight:bold}}.s{{text-decoration:line-through}}{colors}"
        "@media (prefers-reduced-motion:reduce){use{animation:none}}"
        f"{rules}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#161b22"/>'
        f"<defs>{texts}</defs>{''.join(uses)}</svg>\n"
    )


def _trimmed(frame: Frame) -> Sequence[_Row]:
    rows = list(frame.rows)
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _width(row: _Row) -> int:
    return sum(_columns(text) for _, text in row)


def _columns(text: str) -> int:
    return sum(1 + (east_asian_width(character) in "WF") for character in text)


def _keyframes(spans: Sequence[tuple[float, float]], length: float) -> str:
    """When a row is visible, in hundredths of the whole."""
    rule = "" if spans[0][0] == 0 else "0%{visibility:hidden}"
    for start, end in spans:
        rule += f"{start / length:.2%}{{visibility:visible}}"
        rule += f"{end / length:.2%}{{visibility:hidden}}" if end < length else ""
    return rule


def _text(row: _Row, name: str) -> str:
    """One row. Each run has a place and a width of its own, so that no font can shift it."""
    spans: list[str] = []
    column = 0
    for (color, bold, strike), text in row:
        names = [color] if color != "default" else []
        names += ["b"] * bold + ["s"] * strike
        width = _columns(text)
        if text.strip():
            shown = f' class="{" ".join(names)}"' if names else ""
            at = f'x="{_MARGIN + column * _CELL:.0f}" textLength="{width * _CELL:.0f}"'
            spans.append(f"<tspan {at}{shown}>{escape(text)}</tspan>")
        column += width
    return f'<text id="{name}" y="{_MARGIN + 14}">{"".join(spans)}</text>'
