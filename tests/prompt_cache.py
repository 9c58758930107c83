"""Anthropic's prompt cache: what a request writes and reads, and what it costs.

A request is one sequence of blocks: its tools, its system prompt, then the blocks of its messages.
An entry is the whole sequence up to a block with a `cache_control` mark. Not imitated are the
lifetime of entries and the length below which nothing is cached.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

CHARACTERS_PER_TOKEN = 4
"""The number of JSON characters that count as a token."""
WRITE_PRICE = 1.25
"""The price of a token that is written to the cache, in plain input tokens."""
READ_PRICE = 0.1
"""The price of a token that is read from the cache."""
OUTPUT_PRICE = 5
"""The price of a token that the model generates."""
LOOK_BACK = 20
"""How many blocks are searched for each mark, including the marked one."""

Request = Mapping[str, Any]
Prefix = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A tool, a part of the system prompt, or a content block of a message."""

    path: str
    """Its place in the request, as the API names it."""
    role: str
    """`tools`, `system`, or the role of its message."""
    content: Mapping[str, Any]

    @property
    def is_marked(self) -> bool:
        """Whether it has its own mark."""
        return "cache_control" in self.content

    @property
    def is_cacheable(self) -> bool:
        """Whether the mark of the whole request may apply to it."""
        return self.content.get("type") not in ("thinking", "redacted_thinking")

    @property
    def key(self) -> str:
        """The content that is compared: everything except the mark."""
        content = {name: value for name, value in self.content.items() if name != "cache_control"}
        return f"{self.role} {json.dumps(content, sort_keys=True)}"


def blocks_of(request: Request) -> list[Block]:
    """Return all blocks of a request in the order in which the API reads them.

    A string and a list with one text are the same block.
    """
    blocks = [Block(f"tools.{i}", "tools", tool) for i, tool in enumerate(request.get("tools", []))]
    blocks += _blocks("system", "system", request.get("system", []))
    for i, message in enumerate(request["messages"]):
        blocks += _blocks(f"messages.{i}.content", message["role"], message["content"])
    return blocks


def _blocks(path: str, role: str, content: str | list[dict[str, Any]]) -> Iterator[Block]:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for i, part in enumerate(parts):
        yield Block(f"{path}.{i}", role, part)


def prefix_of(blocks: Sequence[Block]) -> Prefix:
    """The content of the blocks, without their marks."""
    return tuple(block.key for block in blocks)


def marks_of(request: Request) -> list[int]:
    """The positions of the marked blocks, including the block of the request's own mark."""
    blocks = blocks_of(request)
    marks = {i for i, block in enumerate(blocks) if block.is_marked}
    if request.get("cache_control"):
        marks.add(max(i for i, block in enumerate(blocks) if block.is_cacheable))
    return sorted(marks)


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """The tokens of one request."""

    plain: int
    written: int
    read: int
    received: int
    marked: int
    """The tokens up to the last mark, which the next request of the conversation can read."""
    is_continued: bool
    """Whether this request contains everything that the last one marked, unchanged."""

    @property
    def cost(self) -> float:
        """The cost in plain input tokens."""
        written, read = WRITE_PRICE * self.written, READ_PRICE * self.read
        return self.plain + written + read + OUTPUT_PRICE * self.received


@dataclass
class Bill:
    """The charges of a conversation, request by request."""

    charges: list[Charge] = field(default_factory=list[Charge])

    @property
    def cost(self) -> float:
        """The cost of all requests, in plain input tokens."""
        return sum(charge.cost for charge in self.charges)

    @property
    def history_is_read(self) -> bool:
        """Whether each request reads everything from the cache that the one before it marked."""
        return all(
            later.is_continued and later.read >= earlier.marked > 0
            for earlier, later in pairwise(self.charges)
        )


class PromptCache:
    """The cache of one account, and the charges of its requests."""

    def __init__(self) -> None:
        self.bill = Bill()
        self._entries = set[Prefix]()
        self._last_marked: Prefix = ()

    def charge(self, request: Request, received: int) -> Charge:
        """Read a request from the cache, write its marked prefixes, and record its charge."""
        blocks = blocks_of(request)
        prefix, marks = prefix_of(blocks), marks_of(request)
        read = max((end for mark in marks for end in self._found(prefix, mark)), default=0)
        marked = marks[-1] + 1 if marks else 0
        charge = Charge(
            plain=_tokens(blocks[max(read, marked) :]),
            written=_tokens(blocks[read:marked]),
            read=_tokens(blocks[:read]),
            received=received,
            marked=_tokens(blocks[:marked]),
            is_continued=prefix[: len(self._last_marked)] == self._last_marked,
        )
        self._entries.update(prefix[: mark + 1] for mark in marks)
        self._last_marked = prefix[:marked]
        self.bill.charges.append(charge)
        return charge

    def _found(self, prefix: Prefix, mark: int) -> Iterator[int]:
        """The ends of the entries that a mark finds."""
        for end in range(mark + 1, max(mark + 1 - LOOK_BACK, 0), -1):
            if prefix[:end] in self._entries:
                yield end


def count_tokens(value: object) -> int:
    """Count the tokens of a JSON value, roughly."""
    return len(json.dumps(value)) // CHARACTERS_PER_TOKEN


def _tokens(blocks: Sequence[Block]) -> int:
    # Counted block by block, so that the parts of a request add up to the whole.
    return sum(len(block.key) // CHARACTERS_PER_TOKEN for block in blocks)
