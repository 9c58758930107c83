"""The imitation of Anthropic's API: the requests that it accepts or refuses, and the charges."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from tests.messages_api import MessagesAPI, chat_anthropic
from tests.messages_rules import RefusedError
from tests.prompt_cache import LOOK_BACK

MARK = {"type": "ephemeral"}
WEATHER = {"name": "weather", "description": "What the weather is.", "input_schema": {}}


def text(content: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": content, **extra}


def tool_use(call_id: str = "call_1", **extra: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {}, **extra}


def tool_result(call_id: str = "call_1", content: Any = "Rain.", **extra: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **extra}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


HELLO = user(text("Hello."))


def request(*messages: dict[str, Any], **extra: Any) -> dict[str, Any]:
    system = [text("Help.")]
    defaults = {"model": "claude", "max_tokens": 100, "system": system, "tools": [WEATHER]}
    return {**defaults, "messages": list(messages), **extra}


def echo(asked: Any) -> str:
    return f"Answer {len(asked['messages'])}."


def talk(api: MessagesAPI, *says: str, **extra: Any) -> list[dict[str, Any]]:
    """A conversation that only grows, one message of the user after the other."""
    history: list[dict[str, Any]] = []
    for said in says:
        history.append(user(text(said)))
        answer = api.answer(request(*history, **extra))
        history.append(assistant(*answer["content"]))
    return history


def without_thinking(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that a program sends if it drops thinking."""
    return [
        {**message, "content": [b for b in message["content"] if b["type"] != "thinking"]}
        for message in messages
    ]


class TestThinking:
    @pytest.mark.parametrize("place", ["system", "tools", "messages"])
    def test_a_change_before_a_thinking_block_is_refused(self, place: str) -> None:
        """This holds for a change at any place."""
        api = MessagesAPI(echo)
        history = [*talk(api, "One.", "Two."), HELLO]
        changes = {
            "system": request(*history, system=[text("Help!")]),
            "tools": request(*history, tools=[{**WEATHER, "description": "Sun or rain."}]),
            "messages": request(user(text("Won.")), *history[1:]),
        }
        with pytest.raises(RefusedError, match=f"different conversation.*change is at {place}"):
            api.answer(changes[place])


ORDERS: dict[str, list[dict[str, Any]]] = {
    "first message must use the user role": [assistant(text("Hi."))],
    "must end with a user message": [HELLO, assistant(text("Hi."))],
    "non-empty content": [user()],
    "non-whitespace text": [
        *(HELLO, assistant(tool_use()), user(tool_result(content=[text("Rain."), text(" ")])))
    ],
    "`tool_use` without a `tool_result`": [HELLO, assistant(tool_use()), HELLO],
    "`tool_result` without a `tool_use`": [HELLO, assistant(text("Hi.")), user(tool_result())],
    "more than one `tool_result`": [
        *(HELLO, assistant(tool_use()), user(tool_result(), tool_result()))
    ],
    "must be unique": [HELLO, assistant(tool_use(), tool_use()), user(tool_result())],
    "pattern of an id": [HELLO, assistant(tool_use("")), user(tool_result(""))],
    "must come before other content": [
        *(HELLO, assistant(tool_use()), user(text("See:"), tool_result()))
    ],
}


class TestOrder:
    @pytest.mark.parametrize("reason", ORDERS)
    def test_an_invalid_request_is_refused(self, reason: str) -> None:
        with pytest.raises(RefusedError, match=reason):
            MessagesAPI(echo).answer(request(*ORDERS[reason]))


class TestBill:
    def test_text_at_the_end_that_vanishes_takes_the_mark_with_it(self) -> None:
        """Then no part of the history is ever read from the cache."""
        api = MessagesAPI(echo)
        history: list[dict[str, Any]] = []
        for number in range(4):
            history.append(user(text(f"Message {number}.")))
            shown = user(text(f"Your list, version {number}."))
            answer = api.answer(request(*history, shown, cache_control=MARK))
            history += without_thinking([assistant(*answer["content"])])
        assert [charge.read for charge in api.bill.charges] == [0, 0, 0, 0]
        assert [charge.is_continued for charge in api.bill.charges[1:]] == [False] * 3
        assert not api.bill.history_is_read

    @pytest.mark.parametrize(("added", "is_read"), [(LOOK_BACK - 1, True), (LOOK_BACK, False)])
    def test_an_entry_is_found_only_within_the_look_back(self, added: int, is_read: bool) -> None:
        """This holds even if all marked blocks are present and unchanged."""
        api = MessagesAPI(echo)
        api.answer(request(HELLO, cache_control=MARK))
        more = [text(f"Part {number}.") for number in range(added)]
        api.answer(request(user(text("Hello."), *more), cache_control=MARK))
        assert api.bill.charges[1].is_continued
        assert (api.bill.charges[1].read > 0) is is_read
        assert api.bill.history_is_read is is_read

    def test_the_usage_of_the_real_chat_model_is_that_of_the_bill(self) -> None:
        """The chat model's input tokens are the sum of the parts."""
        api = MessagesAPI(echo)
        model = chat_anthropic(api, model_kwargs={"cache_control": MARK})
        history = [SystemMessage("Help."), HumanMessage("One.")]
        history = [*history, model.invoke(history), HumanMessage("Two.")]
        usage = model.invoke(history).usage_metadata
        charge = api.bill.charges[1]
        assert usage
        assert usage["input_tokens"] == charge.plain + charge.written + charge.read
        assert usage["input_token_details"]["cache_read"] == charge.read > 0
        assert usage["output_tokens"] == charge.received
