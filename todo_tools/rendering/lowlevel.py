"""The parts that the views are made of, for programs that draw lists and runs their own way.

`show_*` and `follow_in_*` of `todo_tools.rendering` are made of these parts. Most programs need
only those.
"""

from todo_tools._list.formatting import one_line
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._lines import Line, Span
from todo_tools.rendering._live import LiveLines
from todo_tools.rendering._views import View

__all__ = [
    "Followed",
    "Line",
    "LiveLines",
    "Span",
    "View",
    "one_line",
]
