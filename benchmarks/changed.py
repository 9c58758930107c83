"""What a tick costs if other middleware changes the texts of tool results."""

from collections.abc import Callable
from typing import Any

from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, PIIMiddleware
from langchain_core.messages import ToolMessage
from langgraph.types import Command
from typing_extensions import override

from benchmarks.work import text
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

ITEMS, TICKS = 30, 10
MOST = 200
"""The most characters that a tick may add to the prompt."""
Change = Callable[[ToolMessage], Any]


class Rewriting(AgentMiddleware[Any, Any, Any]):
    """Changes the content of each result once, before the next model call."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.change = change
        self._known = set[str]()

    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        results = [each for each in state["messages"] if isinstance(each, ToolMessage)]
        new = [each for each in results if each.tool_call_id not in self._known]
        self._known |= {each.tool_call_id for each in new}
        return {
            "messages": [each.model_copy(update={"content": self.change(each)}) for each in new]
        }


class Wrapping(Rewriting):
    """Changes it where the tool is called."""

    @override
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {}

    @override
    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        result: Command[Any] = handler(request)
        update: dict[str, Any] = result.update  # type: ignore[assignment]  # the todo tools return a dict
        [message] = update["messages"]
        changed = message.model_copy(update={"content": self.change(message)})
        return Command(update={**update, "messages": [changed]})


def _blocks(result: ToolMessage) -> list[dict[str, str]]:
    return [{"type": "text", "text": line} for line in result.text.splitlines(keepends=True)]


KINDS: dict[str, Callable[[], list[Any]]] = {
    "none": list,
    "`PIIMiddleware` (addresses of pages)": lambda: [
        PIIMiddleware("url", apply_to_tool_results=True)
    ],
    "a suffix": lambda: [Rewriting(lambda result: f"{result.text}\n\n(checked)")],
    "a prefix": lambda: [Rewriting(lambda result: f"Result:\n{result.text}")],
    "content blocks, one a line": lambda: [Rewriting(_blocks)],
    "the first 20 characters": lambda: [Rewriting(lambda result: result.text[:20])],
    "eviction to a file (deepagents)": lambda: [
        FilesystemMiddleware(tool_token_limit_before_evict=20)
    ],
    "tags in `wrap_tool_call`": lambda: [Wrapping(lambda r: f"<result>{r.text}</result>")],
}
"""What changes the texts, one middleware of each kind."""


def measure(kind: str) -> float:
    """The characters that a tick adds to the prompt, in the mean of ten ticks."""
    items = ["Read https://example.com", *map(text, range(1, ITEMS))]
    ticks = [turn("", call("edit_todos", action="complete", indices=[n])) for n in range(TICKS)]
    plan = turn("", call("write_todos", mode="replace", todos=items))
    model = ScriptedChatModel(script=[plan, *ticks, "Enough."])
    agent: Any = create_agent(model, middleware=[*KINDS[kind](), TodoMiddleware(policy=None)])
    agent.invoke({"messages": [("user", "Do all of the steps.")]})
    sizes = [sum(len(message.text) for message in prompt) for prompt in model.prompts]
    return (sizes[-1] - sizes[1]) / TICKS
