"""Chat models that need no network, for tests, notebooks and demonstrations.

A graph uses them like real chat models: it binds tools, sends messages and gets one message back.
Their answers come from a script or from simple rules.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SkipValidation
from typing_extensions import override

from todo_tools._calls.records import TOOLS
from todo_tools._list.formatting import format_todos
from todo_tools._list.prompts import NOTE
from todo_tools._list.todos import STATUSES, TodoItem, TodoStatus, require_whole_number
from todo_tools._thread.transcript import is_from_user
from todo_tools.checklist import command_in, read_checklist

__all__ = ["ScriptedChatModel", "call", "checklist_model", "turn"]

_Rule = Callable[[list[BaseMessage]], AIMessage | str]


def call(name: str, **args: Any) -> ToolCall:
    """Create a tool call with a unique id.

    Example:
        ```python
        answer = turn("Starting.", call("edit_todos", action="start", indices=[0]))
        ```
    """
    return tool_call(name=name, args=args, id=f"call_{uuid4().hex[:12]}")


def turn(text: str = "", *calls: ToolCall) -> AIMessage:
    """Create an answer of a model: text, tool calls, or both."""
    return AIMessage(text, tool_calls=list(calls))


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers from a script.

    Args:
        script: The answers in order, or a function from the prompt to an answer. A string is an
            answer without tool calls.

    Raises:
        ValueError: The model is called more often than the script has answers.

    Example:
        ```python
        model = ScriptedChatModel(script=[turn("", call("list_todos")), "All done."])
        answer = model.bind_tools(create_todo_tools()).invoke("What is left?")
        assert answer.tool_calls[0]["name"] == "list_todos"
        ```
    """

    script: SkipValidation[Sequence[AIMessage | str] | _Rule]
    prompts: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])
    """The prompts that the model received, one for each call."""
    tools: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """The tools of the last call, in the format that providers receive."""
    _asked: int = PrivateAttr(default=0)

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.prompts.append(list(messages))
        self.tools = kwargs.get("tools", [])
        answer = self._answer(messages)
        message = AIMessage(answer) if isinstance(answer, str) else answer.model_copy()
        return ChatResult(generations=[ChatGeneration(message=message)])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)

    def _answer(self, messages: list[BaseMessage]) -> AIMessage | str:
        if callable(self.script):
            return self.script(messages)
        if self._asked >= len(self.script):
            raise ValueError(
                f"the script has {len(self.script)} answer(s), but the model was called again; "
                f"last message: {messages[-1].text[:80]!r}"
            )
        self._asked += 1
        return self.script[self._asked - 1]


def checklist_model(*, shell: str = "shell", rest_after: int = 3) -> ScriptedChatModel:
    """Create a stand-in that works through a Markdown checklist by rules, not a language model.

    It writes the steps of the user's checklist as todos and runs the command of each step with the
    shell tool. It completes a step on exit code 0 and abandons it otherwise. Like a real model, it
    sometimes stops before the list is finished, so that the loop has to send it back. It knows only
    the prompt that `model_view` builds.

    Args:
        shell: The name of a tool that takes `command` and reports the exit code after the output.
            The last `exit code N` in its answer counts; without one, the command has failed.
        rest_after: The model stops early each time that it has finished this number of items.

    Returns:
        The model; bind tools to it as to any other model.

    Raises:
        TypeError: `rest_after` is not a whole number.
        ValueError: `rest_after` is less than 1.

    Example:
        ```python
        answer = checklist_model().invoke("- [ ] Measure: `wc README.md`")
        assert [made["name"] for made in answer.tool_calls] == ["write_todos", "edit_todos"]
        ```
    """
    require_whole_number("rest_after", rest_after, minimum=1)

    def rule(prompt: list[BaseMessage]) -> AIMessage:
        items = _list_in(prompt)
        if not items and "write_todos" in _newest_results(prompt):
            return turn("My plan was not accepted; I stop here.")
        if not items or (is_from_user(prompt[-1]) and _is_finished(items)):
            return _plan(prompt)
        return _work(prompt, items, shell, rest_after)

    return ScriptedChatModel(script=rule)


_EXIT_CODE = re.compile(r"exit code (-?\d+)")

_Item = tuple[TodoStatus, str]


