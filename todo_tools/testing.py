"""Chat models that need no network, for tests, notebooks and demonstrations."""

import re
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SkipValidation
from typing_extensions import override

from todo_tools._calls.answers import answer_call
from todo_tools._calls.records import TOOLS
from todo_tools._list.prompts import NOTE
from todo_tools._list.todos import STATUSES, TodoItem, TodoLimits, TodoStatus, incomplete
from todo_tools._thread.transcript import is_from_user

__all__ = ["ScriptedChatModel", "call", "checklist_model", "read_checklist", "turn"]

_Script = Sequence[AIMessage | str] | Callable[[list[BaseMessage]], AIMessage | str]


def call(name: str, /, **args: Any) -> ToolCall:
    """Create a tool call with a unique id, such as `call("get_user", name="Ada")`."""
    return tool_call(name=name, args=args, id=f"call_{uuid4().hex[:12]}")


def turn(text: str = "", *calls: ToolCall) -> AIMessage:
    """Create an answer of a model: text, tool calls, or both."""
    return AIMessage(text, tool_calls=list(calls))


class ScriptedChatModel(BaseChatModel):
    """A chat model that answers from a script.

    Args:
        script: The answers in order, or a function from the prompt to an answer. A string is an
            answer without calls. Without an answer, the model raises a `ValueError`.
    """

    script: SkipValidation[_Script]
    prompts: list[list[BaseMessage]] = Field(default_factory=list[list[BaseMessage]])
    """The prompts that the model received, one for each call."""
    tools: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """The tools of the last call, in the format that providers receive."""
    _asked: int = PrivateAttr(default=0)

    def __init__(self, script: _Script, **fields: Any) -> None:
        fields["script"] = script
        super().__init__(**fields)

    @property
    @override
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.prompts.append(list(messages))
        self.tools = kwargs.get("tools", [])
        answer = self._answer(messages)
        copy = AIMessage(answer) if isinstance(answer, str) else answer.model_copy()
        return ChatResult(generations=[ChatGeneration(message=copy)])

    @override
    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(*args, **kwargs)

    def _answer(self, messages: list[BaseMessage]) -> AIMessage | str:
        if callable(self.script):
            return self.script(messages)
        if self._asked >= len(self.script):
            last = messages[-1].text[:80]
            raise ValueError(f"the script has no answer number {self._asked + 1}, for {last!r}")
        self._asked += 1
        return self.script[self._asked - 1]


def checklist_model(*, shell: str = "shell", rest_after: int = 3) -> ScriptedChatModel:
    """Create a stand-in that works through a list by rules, not a language model.

    It writes the request as todos: the open steps of a Markdown checklist, or the sentences, or of
    one sentence what is between commas, "then" and "and". It runs the command in backticks of
    each step, and completes the step on exit code 0. It abandons a step that a check refuses, and
    stops on "stop". Like a real model, it sometimes stops early.

    Args:
        shell: The name of a tool that takes `command` and answers with `exit code N` at the end.
        rest_after: The model stops early each time that it has finished this number of items.

    Returns:
        The model. It raises a `ValueError` if the todo tools, or the shell for a command, were not
        bound, and if a graph of your own sends it results that `model_view` shortens.

    Example:
        ```python
        answer = checklist_model().bind_tools(create_todo_tools()).invoke("Measure, then cut.")
        assert answer.tool_calls[0]["args"]["todos"] == [{"text": "Measure"}, {"text": "Cut"}]
        ```
    """

    def rule(prompt: list[BaseMessage]) -> AIMessage:
        todos, results = _known(prompt)
        if prompt and is_from_user(prompt[-1]) and prompt[-1].text.lower().startswith("stop"):
            return turn("I stop here.")
        if not todos and "write_todos" in results:
            return turn("My plan was not accepted; I stop here.")
        if not todos or (is_from_user(prompt[-1]) and not incomplete(todos)):
            return _plan(prompt)
        return _work(todos, results, shell, rest_after)

    return _ChecklistModel(script=rule)


class _ChecklistModel(ScriptedChatModel):
    """A model that needs the todo tools, and a shell for commands."""

    @override
    def _answer(self, messages: list[BaseMessage]) -> AIMessage | str:
        answer = super()._answer(messages)
        bound = [tool.get("function", tool).get("name") for tool in self.tools]
        asked = (
            [made["name"] for made in answer.tool_calls] if isinstance(answer, AIMessage) else []
        )
        if asked and "write_todos" not in bound:
            raise ValueError(
                f"checklist_model has to keep a list, but its tools are {bound}; bind "
                "create_todo_tools() to it, or give create_agent the TodoMiddleware"
            )
        if missing := [name for name in asked if name not in {*bound, *TOOLS}]:
            raise ValueError(
                f"checklist_model runs what stands in backticks with the tool {missing[0]!r}, but "
                f"its tools are {bound}; add a tool of this name that takes `command` and answers "
                "with `exit code N` at the end, or name yours with checklist_model(shell=...)"
            )
        return answer


