"""Finished items leave the prompt: what goes, what stays, and that every provider accepts it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    wrap_tool_call,
)
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from tests.support import edits, items, writes
from todo_tools import TodoItem, TodoMiddleware, model_view, todos_from_messages
from todo_tools._list.prompts import EMPTY_ANSWER, FOLDED
from todo_tools._view.folding import Folds, folded
from todo_tools.testing import ScriptedChatModel, call, turn


@tool
def work(part: str, size: int = 20_000) -> str:
    """Do a part of the work."""
    return f"{part} is done. ".ljust(size, "x")


@tool
def draw(part: str) -> list[dict[str, Any]]:
    """Draw a picture."""
    url = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
    return [{"type": "text", "text": part}, {"type": "image_url", "image_url": {"url": url}}]


@wrap_tool_call
def stamped(request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
    """Put the time before the results of the todo tools."""
    made = handler(request)
    if isinstance(made, Command) and made.update:
        for message in made.update["messages"]:
            message.content = f"[12:00] {message.content}"
    return made


def start(*indices: int) -> ToolCall:
    return edits("start", *indices)


def complete(*indices: int) -> ToolCall:
    return edits("complete", *indices)


def works(part: str, **args: Any) -> ToolCall:
    return call("work", part=part, **args)


REQUEST = "Begin.\n".ljust(3_000, "x")
"""A request that fills the smallest prompt that providers cache."""


class Thread:
    """A thread of an agent whose finished items leave the prompt."""

    def __init__(
        self, *script: AIMessage | str, before: Sequence[Any] = (), **options: Any
    ) -> None:
        self.model = ScriptedChatModel(script=script)
        self.config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        options = {"policy": None, "fold_finished": True, **options}
        self.agent: Any = create_agent(
            self.model,
            [work, draw],
            middleware=[*before, TodoMiddleware(**options)],
            checkpointer=InMemorySaver(),
        )

    def say(self, text: str = REQUEST, **values: Any) -> "Thread":
        self.agent.invoke({"messages": [("user", text)], **values}, self.config)
        return self

    @property
    def history(self) -> list[AnyMessage]:
        return list(self.agent.get_state(self.config).values["messages"])

    @property
    def prompts(self) -> list[list[str]]:
        return [outline(prompt) for prompt in self.model.prompts]


def last_prompt(*script: AIMessage, **values: Any) -> list[str]:
    """The outline of the prompt after the last of some answers."""
    return Thread(*script, "Over.").say(**values).prompts[-1]


def outline(prompt: Sequence[BaseMessage]) -> list[str]:
    """One line for each message of a prompt."""
    return [line for message in prompt if (line := _line(message))]


def _line(message: BaseMessage) -> str:
    if isinstance(message, SystemMessage):
        return ""
    if isinstance(message, AIMessage):
        said = [message.text] if message.text else []
        return "; ".join([*said, *map(_call, message.tool_calls)])
    if not isinstance(message, ToolMessage):
        return message.text.partition("\n")[0]
    if message.content == FOLDED:
        return "= cut"
    if message.name in ("work", "draw"):
        return f"= {message.text.split()[0]}"
    return f"= {message.status}"


def _call(made: ToolCall) -> str:
    args = made["args"]
    match made["name"]:
        case "edit_todos":
            return f"{args['action']} {args['indices'][0]}"
        case "write_todos":
            return f"plan {len(args['todos'])}"
        case _:
            return f"{made['name']} {args.get('part', '')}".strip()


class TestFinishedItems:
    def test_the_work_of_a_finished_item_leaves_the_prompt(self) -> None:
        """Turns with a todo call stay: they hold the list, and what the model says about it."""
        thread = Thread(
            turn("", writes("a", "b"), start(0)),
            turn("", works("a1")),
            turn("", works("a2"), works("a3")),
            turn("I found x.", complete(0), start(1)),
            "Over.",
        ).say()
        assert thread.prompts[-1] == [
            "Begin.",
            *["plan 2; start 0", "= success", "= success"],
            *["I found x.; complete 0; start 1", "= success", "= success"],
        ]
        assert "= a1" in outline(thread.history)

    def test_a_result_beside_a_todo_call_becomes_a_fixed_line(self) -> None:
        """The call keeps its result, so the message can stay as the model wrote it."""
        assert last_prompt(
            turn("", writes("a", "b", "c"), start(0), works("a1")), turn("", complete(0))
        )[1:5] == ["plan 3; start 0; work a1", "= success", "= success", "= cut"]

    def test_a_turn_of_several_items_waits_for_the_last_of_them(self) -> None:
        """An abandoned item is finished, too."""
        turns = [
            turn("", writes("a", "b"), start(0, 1)),
            turn("", works("ab")),
            turn("", edits("abandon", 0)),
        ]
        assert "= ab" in last_prompt(*turns)
        assert "= ab" not in last_prompt(*turns, turn("", complete(1)))

    def test_without_an_item_in_progress_a_turn_belongs_to_what_is_completed_next(self) -> None:
        """With the light prompt, models complete items without starting them."""
        turns = [turn("", writes("a", "b", "c")), turn("", works("a1"))]
        more = [turn("", complete(0)), turn("", works("b1")), turn("", complete(1))]
        assert "= a1" in last_prompt(*turns, turn("", edits("abandon", 2)))
        assert "= a1" not in last_prompt(*turns, more[0])
        assert "= b1" in last_prompt(*turns, *more[:2])
        assert "= b1" not in last_prompt(*turns, *more)

    def test_an_item_that_is_started_again_stays_folded(self) -> None:
        """Its new work stays until it is finished again."""
        turns = [turn("", writes("a", "b"), start(0)), turn("", works("a1")), turn("", complete(0))]
        again = [turn("", start(0)), turn("", works("a2"))]
        assert last_prompt(*turns, *again)[-3:] == ["= success", "work a2", "= a2"]
        assert "= a1" not in last_prompt(*turns, *again)
        assert "= a2" not in last_prompt(*turns, *again, turn("", complete(0)))

    def test_the_model_is_told_what_leaves_and_when(self) -> None:
        system = Thread("Over.").say().model.prompts[0][0]
        assert "finished items leave this conversation" in system.text
        plain = Thread("Over.", fold_finished=False).say().model.prompts[0][0]
        assert "leave this conversation" not in plain.text

    def test_the_setting_needs_the_default_view(self) -> None:
        with pytest.raises(TypeError, match="fold_finished must be True or False, got 'no'"):
            TodoMiddleware(fold_finished="no")  # type: ignore[arg-type]  # the mistake under test
        with pytest.raises(ValueError, match="fold_finished=True needs the default view"):
            TodoMiddleware(fold_finished=True, view=None)


def _only_b(item: TodoItem, _: Any) -> str | None:
    return None if item["text"] == "b" else "No."


class TestTicks:
    """Only a tick that was made folds, whatever became of its text."""

    WORKED = (turn("", writes("a", "b", "c"), start(0)), turn("", works("a1")))

    def test_a_refused_one_folds_nothing(self) -> None:
        """By a wrong index, or by a check; later calls of the message show the item completed."""
        assert "= a1" in last_prompt(*self.WORKED, turn("", complete(7)))
        refused = turn("", complete(0), start(1), works("b1"))
        thread = Thread(*self.WORKED, refused, turn("", complete(1)), "Over.", check=_only_b).say()
        assert "= a1" in thread.prompts[-2]
        assert "= a1" in thread.prompts[-1]

    def test_one_beside_a_refused_one_folds(self) -> None:
        """The list of the state is shown after the message, and has it."""
        turns = turn("", writes("a", "b", "c"), start(1)), turn("", works("b1"))
        ticks = turn("", complete(0), complete(1), works("c1"))
        assert "= b1" not in Thread(*turns, ticks, "Over.", check=_only_b).say().prompts[-1]

    def test_one_whose_result_has_an_addition_folds(self) -> None:
        thread = Thread(*self.WORKED, turn("", complete(0), start(1)), "Over.", before=[stamped])
        assert "= a1" not in " ".join(thread.say().prompts[-1])


class TestLists:
    WORKED = (turn("", writes("a", "b"), start(0)), turn("", works("a1")))

    def test_the_work_for_a_list_that_is_replaced_stays(self) -> None:
        """Nobody said that its items are finished."""
        shown = last_prompt(
            *self.WORKED, turn("", writes("c", "d"), start(0)), turn("", complete(0, 1))
        )
        assert "= a1" in shown

    def test_an_item_is_its_text(self) -> None:
        """Whatever is written around it; with an equal one that is open it is not finished."""
        insert = writes("x", mode="insert", index=0)
        assert "= a1" in last_prompt(*self.WORKED, turn("", insert), turn("", complete(0)))
        assert "= a1" not in last_prompt(*self.WORKED, turn("", insert), turn("", complete(1)))
        again = writes("c", "a")
        assert "= a1" not in last_prompt(*self.WORKED, turn("", again), turn("", complete(1)))
        equal = writes("a", mode="append")
        assert "= a1" in last_prompt(*self.WORKED, turn("", equal), turn("", complete(0)))
        assert "= a1" not in last_prompt(*self.WORKED, turn("", equal), turn("", complete(0, 2)))

    def test_work_before_the_first_list_or_after_its_end_stays(self) -> None:
        """Exploration serves all items, and what is added later is something else."""
        shown = last_prompt(
            turn("", works("before")),
            turn("", writes("a"), start(0)),
            turn("", complete(0)),
            turn("", works("after")),
            turn("", writes("b", mode="append")),
            turn("", complete(1)),
        )
        assert "= before" in shown
        assert "= after" in shown

    def test_a_list_of_the_application_folds_like_one_that_the_model_wrote(self) -> None:
        """It was seeded; an item that the application completes folds with the next turn."""
        turns = turn("", start(0)), turn("", works("a1")), turn("", complete(0))
        assert "= a1" not in last_prompt(*turns, todos=items("a", "b"))
        more = turn("", start(1)), turn("", works("b1"))
        thread = Thread(*self.WORKED, "Done?", *more, "Over.")
        done = [*items("a", status="completed"), *items("b")]
        assert "= a1" not in thread.say().say("Yes.", todos=done).prompts[-1]


class TestWhatStays:
    def test_what_people_say_stays_with_the_answers_to_it(self) -> None:
        thread = Thread(
            turn("", writes("a", "b"), start(0), works("a1")),
            turn("", works("a2")),
            "Shall I go on?",
            turn("", works("a3")),
            turn("", complete(0)),
            "Over.",
        )
        shown = thread.say().say("Yes.").prompts[-1]
        assert "= a2" not in shown
        assert "= a3" not in shown
        assert shown[5:7] == ["Shall I go on?", "Yes."]

    @pytest.mark.parametrize(
        ("decision", "said"),
        [
            ({"type": "reject", "message": "Never a gas pipe."}, "Never a gas pipe."),
            (
                {"type": "edit", "edited_action": {"name": "draw", "args": {"part": "a3"}}},
                "Executed instead: draw",
            ),
        ],
        ids=["rejected", "edited"],
    )
    def test_what_a_person_says_in_a_result_stays(self, decision: Any, said: str) -> None:
        """LangChain stores it as the result of the call; the results beside it are cut."""
        human = HumanInTheLoopMiddleware({"draw": {"allowed_decisions": ["edit", "reject"]}})
        thread = Thread(
            turn("", writes("a", "b"), start(0)),
            turn("", works("a1"), call("draw", part="a2"), start(0)),
            turn("", complete(0)),
            "Over.",
            before=[human],
        ).say()
        thread.agent.invoke(Command(resume={"decisions": [decision]}), thread.config)
        shown = thread.model.prompts[-1]
        assert any(said in message.text for message in shown)
        assert "= a1" not in outline(shown)

    def test_a_turn_right_before_a_message_of_a_person_stays(self) -> None:
        """Otherwise two messages of people could follow each other, which some models refuse."""
        script = (
            turn("", writes("a"), start(0)),
            turn("", works("a1")),
            turn("", complete(0)),
            "Over.",
        )
        history = Thread(*script).say().history
        assert "= a1" not in outline(folded_view(history))
        history.insert(6, HumanMessage("Hurry."))
        assert "= a1" in outline(folded_view(history))


def folded_view(history: list[AnyMessage]) -> list[AnyMessage]:
    """The prompt after a history, for which no list was edited."""
    state = {"messages": history, "todos": todos_from_messages(history)}
    return model_view(state, fold_finished=True)


class TestWhatPays:
    """What is left out is saved in each later call; what stays behind it is sent again once."""

    @staticmethod
    def shown_beside(made: ToolCall, *, left: int) -> list[str]:
        """The prompt after an item with a result beside its start, with some items left."""
        todos = writes("a", *map(str, range(left)))
        return last_prompt(turn("", todos, start(0), made), turn("", complete(0)))

    def test_a_result_is_cut_only_if_that_pays(self) -> None:
        """It is long, or many items are left; a picture counts as a long result."""
        assert "= cut" in self.shown_beside(works("a1", size=20_000), left=10)
        assert "= a1" in self.shown_beside(works("a1", size=100), left=10)
        assert "= a1" in self.shown_beside(works("a1", size=2_000), left=0)
        assert "= cut" in self.shown_beside(call("draw", part="a1"), left=10)

    def test_nothing_is_folded_where_a_cache_would_not_find_the_rest(self) -> None:
        """Anthropic's cache looks back over twenty blocks; these are the calls and results."""
        turns = turn("", writes(*"abcd"), start(0)), turn("", works("a1"))
        lists = [call("list_todos") for _ in range(12)]
        assert "= a1" not in last_prompt(*turns, turn("", complete(0), *lists[:5]))
        assert "= a1" in last_prompt(*turns, turn("", complete(0), *lists))

    def test_a_message_after_a_cancelled_call_changes_nothing_before_it(self) -> None:
        """The prompt that the cancelled call was sent has left the work out."""
        turns = turn("", writes(*"abcd"), start(0)), turn("", works("a1"))
        lists = [call("list_todos") for _ in range(5)]
        thread = Thread(*turns, turn("Done.", complete(0), *lists), "Over.").say()
        sent = folded_view(thread.history[:-1])
        assert "= a1" not in outline(sent)
        assert folded_view([*thread.history[:-1], HumanMessage("Hm.")])[:-1] == sent


