"""Draw texts of the repository at random, to be read as a stranger would: `make sample`.

At most one of the forty should need a second reading. `SAMPLE="--seed 7"` draws the same again.
"""

import argparse
import ast
import io
import random
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from secrets import randbelow
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
EACH = 10
"""How many texts of each kind are drawn."""

_CODE = ("todo_tools/**/*.py", "graphs/**/*.py", "evals/*.py", "benchmarks/*.py", "campaigns/*.py")
_PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/**/*.md",
    "graphs/**/*.md",
    "evals/*.md",
)
_MADE = "docs/reference.md"  # of docstrings
_MARK = re.compile(r"#\s*(noqa|type:|pragma)")
_CODE_SPAN = re.compile(r"`[^`]*`")
_NO_SENTENCE = ("#", "![", "<", "|")
_DEFINED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Text(NamedTuple):
    """A text, and where it is."""

    place: str
    text: str


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings of a module, each with its line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DEFINED) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def errors(source: str) -> Iterator[tuple[int, str]]:
    """The texts of the errors that a module raises; what is put into them is shown as `{...}`.

    A single word, such as the name of a limit, is no text.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            texts = [text for argument in node.exc.args if " " in (text := _text_of(argument))]
            if texts:
                yield node.lineno, " ".join(texts)


def _text_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(map(_text_of, values))
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case _:
            return ""


def comments(source: str) -> Iterator[tuple[int, str]]:
    """The comments of a module; those on lines one below the other are one comment."""
    block: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not _MARK.match(token.string):
            if block and token.start[0] != block[-1][0] + 1:
                yield _joined(block)
                block = []
            block.append((token.start[0], token.string.lstrip("# ")))
    if block:
        yield _joined(block)


def _joined(block: list[tuple[int, str]]) -> tuple[int, str]:
    return block[0][0], "\n".join(text for _, text in block)


def paragraphs(page: str) -> Iterator[tuple[int, str]]:
    """The paragraphs and items of a page, without headings, tables, code, names and pictures."""
    hidden = re.sub(
        r"^```.*?^```$", lambda code: "\n" * code[0].count("\n"), page, flags=re.M | re.S
    )
    line = 1
    for part in re.split(r"(\n\s*\n|\n(?=- |\| |\d\. ))", hidden):
        text = part.strip()
        if _CODE_SPAN.sub("", text).strip(", \n") and not text.startswith(_NO_SENTENCE):
            yield line, text
        line += part.count("\n")


KINDS: dict[str, tuple[tuple[str, ...], Callable[[str], Iterator[tuple[int, str]]]]] = {
    "docstrings": (_CODE, docstrings),
    "errors": (_CODE, errors),
    "comments": (_CODE, comments),
    "paragraphs": (_PAGES, paragraphs),
}


@cache
def texts_of(root: Path, kind: str) -> list[Text]:
    """All texts of a kind, in the order of their places."""
    patterns, find = KINDS[kind]
    paths = sorted({path for pattern in patterns for path in root.glob(pattern)} - {root / _MADE})
    return [
        Text(f"{path.relative_to(root)}:{line}", text)
        for path in paths
        for line, text in find(path.read_text(encoding="utf-8"))
    ]


def sample(root: Path, seed: int, each: int = EACH) -> dict[str, list[Text]]:
    """Draw texts of each kind."""
    draw = random.Random(seed)  # noqa: S311  a sample, no secret
    drawn = {}
    for kind in KINDS:
        texts = texts_of(root, kind)
        drawn[kind] = draw.sample(texts, min(each, len(texts)))
    return drawn


def main() -> None:
    """Print a sample."""
    parser = argparse.ArgumentParser(description="Draw texts of the repository at random.")
    parser.add_argument("--seed", type=int, default=randbelow(1_000_000), help="draw this sample")
    parser.add_argument("--each", type=int, default=EACH, help="texts of each kind; default 10")
    options = parser.parse_args()
    for kind, texts in sample(ROOT, options.seed, options.each).items():
        print(f"\n{kind.upper()}")
        for place, text in texts:
            print(f"\n{place}\n    " + text.replace("\n", "\n    "))
    print(
        f"\nWhat had to be read twice? The same again: make sample SAMPLE='--seed {options.seed}'"
    )


if __name__ == "__main__":
    main()
