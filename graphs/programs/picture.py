"""The pictures of the README: programs in a terminal, recorded. `make picture` makes them again."""

import sys
from pathlib import Path

from graphs.programs.animation import animate
from graphs.programs.recording import record

DEMO = Path(__file__).parent.parent / "demo.svg"


def draw_demo() -> str:
    """Record the demonstration, in a terminal so narrow that a telephone shows it."""
    frames = record([sys.executable, "-m", "todo_tools.demo"], columns=48, rows=22)
    return animate(frames, title="An agent says that it is done at 3 of 5, is sent back, finishes")


if __name__ == "__main__":
    DEMO.write_text(draw_demo(), encoding="utf-8")
    print(f"wrote {DEMO}")