_STEP = re.compile(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[ \][ \t]+(\S.*)")


def read_checklist(markdown: str) -> list[str]:
    """Return the texts of the open steps of a checklist: lines such as `- [ ] Build the site`."""
    found = map(_STEP.fullmatch, markdown.splitlines())
    return [step[1].rstrip() for step in found if step]


_OUTSIDE_CODE = r"(?=(?:[^`]*`[^`]*`)*[^`]*$)"
_NUMBER = re.compile(r"^(?:[-*+]|\d+[.)])\s+")
_SENTENCE_END = re.compile(rf"(?:(?<=[^\d][.!?])\s+|\n+){_OUTSIDE_CODE}")
_PART_END = re.compile(rf"(?:,\s+|\s+(?=and\s|then\s))(?:and\s+)?(?:then\s+)?{_OUTSIDE_CODE}")
_LINE = re.compile(r"(\S) \[\d+\] (.+)")
_STATUS_OF: dict[str, TodoStatus] = {row.icon: status for status, row in STATUSES.items()}
_ANY_LIST = TodoLimits(max_todos=10_000, max_text_length=100_000, max_indices=10_000)


def _steps_in(request: str) -> list[str]:
    """Return the steps that a request asks for; a request of one step needs no list."""
    if "[ ]" in request or "[x]" in request.lower():
        return read_checklist(request)
    sentences = _SENTENCE_END.split(request.strip())
    parts = sentences if sentences[1:] else _PART_END.split(sentences[0])
    steps = [_NUMBER.sub("", part.strip(), count=1).strip(" .,;!") for part in parts]
    return [step[:1].upper() + step[1:] for step in steps if step] if steps[1:] else []


def _known(prompt: list[BaseMessage]) -> tuple[list[TodoItem], dict[str, str]]:
    """Return the list, as the model's calls and the blocks leave it, and the newest results."""
    todos, calls, results = list[TodoItem](), dict[str | None, ToolCall](), dict[str, str]()
    door = ensure_config().get("metadata", {}).get("ls_integration")
    has_view = door != "langchain_create_agent"  # which may be built with `view=None`
    for message in prompt:
        if not isinstance(message, ToolMessage):
            asked = message.tool_calls if isinstance(message, AIMessage) else []
            calls, results = {made["id"]: made for made in asked if made["name"] in TOOLS}, {}
        else:
            if not results.get(str(message.name), "").startswith("Error"):
                results[str(message.name)] = message.text.partition(NOTE)[0]
            made = calls.get(message.tool_call_id)
            if made and message.status != "error":
                answer = answer_call(made["name"], made["args"], todos, _ANY_LIST)
                is_whole = made["name"] == "edit_todos" and message.text == answer.content
                if is_whole and has_view:
                    raise ValueError(
                        f"checklist_model knows its list, but got all of {answer.content[:80]!r}; "
                        "send the model model_view(state), not state['messages']"
                    )
                todos = answer.todos
        if f"{NOTE}\n" in message.text:
            lines = map(_LINE.fullmatch, message.text.rpartition(f"{NOTE}\n")[2].split("\n"))
            todos = [TodoItem(text=each[2], status=_STATUS_OF[each[1]]) for each in lines if each]
    return todos, results


def _plan(prompt: list[BaseMessage]) -> AIMessage:
    request = next((message for message in reversed(prompt) if is_from_user(message)), None)
    if todos := [{"text": step} for step in (_steps_in(request.text) if request else [])]:
        return turn("", call("write_todos", mode="replace", todos=todos), _edit("start", 0))
    return turn("I am a stand-in for a model, and found no list of steps in your message.")


def _work(todos: list[TodoItem], results: dict[str, str], shell: str, rest_after: int) -> AIMessage:
    statuses = [todo["status"] for todo in todos]
    finished = len(todos) - len(incomplete(todos))
    if finished == len(todos):
        return turn(f"{statuses.count('completed')} of {len(todos)} steps are completed.")
    following = [_edit("start", statuses.index(each)) for each in statuses if each == "not_started"]
    if "in_progress" not in statuses:
        return turn("", *following[:1])
    current = statuses.index("in_progress")
    command = re.search("`([^`]+)`", todos[current]["text"])
    text = ""
    if shell in results:
        code = re.findall(r"exit code (-?\d+)", results[shell])[-1:]
        fault = f"failed with exit code {code[0]}" if code else "was not run"
        text = "" if code == ["0"] else f"Step [{current}] {fault}; I abandon it."
    elif results.get("edit_todos", "").startswith("Error"):
        text = f"Step [{current}] was refused; I abandon it."
    elif finished and finished % rest_after == 0 and "edit_todos" in results:
        return turn(f"{finished} of {len(todos)} steps are finished so far.")
    elif command:
        return turn("", call(shell, command=command[1].strip()))
    return turn(text, _edit("abandon" if text else "complete", current), *following[:1])


def _edit(action: str, index: int) -> ToolCall:
    return call("edit_todos", action=action, indices=[index])
