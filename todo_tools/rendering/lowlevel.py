"""The parts that the views are made of, for programs that draw lists and runs their own way.

`todo_tools.rendering` is made of these parts; most programs need only that.
"""

from todo_tools._list.formatting import one_line
from todo_tools.rendering._followed import Followed
from todo_tools.rendering._lines import Line, Span
from todo_tools.rendering._live import LiveLines
from todo_tools.rendering._views import View

__all__ = ["Followed", "Line", "LiveLines", "Span", "View", "one_line"]
