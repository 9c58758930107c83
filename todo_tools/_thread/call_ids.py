"""Add ids to tool calls that a model server sent without one."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from todo_tools._thread.ids import stable_ids


def with_call_ids(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """Yield the messages; every tool call and its result get an id if they have none.

    If a call has no id, its stored result has none either. Providers reject such a pair in every
    later prompt. They also reject a result without a call, so such a result is left out.
    """
    made: list[str] = []
    for message, place in zip(messages, stable_ids(messages), strict=True):
        if isinstance(message, AIMessage):
            made = list(_made_ids(message, place))
            yield _with_ids(message, made) if made else message
        elif not isinstance(message, ToolMessage) or message.tool_call_id:
            yield message
        elif made:  # results are stored in call order
            yield message.model_copy(update={"tool_call_id": made.pop(0)})


def _made_ids(answer: AIMessage, place: str) -> Iterator[str]:
    for at, call in enumerate(answer.tool_calls):
        if not call["id"]:
            yield f"call_{uuid5(NAMESPACE_OID, f'{place}/{at}').hex}"


def _with_ids(answer: AIMessage, made: Iterable[str]) -> AIMessage:
    ids = iter(made)
    calls = [{**call, "id": call["id"] or next(ids)} for call in answer.tool_calls]
    return answer.model_copy(update={"tool_calls": calls})
