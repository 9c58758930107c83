"""The blocks that Bedrock's package marks for a cache are unchanged in the next request."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_aws.middleware import BedrockPromptCachingMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from tests.conversations import look
from tests.payloads import CLAUDE_ON_BEDROCK, ConverseClient, converse_model
from tests.support import items
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import call, turn

SYSTEM = "You work with care."
NOVA = "us.amazon.nova-pro-v1:0"


def work() -> list[AIMessage]:
    """Two runs: a plan, work together with todo calls, a refused call, early stops."""
    return [
        turn("", call("write_todos", mode="replace", todos=["a", "b"]), call("look", path="a")),
        turn("", call("edit_todos", action="start", indices=[0]), call("look", path="b")),
        turn("", call("look", path="c")),
        turn("", call("edit_todos", action="start", indices=[7])),
        turn("I stop here."),
        turn("", call("edit_todos", action="complete", indices=[0, 1])),
        turn("Both are done."),
        turn("", call("list_todos")),
        turn("I stop here, too."),
        turn("", call("edit_todos", action="complete", indices=[0])),
        turn("The third is done."),
    ]


Requests = list[dict[str, Any]]


def converse(model: str) -> tuple[Any, Requests]:
    answers = iter(work())
    client = ConverseClient(lambda: list(_converse_blocks(next(answers))))
    return converse_model(client, model), client.requests


def _converse_blocks(answer: AIMessage) -> Iterator[dict[str, Any]]:
    if answer.text:
        yield {"text": answer.text}
    for made in answer.tool_calls:
        use = {"toolUseId": made["id"], "name": made["name"], "input": made["args"]}
        yield {"toolUse": use}


@dataclass(frozen=True)
class Sent:
    """A request from the view of a provider's cache."""

    blocks: list[str]
    """Tools, system prompt and messages, block by block, without marks."""
    marked: list[int]
    """The positions of the marked blocks."""


def sent(request: Mapping[str, Any]) -> Sent:
    """The blocks of a request, and where its marks are."""
    blocks, marked = list[str](), list[int]()
    for role, block in _blocks(request):
        if "cachePoint" in block:
            marked.append(len(blocks) - 1)
            continue
        if "cache_control" in block:
            marked.append(len(blocks))
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        blocks.append(json.dumps([role, bare], sort_keys=True))
    if "cache_control" in request:
        marked.append(len(blocks) - 1)
    return Sent(blocks, marked)


def _blocks(request: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the blocks in the order in which caches read them."""
    tools = request.get("toolConfig", request)["tools"]
    yield from (("tools", tool) for tool in tools)
    yield from (("system", block) for block in _listed(request["system"]))
    for message in request["messages"]:
        yield from ((message["role"], block) for block in _listed(message["content"]))


def _listed(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def in_create_agent(model: str) -> tuple[Any, Requests]:
    chat, requests = converse(model)
    middleware: Any = [BedrockPromptCachingMiddleware(), TodoMiddleware()]
    options: Any = {"middleware": middleware, "checkpointer": InMemorySaver()}
    return create_agent(chat, [look], system_prompt=SYSTEM, **options), requests


def in_deepagents(model: str) -> tuple[Any, Requests]:
    """The default stack, which includes the caching middleware."""
    chat, requests = converse(model)
    options: Any = {"middleware": [TodoMiddleware()], "checkpointer": InMemorySaver()}
    return create_deep_agent(chat, [look], system_prompt=SYSTEM, **options), requests


Build = Callable[[str], tuple[Any, Requests]]


def requests_of(build: Build, model: str, config: RunnableConfig) -> list[Sent]:
    """Two runs, with an item added by the application in between."""
    graph, requests = build(model)
    graph.invoke({"messages": [("user", "Do a and b.")]}, config)
    todos = graph.get_state(config).values["todos"]
    given = {"messages": [("user", "And c.")], "todos": [*items("c"), *todos]}
    graph.invoke(given, config)
    assert len(requests) == len(work())
    return [sent(request) for request in requests]


@pytest.mark.parametrize("build", [in_create_agent, in_deepagents])
@pytest.mark.parametrize("model", [CLAUDE_ON_BEDROCK, NOVA])
def test_what_is_marked_is_sent_again_unchanged(
    build: Build, model: str, config: RunnableConfig
) -> None:
    """The next request finds it in the cache, and the mark is at the end.

    For Nova, Bedrock's package marks no message with tool calls or results.
    """
    requests = requests_of(build, model, config)
    for earlier, later in pairwise(requests):
        end = max(earlier.marked) + 1
        assert later.blocks[:end] == earlier.blocks[:end]
    if model != NOVA:
        assert all(max(each.marked) == len(each.blocks) - 1 for each in requests)
