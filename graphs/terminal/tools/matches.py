"""Find the lines of files that contain a literal text."""

import os
import re
from pathlib import PurePosixPath

from deepagents.backends.protocol import ContextLine, GrepMatch

from graphs.terminal.tools.directory import Found


def matches_in(file: Found, pattern: str, context_lines: int, max_bytes: int) -> list[GrepMatch]:
    """Find a text, with the lines around it; very long files and binary files are skipped."""
    if file.size is None or file.size > max_bytes:
        return []
    try:
        text = file.read().decode()
    except UnicodeDecodeError:
        return []
    if pattern not in text:
        return []
    lines = [
        ContextLine(line=number, text=line)
        for number, line in enumerate(re.split("\r\n|\r|\n", text), 1)
    ]
    return [
        _match(file.path, line, lines, pattern, context_lines)
        for line in lines
        if pattern in line["text"]
    ]


def _match(
    path: PurePosixPath, line: ContextLine, lines: list[ContextLine], pattern: str, around: int
) -> GrepMatch:
    # A name may have bytes that are no text; they could not be sent to a model.
    match = GrepMatch(
        path=os.fsencode(path).decode(errors="replace"), line=line["line"], text=line["text"]
    )
    if around:
        index = line["line"] - 1
        before, after = lines[max(0, index - around) : index], lines[index + 1 :][:around]
        match["context_before"] = [other for other in before if pattern not in other["text"]]
        match["context_after"] = [other for other in after if pattern not in other["text"]]
    return match
