"""Record the pictures of the README and the documentation: programs in a terminal.

Run by `make picture`.
"""

import sys
import tempfile
from pathlib import Path

from picture.animation import animate
from picture.recording import Frame, record

_ROOT = Path(__file__).resolve().parent.parent.parent
_PICTURES = _ROOT / "docs" / "pictures"
DEMO, BRANCHES = _PICTURES / "demo.svg", _PICTURES / "branches.svg"
ITEMS = _PICTURES / "items.svg"

_PASTED = "- [ ] Write the invitation\n- [ ] Invite Ann\n- [ ] Bake a cake"
_LIST = f"\x1b[200~{_PASTED}\x1b[201~\r"
_FINISHED = "Done (3 items) · your turn"
_TYPED = (
    ("your turn", 1.0, _LIST),
    (_FINISHED, 2.0, "/history\r"),
    ("stopped: finished", 3.0, "/fork 6\r"),
    ("On branch 2", 2.0, "/edit 1 Invite Bob\r"),
    ("[1] Invite Bob", 2.0, "/go\r"),
    (_FINISHED, 2.0, "/branches\r"),
    ("  2  ✓ Done", 2.0, "/exit\r"),
)
"""In the chat, a person waits to see a text, and needs a moment before each line."""
_TURNS = ("All done!", "sent back to work")


def record_demo() -> list[Frame]:
    """Record the demonstration in a terminal narrow enough for the screen of a phone."""
    return record([sys.executable, "-m", "todo_tools.demo"], columns=48, rows=22)


def draw_demo() -> str:
    """Draw the demonstration."""
    title = "An agent says that it is done at 3 of 5, is sent back, and finishes all 5"
    return animate(record_demo(), title=title, turns=_TURNS)


def record_branches() -> list[Frame]:
    """Record a chat in which a person goes back, changes an item, and sees both lists."""
    with tempfile.TemporaryDirectory() as folder:
        there = ["env", "-C", folder, f"PYTHONPATH={_ROOT}"]
        chat = ["-m", "graphs", "chat", "--grace", "0", "--thread", "party", "--workdir", "."]
        frames = record([*there, sys.executable, *chat], columns=56, rows=30, typed=_TYPED)
    return [frame for frame in frames if "/exit" not in str(frame)]


def draw_branches() -> str:
    """Draw the chat."""
    title = (
        "A chat goes back to an item and branches; the lists of the branches differ in that item"
    )
    return animate(record_branches(), title=title)


def record_items() -> list[Frame]:
    """Record an item runner with three items at work."""
    return record([sys.executable, str(Path(__file__).parent / "items.py")], columns=60, rows=22)


def draw_items() -> str:
    """Draw the item runner."""
    return animate(
        record_items(), title="Three items of six are at work; each is ticked at its end"
    )


if __name__ == "__main__":
    pictures = ((DEMO, draw_demo), (BRANCHES, draw_branches), (ITEMS, draw_items))
    for picture, draw in pictures:
        picture.write_text(draw(), encoding="utf-8")
        print(f"wrote {picture}")
