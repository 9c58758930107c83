"""Convert prompts to the blocks that a provider caches and charges.

The blocks are those of Anthropic's API: each tool, text, tool call and tool result is one block.
Tokens are counted by LangChain's approximation, because a tokenizer would need a download. Each
block counts as a message.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from benchmarks.prices import Block, Prompt


def read_prompts(
    prompts: Sequence[Sequence[BaseMessage]], tools: Sequence[dict[str, Any]]
) -> list[Prompt]:
    """The prompts of a run whose calls were all sent the same tools.

    Their marks are those of `langchain_anthropic.middleware.AnthropicPromptCachingMiddleware`: on
    the last tool, the last block of the system prompt, and the last block of the request.
    """
    first = [tool_block(tool) for tool in tools]
    # Most messages of a prompt are the same objects as in the prompt before it. The prompts keep
    # them alive, so each id belongs to one message.
    known: dict[int, list[Block]] = {}
    return [_prompt(first, messages, known) for messages in prompts]


def _prompt(
    tools: list[Block], messages: Sequence[BaseMessage], known: dict[int, list[Block]]
) -> Prompt:
    blocks = list(tools)
    ends = {len(blocks) - 1}
    for message in messages:
        if id(message) not in known:
            known[id(message)] = list(message_blocks(message))
        blocks += known[id(message)]
        if isinstance(message, SystemMessage):
            ends.add(len(blocks) - 1)
    ends.add(len(blocks) - 1)
    return Prompt(tuple(blocks), tuple(sorted(ends - {-1})))


def tool_block(tool: dict[str, Any]) -> Block:
    """A tool in the JSON format of OpenAI's API."""
    return Block(json.dumps(tool), count_tokens_approximately([], tools=[tool]))


def message_blocks(message: BaseMessage) -> Iterator[Block]:
    """The blocks of a message: one for each text and each tool call; a result is a single one."""
    for part in _parts(message):
        yield Block(part.model_dump_json(), count_tokens_approximately([part]))


def _parts(message: BaseMessage) -> Iterator[BaseMessage]:
    """Split the message into messages of one block each, without fields that are not sent."""
    if isinstance(message, ToolMessage):
        yield ToolMessage(message.content, tool_call_id=message.tool_call_id, status=message.status)
        return
    texts = [message.content] if isinstance(message.content, str) else message.content
    yield from (type(message)(content=[text]) for text in texts if text)
    if isinstance(message, AIMessage):
        yield from (AIMessage("", tool_calls=[call]) for call in message.tool_calls)


def count(messages: Sequence[BaseMessage]) -> int:
    """The tokens of messages that a model generated."""
    return sum(block.tokens for message in messages for block in message_blocks(message))