def thinks(number: int, *calls: ToolCall) -> AIMessage:
    """An answer that begins with a thinking block."""
    block = {"type": "thinking", "thinking": f"Thought {number}.", "signature": f"{number}"}
    said = {"type": "text", "text": f"Answer {number}."}
    return AIMessage([block, said], tool_calls=calls)


def thoughts(prompt: Sequence[BaseMessage]) -> list[int]:
    """The numbers of the answers whose thinking is in a prompt."""
    parts = [part for message in prompt for part in message.content if isinstance(part, dict)]
    return [int(part["signature"]) for part in parts if "signature" in part]


class TestReasoning:
    def test_answers_behind_a_fold_lose_their_reasoning(self) -> None:
        """It is bound to the exact text before it, which has changed."""
        thread = Thread(
            thinks(1, writes("a", "b"), start(0)),
            thinks(2, works("a1")),
            thinks(3, complete(0), start(1)),
            thinks(4, works("b1")),
            "Over.",
        ).say()
        assert thoughts(thread.model.prompts[2]) == [1, 2]
        assert thoughts(thread.model.prompts[3]) == [1]
        assert thoughts(thread.model.prompts[4]) == [1, 4]

    def test_an_answer_of_nothing_else_gets_a_text(self) -> None:
        """Providers refuse an empty answer."""
        thought = AIMessage(thinks(1).content[:1])
        (shown,) = folded([thought], Folds(unbound={0}))
        assert shown is not None
        assert shown.text == EMPTY_ANSWER

    def test_what_is_left_out_is_neither_cut_nor_says_so(self) -> None:
        messages = [HumanMessage("One"), HumanMessage("Two")]
        assert folded(messages, Folds({0, 1}, cut={0}, ticks={1: 2})) == [None, None]

    def test_a_run_keeps_the_reasoning_that_it_began_with(self) -> None:
        """Some Claude models refuse a run otherwise; so the work before the run stays."""
        thread = Thread(
            thinks(1, writes("a", "b"), start(0)),
            thinks(2, works("a1")),
            thinks(3),
            thinks(4, works("a2")),
            thinks(5, works("a3")),
            thinks(6, complete(0)),
            "Over.",
        )
        shown = thread.say().say("Go on.").prompts[-1]
        assert thoughts(thread.model.prompts[-1]) == [1, 2, 3, 4]
        assert [line for line in shown if line.startswith("= a")] == ["= a1"]
        assert "= cut" in shown
        assert "Answer 4.; work a2" in shown
