"""Ids for tool calls that a model server gave none."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from todo_tools._ids import stable_ids


def with_call_ids(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """Give the messages, with an id for each call, and in its result.

    A call without an id is stored with a result that names none, and providers refuse such a pair
    on every later call of the model. A result of no call is left out, since it is refused too.
    """
    made: list[str] = []
    for message, place in zip(messages, stable_ids(messages), strict=True):
        if isinstance(message, AIMessage):
            made = list(_made_ids(message, place))
            yield _with_ids(message, made) if made else message
        elif not isinstance(message, ToolMessage) or message.tool_call_id:
            yield message
        elif made:  # results are stored in the order of the calls
            yield message.model_copy(update={"tool_call_id": made.pop(0)})


def _made_ids(answer: AIMessage, place: str) -> Iterator[str]:
    for at, call in enumerate(answer.tool_calls):
        if not call["id"]:
            yield f"call_{uuid5(NAMESPACE_OID, f'{place}/{at}').hex}"


def _with_ids(answer: AIMessage, made: Iterable[str]) -> AIMessage:
    ids = iter(made)
    calls = [{**call, "id": call["id"] or next(ids)} for call in answer.tool_calls]
    return answer.model_copy(update={"tool_calls": calls})
