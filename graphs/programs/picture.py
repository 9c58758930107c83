"""Record the README's picture of a program in a terminal. Run by `make picture`."""

import sys
from pathlib import Path

from graphs.programs.animation import animate
from graphs.programs.recording import record

DEMO = Path(__file__).parent.parent / "demo.svg"


def draw_demo() -> str:
    """Record the demonstration in a terminal narrow enough for the screen of a phone."""
    frames = record([sys.executable, "-m", "todo_tools.demo"], columns=48, rows=22)
    return animate(frames, title="An agent says that it is done at 3 of 5, is sent back, finishes")


if __name__ == "__main__":
    DEMO.write_text(draw_demo(), encoding="utf-8")
    print(f"wrote {DEMO}")
