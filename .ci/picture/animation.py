"""Draw a terminal recording as an animated SVG.

The SVG needs no script and no external font, so it plays as an ordinary picture in a README. Each
different row is drawn once. CSS shows it at the places and times at which the screen showed it.
Viewers without animation show the last frame.
"""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from unicodedata import east_asian_width

from picture.recording import Frame, Row

# Seconds that the last frame is shown before and after the recording.
_BEFORE, _AFTER = 2.0, 4.0
_HELD, _LONGEST_PAUSE = 2.5, 2.5

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


_STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    f"white-space:pre;fill:{_COLORS['default']}}}"
    ".h{visibility:hidden}.b{font-weight:bold}.s{text-decoration:line-through}"
    "#m{fill:#e3b341;fill-opacity:.22}"
    + "".join(f".{name}{{fill:{color}}}" for name, color in _COLORS.items())
)


def animate(frames: Sequence[Frame], *, title: str, turns: Sequence[str] = ()) -> str:
    """Draw a recording.

    Args:
        frames: What `graphs.terminal.recording.record` returned.
        title: The text for readers who cannot see the picture.
        turns: Texts of its turning points: their rows are marked, and the first frame with such a
            text is held for a moment.

    Returns:
        The SVG, which plays in a loop.
    """
    frames = _timed([frame for frame in frames if _trimmed(frame)], turns)
    last = frames[-1]
    begin = _BEFORE - frames[0].at  # a program prints nothing for a moment after its start
    length = begin + last.at + _AFTER
    shown = [Frame(0.0, last.rows), *(Frame(frame.at + begin, frame.rows) for frame in frames)]
    height = max(len(_trimmed(frame)) for frame in frames)
    columns = max(_width(row) for frame in frames for row in frame.rows)
    drawn: dict[Row, str] = {}
    keyframes: dict[str, str] = {}
    uses: list[str] = []
    for y in range(height):
        for row, spans in _times(shown, y, length).items():
            rule = _keyframes(spans, length)
            name = keyframes.setdefault(rule, f"k{len(keyframes)}")
            place = f'href="#{drawn.setdefault(row, f"r{len(drawn)}")}" y="{y * _LINE}"'
            hidden = "" if row == last.rows[y] else ' class="h"'
            if any(text in _text_of(row) for text in turns):
                uses.append(
                    f'<use href="#m" y="{y * _LINE}"{hidden} style="animation-name:{name}"/>'
                )
            uses.append(f'<use {place}{hidden} style="animation-name:{name}"/>')
    width, tall = columns * _CELL + 2 * _MARGIN, height * _LINE + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {tall}" '
        f'width="{width:.0f}" height="{tall}" role="img">'
        f"<title>{escape(title)}</title>"
        f"<style>{_STYLE}use{{animation:{length:.1f}s step-end infinite}}"
        "@media (prefers-reduced-motion:reduce){use{animation:none}}"
        f"{''.join(f'@keyframes {name}{{{rule}}}' for rule, name in keyframes.items())}</style>"
        '<rect width="100%" height="100%" rx="8" fill="#161b22"/>'
        f'<defs><rect id="m" x="4" y="{_MARGIN}" width="{width - 8:.0f}" height="{_LINE}" rx="3"/>'
        f"{''.join(_text(row, name) for row, name in drawn.items())}</defs>"
        f"{''.join(uses)}</svg>\n"
    )


def _timed(frames: Sequence[Frame], turns: Sequence[str]) -> list[Frame]:
    """Hold the turning points, and shorten the pauses in which the machine was busy."""
    timed = list[Frame]()
    left = list(turns)
    at = before = frames[0].at
    for frame in frames:
        at += min(frame.at - before, _LONGEST_PAUSE)
        before = frame.at
        timed.append(Frame(at, frame.rows))
        if any(text in str(frame) for text in left):
            left = [text for text in left if text not in str(frame)]
            at += _HELD
    return timed


def _times(frames: Sequence[Frame], y: int, length: float) -> dict[Row, list[tuple[float, float]]]:
    """Where and when each row was shown: its height, and from and to in seconds."""
    times: dict[Row, list[tuple[float, float]]] = {}
    changes = [(row, next(run).at) for row, run in groupby(frames, lambda frame: frame.rows[y])]
    ends = [at for _, at in changes[1:]] + [length]
    for (row, start), end in zip(changes, ends, strict=True):
        if row:
            times.setdefault(row, []).append((start, end))
    return times


def _trimmed(frame: Frame) -> Sequence[Row]:
    rows = list(frame.rows)
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _text_of(row: Row) -> str:
    return "".join(text for _, text in row)


def _width(row: Row) -> int:
    return sum(_columns(text) for _, text in row)


def _columns(text: str) -> int:
    return sum(1 + (east_asian_width(character) in "WF") for character in text)


def _keyframes(spans: Sequence[tuple[float, float]], length: float) -> str:
    """When a row is visible, in percent of the whole duration."""
    rule = "" if spans[0][0] == 0 else "0%{visibility:hidden}"
    for start, end in spans:
        rule += f"{start / length:.2%}{{visibility:visible}}"
        rule += f"{end / length:.2%}{{visibility:hidden}}" if end < length else ""
    return rule


def _text(row: Row, name: str) -> str:
    """One row. Each run of text has a fixed position and width, so that no font can shift it."""
    spans: list[str] = []
    column = 0
    for (color, bold, strike), text in row:
        names = [color] if color != "default" else []
        names += ["b"] * bold + ["s"] * strike
        if drawn := text.strip():  # not all viewers keep blanks
            shown = f' class="{" ".join(names)}"' if names else ""
            x = _MARGIN + (column + len(text) - len(text.lstrip())) * _CELL
            at = f'x="{x:.0f}" textLength="{_columns(drawn) * _CELL:.0f}"'
            spans.append(f"<tspan {at}{shown}>{escape(drawn)}</tspan>")
        column += _columns(text)
    return f'<text id="{name}" y="{_MARGIN + 14}">{"".join(spans)}</text>'
