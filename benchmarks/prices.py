"""The cost of a run's input tokens under price lists, in units of one input token.

A prompt is a sequence of blocks in the order in which providers read it: tools, system prompt,
messages. Two prompts share a prefix when their first blocks are equal byte for byte.

The lifetime of an entry is left out (here: the whole run), because it does not depend on the todo
list.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

READ = 0.1
"""The price of an input token that is read from a cache."""
WRITE = 1.25
"""The price of an input token that is written to a marked cache."""
RECEIVED = 5
"""The price of a token that the model generates."""
SMALLEST = 1_024
"""The smallest prefix, in tokens, that many providers cache."""
MAX_MARKS = 4
LOOK_BACK = 20


@dataclass(frozen=True)
class Block:
    """A piece of a prompt that a provider caches whole or not at all."""

    content: str
    tokens: int


@dataclass(frozen=True)
class Prompt:
    """The prompt of one model call."""

    blocks: tuple[Block, ...]
    marks: tuple[int, ...] = ()
    """The positions of the blocks with a cache mark, in order."""


PriceList = Callable[[Sequence[Prompt]], float]


def uncached(prompts: Sequence[Prompt]) -> float:
    """Every token costs 1."""
    return sum(_tokens(prompt.blocks) for prompt in prompts)


def automatic(prompts: Sequence[Prompt], smallest: int = 0) -> float:
    """The longest prefix shared with an earlier prompt is read from the cache; the rest costs 1.

    A prefix of fewer tokens than `smallest` is not cached.

    Sources: OpenAI, "Prompt caching" (developers.openai.com/api/docs/guides/prompt-caching);
    Google, "Context caching", implicit caching (ai.google.dev/gemini-api/docs/caching); DeepSeek,
    "Context Caching" (api-docs.deepseek.com/guides/kv_cache). Some older models charge a quarter
    or a half for what is read, instead of a tenth.
    """
    numbers = _Numbers()
    cost = 0.0
    for prompt in prompts:
        known = len(numbers)
        prefixes = numbers.of(prompt)
        read = sum(number < known for number in prefixes)
        if _tokens(prompt.blocks[:read]) < smallest:
            read = 0
        cost += READ * _tokens(prompt.blocks[:read]) + _tokens(prompt.blocks[read:])
    return cost


def marked(prompts: Sequence[Prompt], smallest: int = 0) -> float:
    """An entry is written only at marks, and found by a mark shortly after it.

    A mark looks for an entry at its own block and the 19 before it. The longest entry found is
    read; what follows up to the last mark is written; what follows the last mark costs 1. A mark
    behind fewer tokens than `smallest` does nothing.

    Source: Anthropic, "Prompt caching" (platform.claude.com/docs/en/build-with-claude/
    prompt-caching), with the prices of an entry that lives for five minutes. There a run of tool
    calls, or of results, counts as one block of the look-back; here each counts.

    Raises:
        ValueError: A prompt has more than four marks.
    """
    numbers = _Numbers()
    entries = set[int]()
    cost = 0.0
    for prompt in prompts:
        if len(prompt.marks) > MAX_MARKS:
            raise ValueError(
                f"a prompt may have at most {MAX_MARKS} marks, got {len(prompt.marks)}"
            )
        prefixes = numbers.of(prompt)
        sizes = list(accumulate(block.tokens for block in prompt.blocks))
        marks = [mark for mark in prompt.marks if sizes[mark] >= smallest]
        read = max((_found(mark, prefixes, entries) for mark in marks), default=0)
        written = max(marks, default=-1) + 1
        cost += READ * _tokens(prompt.blocks[:read])
        cost += WRITE * _tokens(prompt.blocks[read:written])
        cost += _tokens(prompt.blocks[written:])
        entries.update(prefixes[mark] for mark in marks)
    return cost


PRICE_LISTS: dict[str, PriceList] = {
    "no cache": uncached,
    "automatic": automatic,
    "marked": marked,
    f"automatic from {SMALLEST:,}": partial(automatic, smallest=SMALLEST),
    f"marked from {SMALLEST:,}": partial(marked, smallest=SMALLEST),
}
"""The last two cache no prefix below a smallest one."""


def received(tokens: int) -> float:
    """The cost of the output, which no cache changes."""
    return RECEIVED * tokens


class _Numbers:
    """A number for every prefix of the prompts so far; equal prefixes have equal numbers."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Block], int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, prompt: Prompt) -> list[int]:
        """The numbers of a prompt's prefixes, shortest first; a new one gets the next number."""
        numbers = list[int]()
        last = -1
        for block in prompt.blocks:
            last = self._known.setdefault((last, block), len(self._known))
            numbers.append(last)
        return numbers


def _found(mark: int, prefixes: list[int], entries: set[int]) -> int:
    """The number of blocks in the longest entry that a mark finds; 0 without an entry."""
    for position in range(mark, max(mark - LOOK_BACK, -1), -1):
        if prefixes[position] in entries:
            return position + 1
    return 0


def _tokens(blocks: Sequence[Block]) -> int:
    return sum(block.tokens for block in blocks)