def _list_in(prompt: list[BaseMessage]) -> list[_Item]:
    """Rebuild the list from the texts of the prompt."""
    items: list[_Item] = []
    for message in prompt:
        is_result = isinstance(message, ToolMessage) and message.name in TOOLS
        shown = message.text.partition(NOTE)[2] or (message.text if is_result else "")
        listed = [entry[1] for entry in _read_lines(shown) if entry]
        change = _read_change(message.text.partition("\n")[0]) if is_result else None
        if listed or format_todos([]) in shown.split("\n"):
            items = [(item["status"], item["text"]) for item in listed]
        elif change:
            status, indices = change
            items = [
                (status, text) if index in indices else (before, text)
                for index, (before, text) in enumerate(items)
            ]
        elif is_result and message.text.startswith("Wrote "):  # the same texts, and no status
            items = [("not_started", text) for _, text in items]
    return items


def _plan(prompt: list[BaseMessage]) -> AIMessage:
    request = next((message for message in reversed(prompt) if is_from_user(message)), None)
    steps = read_checklist(request.text) if request else []
    if not steps:
        return turn(
            "I am a stand-in for a model and found no open checklist steps in your message."
        )
    todos = [{"text": step} for step in steps]
    return turn("", call("write_todos", mode="replace", todos=todos), _edit("start", 0))


def _work(prompt: list[BaseMessage], items: list[_Item], shell: str, rest_after: int) -> AIMessage:
    statuses: list[TodoStatus] = [status for status, _ in items]
    finished = sum(STATUSES[status].finished for status in statuses)
    if _is_finished(items):
        completed = statuses.count("completed")
        return turn(f"{completed} of {len(items)} steps are completed.")
    results = _newest_results(prompt)
    if shell in results:
        return _finish(statuses, results[shell])
    if "in_progress" not in statuses:
        return turn("", _edit("start", statuses.index("not_started")))
    if finished and finished % rest_after == 0 and "edit_todos" in results:
        return turn(f"{finished} of {len(items)} steps are finished so far.")
    current = statuses.index("in_progress")
    command = command_in(items[current][1])
    if command is None:
        return _finish(statuses, "exit code 0")
    return turn("", call(shell, command=command))


def _is_finished(items: list[_Item]) -> bool:
    return all(STATUSES[status].finished for status, _ in items)


def _finish(statuses: list[TodoStatus], result: str) -> AIMessage:
    """Complete or abandon the item in progress, and start the next one in the same turn."""
    current = statuses.index("in_progress")
    codes = _EXIT_CODE.findall(result)
    done = bool(codes) and int(codes[-1]) == 0
    fault = f"failed with exit code {codes[-1]}" if codes else "was not run"
    text = "" if done else f"Step [{current}] {fault}; I abandon it."
    calls = [_edit("complete" if done else "abandon", current)]
    if "not_started" in statuses:
        calls.append(_edit("start", statuses.index("not_started")))
    return turn(text, *calls)


def _edit(action: str, index: int) -> ToolCall:
    return call("edit_todos", action=action, indices=[index])


def _newest_results(prompt: list[BaseMessage]) -> dict[str, str]:
    """Return the tool results at the end of the prompt, by tool name."""
    results = dict[str, str]()
    for message in reversed(prompt):
        if not isinstance(message, ToolMessage):
            break
        results[str(message.name)] = message.text.partition(NOTE)[0]
    return results


# Like a model, the stand-in reads what the list says from the texts of its prompt.
_LINE = re.compile(r"(\S) \[(\d+)\] (.+)")


def _read_lines(text: str) -> Iterator[tuple[int, TodoItem] | None]:
    """Parse list lines: index and item of each line, `None` for other lines."""
    status_of: dict[str, TodoStatus] = {row.icon: status for status, row in STATUSES.items()}
    for line in text.split("\n"):
        found = _LINE.fullmatch(line)
        status = status_of.get(found[1]) if found else None
        if found and status:
            yield int(found[2]), TodoItem(text=found[3], status=status)
        else:
            yield None


_CHANGE = re.compile(r"(\w+) \[(\d+(?:, \d+)*)\]")


def _read_change(line: str) -> tuple[TodoStatus, set[int]] | None:
    """Parse the first line of a status change: the new status and the indices that have it."""
    status_of: dict[str, TodoStatus] = {row.done_label: name for name, row in STATUSES.items()}
    found = _CHANGE.fullmatch(line)
    status = status_of.get(found[1]) if found else None
    return (status, set(map(int, found[2].split(", ")))) if found and status else None
