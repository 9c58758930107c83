"""The answers of an agent's model: what is noted with them, and how they end a run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import Command

from todo_tools._list.todos import mark_of
from todo_tools._loop.decision import Ended
from todo_tools._loop.ending import Answered, Ending
from todo_tools._thread.notes import note_of, noted, without_notice
from todo_tools._thread.reading import Entry, read
from todo_tools._thread.state import loop_in, todos_in
from todo_tools._thread.transcript import is_from_user


def with_notes(
    request: ModelRequest[Any], again: list[AnyMessage], response: ModelResponse[Any]
) -> ModelCallResult[Any]:
    """Note with the model's answer what it was asked with."""
    answer = next((each for each in response.result if isinstance(each, AIMessage)), None)
    if answer is not None and answer.id:
        here = {each.name for each in request.tools if isinstance(each, BaseTool)}
        made = noted(
            answer,
            has_tools=any(getattr(tool, "name", None) == "edit_todos" for tool in request.tools),
            ends=_may_end(answer, response, request.tools),
            shown=mark_of(todos_in(request.state)),
            client=[call["id"] for call in answer.tool_calls if call["name"] not in here],
        )
        result = [made if each is answer else each for each in response.result]
        response = replace(response, result=result)
    command: Command[Any] | None = Command(update={"messages": again}) if again else None
    return ExtendedModelResponse(model_response=response, command=command)


def _may_end(answer: AIMessage, response: ModelResponse[Any], tools: Sequence[Any]) -> bool:
    """Whether the run ends after an answer and its calls, if no other middleware ends it."""
    direct = {getattr(tool, "name", ""): getattr(tool, "return_direct", False) for tool in tools}
    called = {call["name"] for call in answer.tool_calls}
    # LangChain ends the run if the results of all tools that ran go to the user.
    go_to_user = [direct[name] for name in called if name in direct]
    # LangChain adds the result of a structured answer, also if that is an error.
    is_structured = any(isinstance(message, ToolMessage) for message in response.result)
    return not called or is_structured or (bool(go_to_user) and all(go_to_user))


def answered(state: Any, runtime: Any) -> Answered:
    """Return the end of an answer; only `before_agent` asks whether the user has spoken."""
    reading = read(state)
    newest, spoken = reading.last_answer(), reading.last(is_from_user)
    after = [] if newest is None else reading.entries[newest:]
    note: Mapping[str, Any] = note_of(after[0].stored) if after else {}
    others = [entry.message for entry in after[1:] if not isinstance(entry.message, ToolMessage)]
    ended = Ended(
        # The hook of another middleware may have ended the run.
        by_model=bool(note.get("ends"))
        and all(map(is_from_user, others))
        and state.get("jump_to") != "end"
        and not _open_calls(reading.entries[spoken or 0 :]),
        steps_left=state.get("remaining_steps"),
        has_tools=note.get("has_tools", True),
    )
    return Answered(state, reading, loop_in(state), runtime, ended)


def without_last_notice(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return the last answer without its notice, if the same run goes on after it."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and "said" in note_of(message):
            return [without_notice(message)]
        if isinstance(message, AIMessage) or is_from_user(message):
            break
    return []


def _open_calls(entries: Sequence[Entry]) -> set[str]:
    """Return the calls that the client has to answer."""
    results = {e.message.tool_call_id for e in entries if isinstance(e.message, ToolMessage)}
    return {each for e in entries for each in note_of(e.stored).get("client", [])} - results


def update_of(answer: Answered, ending: Ending) -> dict[str, Any]:
    """Return the update of the hook at the end of an answer."""
    update = {**ending.update}
    if ending.continues:
        return {**update, "jump_to": "model"}
    newest, loop = answer.reading.last(is_from_user), ending.update["todo_loop"]
    spoken = None if newest is None else answer.reading.entries[newest].message.id
    if spoken and loop.get("user_message") == answer.loop.get("user_message"):
        # Tools and middleware may have added human messages in this run, which are not new later.
        update["todo_loop"] = {**loop, "user_message": spoken}
    return update
