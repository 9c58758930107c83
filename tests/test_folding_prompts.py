"""Whatever a thread holds, its folded prompts are valid and lose nothing else."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models._utils import _update_message_content_to_blocks
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall, invalid_tool_call
from langchain_core.runnables import RunnableConfig
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models.base import _construct_lc_result_from_responses_api
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from openai.types.responses import Response, ResponseOutputItem
from pydantic import TypeAdapter

from tests.chat_templates import is_alternating, is_answered, mistral_refusal
from tests.conversations import Conversation, CutOffError, Run, cut_off, model_calls
from tests.messages_api import MessagesAPI, chat_anthropic
from tests.messages_rules import check_order
from tests.payloads import anthropic_request, mistral_messages, openai_messages
from tests.prompt_cache import Request
from tests.prompt_reader import Read, read_list
from tests.support import items
from tests.test_folding import draw, work
from todo_tools import (
    TODO_FOLD_PROMPT,
    AutoContinue,
    TodoMiddleware,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    model_view,
)
from todo_tools._thread.transcript import list_after
from todo_tools.testing import ScriptedChatModel, call

TODO_TOOLS = {"write_todos", "list_todos", "edit_todos"}
POLICY = AutoContinue(max_in_a_row=2)
CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


TOOLS = [work, draw, cut_off]


def hand_built(model: BaseChatModel, *, folds: bool = True) -> Any:
    tools = [*create_todo_tools(), *TOOLS]

    def agent(state: TodoState) -> dict[str, Any]:
        prompt = [SystemMessage(TODO_FOLD_PROMPT), *model_view(state, fold_finished=folds)]
        return {"messages": [model.bind_tools(tools).invoke(prompt)]}

    builder = StateGraph(TodoState)
    builder.add_node("agent", agent)
    builder.add_node("tools", ToolNode(tools))
    builder.add_edge(START, "agent")
    builder.add_edge("tools", "agent")
    graph = add_auto_continue(builder, policy=POLICY)
    return graph.compile(checkpointer=InMemorySaver())


def with_middleware(model: BaseChatModel, *, folds: bool = True) -> Any:
    middleware = [TodoMiddleware(policy=POLICY, fold_finished=folds)]
    return create_agent(model, TOOLS, middleware=middleware, checkpointer=InMemorySaver())


Build = Callable[..., Any]
agents = pytest.mark.parametrize("build", [hand_built, with_middleware])

_texts = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True)
_indices = st.lists(st.integers(0, 3), min_size=1, max_size=2, unique=True)


def _calls(name: str, **args: st.SearchStrategy[Any]) -> st.SearchStrategy[ToolCall]:
    return st.builds(call, st.just(name), **args)


_edits = _calls("edit_todos", action=st.sampled_from(["start", "complete"]), indices=_indices)
_todo_calls = st.one_of(
    _edits,
    _edits,
    _calls("edit_todos", action=st.just("abandon"), indices=_indices),
    _calls("write_todos", mode=st.sampled_from(["replace", "append", "unknown"]), todos=_texts),
    _calls("write_todos", mode=st.just("insert"), index=st.integers(0, 2), todos=_texts),
    _calls("list_todos"),
)
_works = _calls("work", part=st.sampled_from("xyz"), size=st.sampled_from([20_000, 10]))
_draws = _calls("draw", part=st.sampled_from("xyz"))


def _turns(*calls: st.SearchStrategy[ToolCall]) -> st.SearchStrategy[AIMessage]:
    return st.builds(
        lambda made: AIMessage("", tool_calls=made),
        st.lists(st.one_of(*calls), min_size=1, max_size=3),
    )


_broken = st.builds(
    lambda name, more: AIMessage(
        "",
        tool_calls=more,
        invalid_tool_calls=[invalid_tool_call(name=name, args="{", id=str(call(name)["id"]))],
    ),
    st.sampled_from(["work", "edit_todos"]),
    st.lists(_works, max_size=1),
)
_answers = st.just(AIMessage(""))
_plans = st.builds(lambda: _of(call("write_todos", mode="replace", todos=list("abcd"))))


def _numbered(turns: list[AIMessage]) -> list[AIMessage]:
    """Each answer says another word."""
    return [
        answer.model_copy(update={"content": f"Word {number}."})
        for number, answer in enumerate(turns)
    ]


def _item(index: int, *, is_started: bool, works: list[AIMessage], end: str) -> list[AIMessage]:
    """The work of an item, from its start to its end."""
    start = [call("edit_todos", action="start", indices=[index])] if is_started else []
    first, *others = works
    first = first.model_copy(update={"tool_calls": [*start, *first.tool_calls]})
    return [first, *others, _of(call("edit_todos", action=end, indices=[index]))]


def _of(*calls: ToolCall) -> AIMessage:
    return AIMessage("", tool_calls=list(calls))


_items = st.builds(
    _item,
    st.integers(0, 2),
    is_started=st.booleans(),
    works=st.lists(_turns(_works), min_size=1, max_size=3),
    end=st.sampled_from(["complete", "abandon"]),
)


def _conversations(turns: st.SearchStrategy[AIMessage]) -> st.SearchStrategy[Conversation]:
    parts = st.one_of(_items, turns.map(lambda answer: [answer]))
    seeds = st.none() | _texts.map(lambda texts: items(*texts))
    runs = st.builds(Run, message=st.sampled_from("123").map(HumanMessage), todos=seeds)
    planned = st.builds(
        lambda plan, rest: _numbered([plan, *chain(*rest)]),
        _plans | turns,
        st.lists(parts, min_size=2, max_size=6),
    )
    return st.builds(Conversation, runs=st.lists(runs, min_size=1, max_size=3), turns=planned)


_whole = _turns(_todo_calls, _works) | _turns(_todo_calls) | _answers
_cut_off = _turns(_works, _calls("cut_off"))
whole_conversations = _conversations(_whole)
"""Every call has a result, and messages of people come after answers."""
cut_off_conversations = _conversations(_whole | _cut_off)
"""Some runs end in the middle of a tool call."""
conversations = _conversations(_whole | _cut_off | _broken | _turns(_todo_calls, _draws))
"""Besides, some arguments are no JSON, and some results are pictures."""

some = settings(max_examples=25)


def beside_ticks(history: Sequence[AnyMessage]) -> list[AIMessage]:
    """The answers without calls, and those with a todo call."""
    answers = [message for message in history if isinstance(message, AIMessage)]
    return [answer for answer in answers if not _names(answer) or _names(answer) & TODO_TOOLS]


def _names(answer: AIMessage) -> set[str | None]:
    return {made["name"] for made in [*answer.tool_calls, *answer.invalid_tool_calls]}


@agents
class TestEveryThread:
    @some
    @given(conversation=conversations)
    def test_its_prompts_are_valid_and_have_all_that_must_stay(
        self, build: Build, conversation: Conversation
    ) -> None:
        """Every call has its result. Words of people, answers beside a tick and the newest turn
        stay.
        """
        for sent in model_calls(build, conversation):
            check_order(anthropic_request(sent.prompt))
            assert is_answered(openai_messages(sent.prompt))
            kept = [m for m in sent.history if isinstance(m, HumanMessage)]
            people = [m for m in sent.prompt if isinstance(m, HumanMessage)]
            assert [m.id for m in people] == [m.id for m in kept]
            assert all(
                shown.text.startswith(said.text[:1])
                for shown, said in zip(people, kept, strict=True)
            )
            ticks = beside_ticks(sent.history)
            assert [m for m in sent.prompt if isinstance(m, AIMessage) and m in ticks] == ticks
            at = [at for at, m in enumerate(sent.history) if isinstance(m, AIMessage)]
            shown = {m.id: m for m in sent.prompt}
            for message in sent.history[at[-1] if at else 0 :]:
                if isinstance(message, ToolMessage) and message.name in ("work", "draw"):
                    assert shown[message.id].text.startswith(message.text)

    @some
    @given(conversation=whole_conversations)
    def test_it_shows_the_same_list_and_changes_only_behind_what_was_finished_since(
        self, build: Build, conversation: Conversation
    ) -> None:
        """The list is that of the unfolded prompt; the strictest chat templates accept each."""
        calls = model_calls(build, conversation)
        unfolded = model_calls(partial(build, folds=False), conversation)
        lists = [read_list(sent.prompt) for sent in calls]
        assert lists == [read_list(whole.prompt) for whole in unfolded]
        for sent in calls:
            assert is_alternating(openai_messages(sent.prompt))
            assert mistral_refusal(mistral_messages(sent.prompt)) is None
        for number, (earlier, later) in enumerate(pairwise(calls)):
            first = _first_difference(earlier.prompt, later.prompt)
            if first == len(earlier.prompt):
                continue
            finished = _finished_since(lists[number], later.history[len(earlier.history) :])
            assert finished
            worked = [
                turn
                for turn, after in enumerate(lists[1 : number + 2])
                if _in_progress(after) & finished or not _in_progress(after)
            ]
            assert _turn_of(earlier.prompt[first], later.history) >= min(worked)


class TestClaude:
    """The real chat model, and an API that refuses reasoning after a changed text."""

    @some
    @given(conversation=cut_off_conversations)
    def test_it_accepts_every_prompt(self, conversation: Conversation) -> None:
        for request in requests(with_middleware, conversation):
            assert begins_with_thinking(request)

    @some
    @given(conversation=whole_conversations)
    def test_so_does_a_hand_built_graph(self, conversation: Conversation) -> None:
        for request in requests(hand_built, conversation):
            assert begins_with_thinking(request)


def requests(build: Build, of: Conversation) -> list[Request]:
    """Hold a conversation with the API, which raises an error for a prompt that it refuses."""
    turns = iter(of.turns)
    api = MessagesAPI(lambda _: next(turns, "That is all."))
    graph = build(chat_anthropic(api))
    for run in of.runs:
        given = {"messages": [run.message]}
        with suppress(CutOffError):
            graph.invoke(given if run.todos is None else {**given, "todos": run.todos}, CONFIG)
    return api.requests


def begins_with_thinking(request: Request) -> bool:
    """The rule of Claude models whose thinking has a budget, for the run that goes on.

    "A final `assistant` message must start with a thinking block (preceeding the lastmost set of
    `tool_use` and `tool_result` blocks)."
    """
    spoken = [at for at, message in enumerate(request["messages"]) if _is_spoken(message)]
    answers = request["messages"][spoken[-1] + 1 :]
    return not answers or answers[0]["content"][0]["type"] == "thinking"


def _is_spoken(message: Mapping[str, Any]) -> bool:
    blocks = message["content"]
    return message["role"] == "user" and (
        isinstance(blocks, str) or any(block["type"] != "tool_result" for block in blocks)
    )


FORMS = ("v0", "responses/v1", "v1")
"""The forms that langchain-openai gives an answer, by its setting `output_version`."""


class TestOpenAI:
    """Its reasoning has an id; a call of the same answer is refused without it."""

    @pytest.mark.parametrize("form", FORMS)
    def test_reasoning_and_calls_stay_and_leave_together(self, form: str) -> None:
        """What stays is unchanged, also after the place where something was left out."""
        turns = [
            [call("write_todos", mode="replace", todos=["a", "b"])],
            [call("edit_todos", action="start", indices=[0]), call("work", part="x", size=20_000)],
            [call("work", part="x", size=20_000), call("work", part="y", size=20_000)],
            [call("edit_todos", action="complete", indices=[0, 1])],
            [],
        ]
        script = [openai_answer(number, made, form) for number, made in enumerate(turns)]
        model = ScriptedChatModel(script=script)
        with_middleware(model).invoke({"messages": [("user", "Begin.")]}, CONFIG)
        items = openai_items(model.prompts[4], form)
        assert items == [
            *["rs_0", "msg_0", "fc_0_0", "result"],
            *["rs_1", "msg_1", "fc_1_0", "fc_1_1", "result", "result"],
            *["rs_3", "msg_3", "fc_3_0", "result"],
        ]


def openai_answer(number: int, calls: Sequence[ToolCall], form: str) -> AIMessage:
    """An answer of the Responses API, as langchain-openai reads it."""
    text = {"type": "output_text", "text": "Said.", "annotations": []}
    said = {"role": "assistant", "status": "completed", "content": [text]}
    output: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x"},
        {"type": "message", "id": f"msg_{number}", **said},
        *(
            {
                "type": "function_call",
                "id": f"fc_{number}_{at}",
                "call_id": made["id"],
                "name": made["name"],
                "arguments": json.dumps(made["args"]),
            }
            for at, made in enumerate(calls)
        ),
    ]
    response = Response.model_construct(id=f"resp_{number}", error=None, output=[])
    response.output = TypeAdapter(list[ResponseOutputItem]).validate_python(output)
    result = _construct_lc_result_from_responses_api(response, output_version=form)
    message = result.generations[0].message
    assert isinstance(message, AIMessage)
    return _update_message_content_to_blocks(message, "v1") if form == "v1" else message


def openai_items(prompt: Sequence[BaseMessage], form: str) -> list[str]:
    """The ids of what langchain-openai sends of the model's answers, and each result."""
    options: Any = {"api_key": "none", "use_responses_api": True, "output_version": form}
    sent = ChatOpenAI(model="gpt-5", **options)._get_request_payload(list(prompt))["input"]
    results = (
        "result" if each["type"] == "function_call_output" else each.get("id") for each in sent
    )
    return [each for each in results if each]


def _first_difference(earlier: Sequence[BaseMessage], later: Sequence[BaseMessage]) -> int:
    same = (one == other for one, other in zip(earlier, later, strict=False))
    return next((at for at, equal in enumerate(same) if not equal), min(len(earlier), len(later)))


def _finished_since(todos: Read, newer: Sequence[AnyMessage]) -> set[str]:
    """The items that newer messages of a history finish, one after the other."""
    lists: list[Read] = [
        [(item["text"], item["status"]) for item in after]
        for after in map(list_after, newer)
        if after
    ]
    return {
        text
        for before, after in pairwise([todos, *lists])
        for text in _finished(after) - _finished(before)
    }


def _finished(todos: Read) -> Counter[str]:
    return Counter(text for text, status in todos if status in ("completed", "abandoned"))


def _in_progress(todos: Read) -> set[str]:
    return {text for text, status in todos if status == "in_progress"}


def _turn_of(message: BaseMessage, history: Sequence[AnyMessage]) -> int:
    """The number of the model's answer that a message belongs to."""
    at = [m.id for m in history].index(message.id)
    return sum(isinstance(m, AIMessage) for m in history[: at + 1]) - 1
