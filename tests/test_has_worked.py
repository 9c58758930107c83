"""`has_worked`: an item is completed only after the call of another tool."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.types import Command

from tests.support import items, result_of
from todo_tools import (
    AutoContinue,
    TodoItem,
    TodoState,
    add_auto_continue,
    create_todo_tools,
    has_worked,
    model_view,
)
from todo_tools._thread.notes import continuation_message, noted
from todo_tools._thread.transcript import list_after
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn

TEXTS, STATUSES = st.sampled_from("abc"), ["not_started", "completed"]
REASON = "no other tool has worked on it yet; do its work with your other tools first"
WORK = call("shell", command="make")


@tool
def shell() -> str:
    """Run a command."""
    return "ok"


def edit(action: str, *indices: int) -> ToolCall:
    return call("edit_todos", action=action, indices=list(indices))


def write(*texts: str, mode: str = "replace") -> ToolCall:
    return call("write_todos", mode=mode, todos=list(texts))


class History:
    """A history with a list; `asks` adds the answer whose calls are running now."""

    def __init__(self, *texts: str) -> None:
        self.messages: list[AnyMessage] = [HumanMessage("Begin.")]
        self.todos: list[TodoItem] = items(*texts)
        self.blocks: dict[str, Any] = {}

    def turn(self, *calls: ToolCall, status: Any = "success") -> "History":
        """An answer with calls, and their results; the other tools answer with a status."""
        self.messages.append(turn("", *calls))
        for made in calls:
            if made["name"] == "shell":
                fields: Any = {"tool_call_id": made["id"], "name": "shell", "status": status}
                self.messages.append(ToolMessage("ok", **fields))
                continue
            result = result_of(made["name"], made["args"], self.todos, tool_call_id=made["id"])
            changed = list_after(result)
            self.todos = self.todos if changed is None else changed
            self.messages.append(result)
        return self

    def turn_with_refused(self, refused: ToolCall, made: ToolCall) -> "History":
        """An answer whose first call is refused; the result of the second shows it as made."""
        before = self.todos
        self.turn(refused, made)
        fields: Any = {"tool_call_id": refused["id"], "name": refused["name"], "status": "error"}
        self.messages[-2] = ToolMessage("Error: it is not done.", **fields)
        changed = list_after(result_of(made["name"], made["args"], before))
        self.todos = before if changed is None else changed
        return self

    def say(self, key: str, todos: list[TodoItem]) -> "History":
        """A message of the user that comes with a list; the next prompt shows it."""
        self.messages.append(HumanMessage("Go on.", id=key))
        self.todos = self.blocks[key] = todos
        return self

    def asks(self, *calls: ToolCall, about: str = "a", check: Any = has_worked) -> str | None:
        """The reason why an item may not be completed by the last of these calls that does so."""
        messages = [
            noted(each, list=self.blocks[each.id]) if each.id in self.blocks else each
            for each in [*self.messages, turn("", *calls)]
        ]
        return asks({"messages": messages, "todos": self.todos}, about, check)


def asks(state: dict[str, Any], about: str, decide: Any = has_worked) -> str | None:
    replies: dict[str, str | None] = {}

    def check(item: TodoItem, state: Any) -> None:
        replies[item["text"]] = decide(item, state)

    calls = [m for m in state["messages"] if isinstance(m, AIMessage)][-1].tool_calls
    own = [each for each in calls if each["args"].get("action") == "complete"][-1]
    runtime = ToolRuntime(state, {}, {}, lambda _: None, own["id"], None)  # type: ignore[var-annotated]
    _, _, edit_todos = create_todo_tools(check=check)
    edit_todos.invoke({**own, "args": {**own["args"], "runtime": runtime}})
    return replies.get(about)


DONE = edit("complete", 0)


class TestStarted:
    """The work must come after the start of the item."""

    def test_without_work_it_is_not_done(self) -> None:
        assert History("a").turn(edit("start", 0)).asks(DONE) == REASON

    def test_after_work_it_is_done(self) -> None:
        assert History("a").turn(edit("start", 0)).turn(WORK).asks(DONE) is None

    def test_work_before_the_start_does_not_count(self) -> None:
        assert History("a").turn(WORK).turn(edit("start", 0)).asks(DONE) == REASON

    def test_a_finished_item_that_is_started_again_needs_new_work(self) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK).turn(DONE)
        assert history.turn(edit("start", 0)).asks(DONE) == REASON

    def test_an_item_that_is_started_again_in_its_message_is_in_progress(self) -> None:
        """So the tick of another item uses none of its work."""
        history = History("a", "b").turn(edit("start", 0)).turn(DONE, edit("start", 0))
        assert history.turn(WORK).turn(edit("complete", 1)).asks(DONE) is None

    def test_the_start_of_an_equal_item_is_one(self) -> None:
        history = History("a", "a").turn(edit("start", 0)).turn(WORK).turn(edit("start", 1))
        assert history.asks(edit("complete", 1)) == REASON

    def test_the_start_of_an_equal_item_in_the_message_of_the_tick_is_none(self) -> None:
        history = History("a", "a").turn(edit("start", 0)).turn(WORK)
        assert history.asks(edit("start", 1), DONE) is None

    def test_the_tick_of_an_equal_item_leaves_its_work(self) -> None:
        history = History("a", "a").turn(edit("start", 0, 1)).turn(WORK).turn(DONE)
        assert history.asks(edit("complete", 1)) is None

    def test_another_start_of_an_item_in_progress_changes_nothing(self) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK)
        assert history.asks(edit("start", 0), DONE) is None
        assert history.turn(edit("start", 0)).asks(DONE) is None

    def test_nor_does_a_start_of_it_beside_another_item(self) -> None:
        history = History("a", "b").turn(edit("start", 0)).turn(WORK)
        assert history.turn(edit("start", 0, 1)).asks(DONE) is None
        assert history.asks(edit("complete", 1), about="b") == REASON
        assert (
            History("a", "b").turn(edit("start", 0)).turn(WORK).asks(edit("start", 0, 1), DONE)
            is None
        )

    def test_nor_does_a_start_of_it_beside_a_tick_that_was_refused(self) -> None:
        history = History("a", "b", "c").turn(edit("start", 0)).turn(WORK)
        refused = edit("complete", 2)
        history.turn(refused, edit("start", 0, 1))
        history.messages[-2] = ToolMessage(
            "No.", name="edit_todos", tool_call_id=refused["id"] or ""
        )
        assert history.asks(DONE) is None

    def test_a_start_after_one_that_was_refused_is_one(self) -> None:
        """The result between them shows the item as started already."""
        refused, again = edit("start", 0), edit("start", 0)
        history = History("a").turn(WORK).turn(refused, write("b", mode="append"), again)
        history.messages[-3] = ToolMessage(
            "No.", name="edit_todos", tool_call_id=refused["id"] or ""
        )
        assert history.asks(DONE) == REASON

    def test_a_call_that_changes_nothing_forgets_no_work(self) -> None:
        """Also in the message of the start."""
        start = edit("start", 0)
        assert History("a").turn(start, WORK, edit("start", 0)).asks(DONE) is None
        refused = History("a").turn(edit("start", 0), edit("complete", 7)).turn(WORK)
        assert refused.turn(edit("start", 0)).asks(DONE) is None

    def test_work_counts_for_all_items_in_progress(self) -> None:
        """Which of them it was for is not known; the tick of another item changes nothing."""
        history = History("b", "a").turn(edit("start", 0, 1)).turn(WORK)
        assert history.asks(edit("complete", 0, 1)) is None
        history = History("a", "b").turn(edit("start", 0, 1)).turn(WORK).turn(DONE)
        assert history.asks(edit("complete", 1), about="b") is None


class TestNeverStarted:
    """The work must come after the last tick."""

    def test_without_work_it_is_not_done(self) -> None:
        assert History("a").asks(DONE) == REASON

    def test_after_work_it_is_done(self) -> None:
        assert History("a").turn(WORK).asks(DONE) is None

    @pytest.mark.parametrize("action", ["complete", "abandon"])
    def test_work_before_the_last_tick_was_for_another_item(self, action: str) -> None:
        history = History("b", "a").turn(WORK).turn(edit(action, 0))
        assert history.asks(edit("complete", 1)) == REASON
        assert history.turn(WORK).asks(edit("complete", 1)) is None

    def test_the_tick_before_it_in_the_same_call_uses_the_work(self) -> None:
        """Otherwise one call could complete the whole list after one piece of work."""
        history = History("b", "a").turn(WORK)
        assert history.asks(edit("complete", 0, 1)) == REASON
        assert history.asks(edit("complete", 0, 1), about="b") is None

    def test_an_item_in_the_same_call_that_was_completed_before_uses_none(self) -> None:
        history = History("b", "a").turn(edit("complete", 0)).turn(WORK)
        assert history.asks(edit("complete", 0, 1)) is None

    def test_the_start_of_another_item_with_the_same_text_is_not_its_own(self) -> None:
        history = History("a", "a").turn(edit("start", 0)).turn(WORK).turn(DONE)
        assert history.asks(edit("complete", 1)) == REASON

    def test_the_start_of_another_item_changes_nothing(self) -> None:
        history = History("b", "a").turn(WORK).turn(edit("start", 0))
        assert history.asks(edit("complete", 1)) is None

    def test_another_tick_of_a_completed_item_uses_none(self) -> None:
        """It comes after a refused tick of another item."""
        history = History("a", "b", "c").turn(WORK).turn(DONE)
        refused = edit("complete", 1)
        history.turn(refused, WORK, DONE)
        history.messages[-3] = ToolMessage(
            "No.", name="edit_todos", tool_call_id=refused["id"] or ""
        )
        assert history.asks(edit("complete", 2), about="c") is None

    def test_a_tick_that_was_refused_uses_no_work(self) -> None:
        history = History("a").turn(WORK).turn(edit("complete", 7))
        assert history.asks(DONE) is None


class TestWork:
    """What is work."""

    def test_the_todo_tools_are_none(self) -> None:
        listing = call("list_todos")
        assert History("a").turn(edit("start", 0)).turn(listing).asks(DONE) == REASON

    def test_a_call_that_failed_is_none(self) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK, status="error")
        assert history.asks(DONE) == REASON

    def test_a_result_that_an_interface_made_up_is_none(self) -> None:
        """The call waits, and agent-chat-ui says that it succeeded."""
        history = History("a").turn(edit("start", 0)).turn(WORK)
        fields = {"content": "Successfully handled tool call.", "id": "do-not-render-1"}
        history.messages[-1] = history.messages[-1].model_copy(update=fields)
        assert history.asks(DONE) == REASON

    @pytest.mark.parametrize("made", [DONE, call("list_todos")])
    def test_an_answer_of_other_code_to_a_todo_call_is_none(self, made: ToolCall) -> None:
        """Code that denies a call, or reports its error, often leaves out the name of the tool."""
        history = History("a")
        history.messages += [turn("", made), ToolMessage("Denied.", tool_call_id=made["id"])]
        assert history.asks(DONE) == REASON

    def test_a_result_without_a_name_counts(self) -> None:
        history = History("a")
        history.messages += [turn("", WORK), ToolMessage("ok", tool_call_id=WORK["id"])]
        assert history.asks(DONE) is None
        del history.messages[1]  # and if the call was summarized away
        assert history.asks(DONE) is None

    def test_a_call_that_got_no_result_is_none(self) -> None:
        """The run was cancelled."""
        history = History("a").turn(edit("start", 0))
        history.messages += [turn("", WORK), HumanMessage("Go on.")]
        assert history.asks(DONE) == REASON


class TestResultsThatComeFirst:
    """What a person answers to a call, or a node of one's own, is stored before other results."""

    @pytest.mark.parametrize("made", [edit("start", 0), write("a")])
    def test_work_after_the_call_before_it_counts(self, made: ToolCall) -> None:
        history = History("a").turn(made, WORK)
        history.messages[-2:] = reversed(history.messages[-2:])
        assert history.asks(DONE) is None

    def test_work_after_a_tick_is_for_the_next_item(self) -> None:
        history = History("a", "b").turn(WORK).turn(DONE, WORK)
        history.messages[-2:] = reversed(history.messages[-2:])
        assert history.asks(edit("complete", 1), about="b") is None

    def test_work_before_the_call_after_it_does_not_count(self) -> None:
        history = History("a").turn(WORK, edit("start", 0))
        assert history.asks(DONE) == REASON

    @pytest.mark.parametrize(
        ("calls", "reason"),
        [
            ([DONE, WORK], REASON),
            ([WORK, DONE], None),
            ([edit("start", 0), WORK, DONE], None),
            ([WORK, edit("start", 0), DONE], REASON),
        ],
    )
    def test_the_tick_may_still_run(self, calls: list[ToolCall], reason: str | None) -> None:
        state = {
            "messages": [turn("", *calls), ToolMessage("ok", tool_call_id=WORK["id"])],
            "todos": items("a"),
        }
        assert asks(state, "a") == reason

    def test_the_calls_before_the_tick_may_have_run(self) -> None:
        """A node of one's own runs one call after the other."""
        history = History("a").turn(WORK, edit("start", 0))
        history.messages[1] = turn("", *history.messages[1].tool_calls, DONE)  # type: ignore[union-attr]
        assert asks({"messages": history.messages, "todos": history.todos}, "a") == REASON

    def test_a_person_answers_a_call_beside_the_start(self, config: RunnableConfig) -> None:
        question = turn("", edit("start", 0), WORK)
        model = ScriptedChatModel(script=[question, turn("", DONE), "Done."])
        ask = HumanInTheLoopMiddleware({"shell": {"allowed_decisions": ["respond"]}})
        agent: Any = create_agent(
            model,
            [shell],
            middleware=[ask, TodoMiddleware(check=has_worked)],
            checkpointer=InMemorySaver(),
        )
        agent.invoke({"messages": [("user", "Ask me.")], "todos": items("a")}, config)
        decision = {"decisions": [{"type": "respond", "message": "Red."}]}
        final = agent.invoke(Command(resume=decision), config)
        assert final["todos"] == items("a", status="completed")


class TestResultsWithAnotherText:
    """A node of the graph replaces the texts of old results, and keeps the messages."""

    def clear(self, history: History, *places: int) -> History:
        for at in places:
            cleared = {"content": "[cleared]"}
            history.messages[at] = history.messages[at].model_copy(update=cleared)
        return history

    def test_their_ticks_use_the_work(self) -> None:
        """The list is shown again with an earlier result, as after the tick."""
        history = History().turn(write("a", "b")).turn(WORK).turn(DONE)
        history.messages[2].id = "plan"
        history.blocks = {"plan": history.todos}
        self.clear(history, 2, 6)
        assert history.asks(edit("complete", 1), about="b") == REASON
        assert history.turn(WORK).asks(edit("complete", 1), about="b") is None

    @pytest.mark.parametrize("made", [write("c", "d"), edit("start", 0)])
    def test_work_before_their_plan_or_start_does_not_count(self, made: ToolCall) -> None:
        history = History().turn(write("a", "b")).turn(WORK).turn(made)
        history.messages[2].id = "plan"
        history.blocks = {"plan": history.todos}
        self.clear(history, 2, 6)
        about = history.todos[0]["text"]
        assert history.asks(DONE, about=about) == REASON
        assert history.turn(WORK).asks(DONE, about=about) is None

    def test_one_that_changed_nothing_forgets_no_work(self) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK).turn(edit("start", 0))
        assert self.clear(history, -1).asks(DONE) is None

    @pytest.mark.parametrize("kept", [0, 1, 2, 3])
    def test_a_graph_that_clears_old_results_ticks_nothing_undone(self, kept: int) -> None:
        script = [write("a", "b")], [WORK], [DONE], *[[edit("complete", 1)]] * 6
        model = ScriptedChatModel(script=[*(turn("", *calls) for calls in script), "Over."])

        def clear(state: TodoState) -> dict[str, Any]:
            results = [each for each in state["messages"] if isinstance(each, ToolMessage)]
            old = results[: len(results) - kept]
            return {"messages": [each.model_copy(update={"content": "[cleared]"}) for each in old]}

        def agent(state: TodoState) -> dict[str, Any]:
            return {"messages": [model.invoke(model_view(state))]}

        builder = StateGraph(TodoState)
        builder.add_node("clear", clear)
        builder.add_node("agent", agent)
        builder.add_node("tools", ToolNode([*create_todo_tools(check=has_worked), shell]))
        builder.add_edge(START, "clear")
        builder.add_edge("clear", "agent")
        builder.add_edge("tools", "clear")
        add_auto_continue(builder, policy=AutoContinue(max_in_turn=0), entry="clear")
        graph: Any = builder.compile()
        final = graph.invoke({"messages": [("user", "Go.")]})
        assert final["todos"] == [*items("a", status="completed"), *items("b")]


class TestSummaries:
    """The start of an item is no longer in the history."""

    @pytest.mark.parametrize(
        ("tags", "place"),
        [
            ({"lc_source": "summarization"}, "first"),
            ({"lc_source": "summarization"}, "last"),
            ({}, "last"),  # a trim that keeps the user's message
        ],
    )
    def test_the_tick_of_another_item_does_not_use_its_work(
        self, tags: dict[str, str], place: str
    ) -> None:
        history = History("a", "b")
        history.todos = items("a", "b", status="in_progress")
        history.turn(WORK)
        history.messages[0] = HumanMessage("So far.", additional_kwargs=tags, id="first")
        history.messages[-1].id = "last"
        history.blocks = {place: history.todos}
        assert history.asks(edit("complete", 0, 1), about="b") is None
        assert history.turn(DONE).asks(edit("complete", 1), about="b") is None

    def test_so_it_is_if_only_that_tick_tells_of_the_list(self) -> None:
        history = History("a", "b")
        history.todos = items("a", "b", status="in_progress")
        tags = {"lc_source": "summarization"}
        history.messages[0] = HumanMessage("So far.", additional_kwargs=tags)
        assert history.turn(WORK).turn(DONE).asks(edit("complete", 1), about="b") is None

    @pytest.mark.parametrize("tags", [{}, {"lc_source": "cron"}])
    def test_an_item_that_came_in_progress_still_counts_as_not_started(
        self, tags: dict[str, str]
    ) -> None:
        """It came with a message of the user or of other code."""
        history = History("a", "b")
        history.todos = items("a", "b", status="in_progress")
        history.messages[0] = HumanMessage("Go on.", additional_kwargs=tags, id="first")
        history.blocks = {"first": history.todos}
        assert history.turn(WORK).turn(DONE).asks(edit("complete", 1), about="b") == REASON

    def test_an_item_that_was_set_in_progress_later_counts_as_not_started(self) -> None:
        history = History("a", "b").turn(WORK)
        history.todos = [*items("a"), *items("b", status="in_progress")]
        history.messages[0].id, history.messages[-1].id = "first", "last"
        history.blocks = {"first": items("a", "b"), "last": history.todos}
        assert history.turn(DONE).asks(edit("complete", 1), about="b") == REASON

    def test_an_equal_item_that_is_in_progress_is_another(self) -> None:
        history = History()
        history.todos = [*items("a", status="in_progress"), *items("b", "a")]
        history.turn(WORK)
        history.messages[-1].id = "last"
        history.blocks = {"last": history.todos}
        assert history.turn(edit("complete", 1)).asks(edit("complete", 2)) == REASON

    def test_the_middleware_keeps_count(self) -> None:
        """The summary comes in the middle of a run."""
        work = [turn("", call("shell", command=str(at))) for at in range(14)]
        both = turn("", edit("complete", 0, 1))
        model = ScriptedChatModel(script=[turn("", edit("start", 0, 1)), *work, both, "Done."])
        summarizer = ScriptedChatModel(script=lambda _: "So far.")
        summary = SummarizationMiddleware(
            summarizer, trigger=("messages", 16), keep=("messages", 6)
        )
        middleware = [summary, TodoMiddleware(check=has_worked)]
        agent: Any = create_agent(model, [shell], middleware=middleware)
        final = agent.invoke({"messages": [("user", "Do both.")], "todos": items("a", "b")})
        assert final["messages"][0].additional_kwargs == {"lc_source": "summarization"}
        assert final["todos"] == items("a", "b", status="completed")


class TestLists:
    def test_work_for_a_list_that_was_replaced_does_not_count(self) -> None:
        history = History().turn(write("a"), edit("start", 0)).turn(WORK).turn(write("a", "b"))
        assert history.asks(DONE) == REASON

    def test_a_list_that_is_written_again_unchanged_asks_for_no_new_work(self) -> None:
        history = History().turn(write("a")).turn(WORK).turn(write("a"))
        assert history.asks(DONE) is None

    def test_items_that_are_added_change_nothing(self) -> None:
        """An insertion moves the item; its text is what counts."""
        history = History().turn(write("a"), edit("start", 0)).turn(WORK)
        history.turn(write("c", mode="append"))
        history.turn(call("write_todos", mode="insert", index=0, todos=["b"]))
        assert history.asks(edit("complete", 1)) is None

    @pytest.mark.parametrize("mode", ["append", "insert"])
    def test_items_that_are_added_to_an_empty_list_are_a_new_list(self, mode: str) -> None:
        """Some models write their plan this way."""
        added = call("write_todos", mode=mode, index=0, todos=["a"])
        assert History().turn(WORK).turn(added).asks(DONE) == REASON
        assert History().turn(WORK).turn(added).turn(WORK).asks(DONE) is None
        assert History().asks(WORK, added, DONE) == REASON
        assert History().asks(added, WORK, DONE) is None

    @pytest.mark.parametrize(
        "spoken",
        [
            [HumanMessage("Do this now.")],
            [AIMessage("Hm."), HumanMessage("Do this.", additional_kwargs={"lc_source": "cron"})],
        ],
        ids=["user", "program"],
    )
    @pytest.mark.parametrize("before", [[], ["b"]])
    def test_work_before_a_list_that_the_application_gave_does_not_count(
        self, before: list[str], spoken: list[AnyMessage]
    ) -> None:
        """It comes with a message of the user or of the program, on a thread that goes on."""
        history = History(*before).turn(edit("start", 0)).turn(WORK)
        history.messages += spoken
        history.todos = items("a")
        assert history.asks(DONE) == REASON
        assert history.turn(WORK).asks(DONE) is None

    @pytest.mark.parametrize(
        "shown_by",
        [
            call("list_todos"),
            edit("start", 1),
            write("d", mode="append"),
            call("write_todos", mode="insert", index=2, todos=["d"]),
        ],
    )
    @pytest.mark.parametrize(("before", "tags"), [([], {}), (["b"], {"lc_source": "cron"})])
    def test_a_list_whose_block_is_forgotten_is_new_at_its_message(
        self, shown_by: ToolCall, before: list[str], tags: dict[str, str]
    ) -> None:
        """An agent that is a node of another graph keeps no blocks between two runs."""
        history = History(*before).turn(edit("start", 0)).turn(WORK)
        history.messages.append(HumanMessage("Do this now.", additional_kwargs=tags))
        history.todos = items("a", "c")
        history.turn(shown_by)
        history.messages.append(HumanMessage("Go on."))
        assert history.asks(DONE) == REASON
        assert history.turn(WORK).asks(DONE) is None

    def test_work_after_that_message_counts(self) -> None:
        """Also before a continuation."""
        history = History("b").turn(edit("start", 0)).turn(WORK)
        history.messages.append(HumanMessage("Do this now."))
        history.todos = items("a", "c")
        history.turn(WORK)
        history.messages += [AIMessage("Hm."), continuation_message("Go on.")]
        history.turn(edit("start", 1))
        history.messages.append(HumanMessage("Go on."))
        assert history.asks(DONE) is None
        assert history.turn(edit("complete", 1)).asks(DONE) == REASON

    def test_a_later_change_of_the_application_does_not_hide_the_new_list(self) -> None:
        history = History("b").turn(edit("start", 0)).turn(WORK)
        history.messages.append(HumanMessage("Do this now."))
        history.todos = items("a", "c")
        history.turn(edit("start", 1))
        history.todos = items("a", "b")
        assert history.turn(call("list_todos")).asks(DONE) == REASON

    def test_the_first_result_with_that_list_may_be_a_tick(self) -> None:
        history = History("b").turn(edit("start", 0))
        history.messages.append(HumanMessage("Do this now."))
        history.todos = items("a", "c")
        history.turn(WORK).turn(edit("complete", 1))
        assert history.asks(DONE) == REASON

    def test_a_forgotten_list_may_keep_finished_items(self) -> None:
        history = History().turn(write("b")).turn(DONE).turn(WORK)
        history.messages.append(HumanMessage("Do this, too."))
        history.todos = [*history.todos, *items("a")]
        history.turn(write("c", mode="append"))
        history.messages.append(HumanMessage("Go on."))
        assert history.asks(edit("complete", 1)) == REASON

    def test_a_forgotten_list_may_be_the_old_one_with_other_statuses(self) -> None:
        history = History().turn(write("a", "b")).turn(edit("complete", 0, 1)).turn(WORK)
        history.messages.append(HumanMessage("Again."))
        history.todos = items("a", "b")
        history.turn(edit("start", 1))
        assert history.asks(DONE) == REASON

    @pytest.mark.parametrize(
        "made",
        [
            write("c", mode="append"),
            call("write_todos", mode="insert", index=0, todos=["c"]),
            edit("start", 0),
            call("list_todos"),
        ],
    )
    def test_a_list_that_only_calls_changed_is_no_new_one(self, made: ToolCall) -> None:
        """Also if all of its items were finished before."""
        history = History().turn(write("b")).turn(DONE).turn(WORK)
        history.messages.append(HumanMessage("Go on."))
        history.turn(made).turn(write("a", mode="append"))
        assert history.asks(edit("complete", len(history.todos) - 1)) is None

    def test_a_list_that_the_application_adds_to_goes_on(self) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK)
        history.messages.append(HumanMessage("Do this too."))
        history.todos = [*history.todos, *items("b")]
        assert history.asks(DONE) is None

    def test_a_result_with_another_text_forgets_no_work(self) -> None:
        """The list was written again unchanged, and other middleware added to the result."""
        history = History().turn(write("a")).turn(WORK).turn(write("a"))
        fields = {"content": f"[12:00] {history.messages[-1].text}"}
        history.messages[-1] = history.messages[-1].model_copy(update=fields)
        assert history.asks(DONE) is None

    def test_results_with_another_text_count_as_well(self) -> None:
        """Other middleware may have added to it, or moved it into a file."""
        history = History("b", "a").turn(WORK).turn(edit("complete", 0))
        history.messages[-1].content = "See a file."
        assert history.asks(edit("complete", 1)) == REASON
        history.turn(WORK).turn(edit("start", 1))
        history.messages[-1].content = "See a file."
        assert history.asks(edit("complete", 1)) == REASON

    def test_a_history_without_the_list_is_no_obstacle(self) -> None:
        """The list was seeded, or its results were summarized away."""
        history = History("a")
        history.messages = []
        assert history.asks(DONE) == REASON
        assert history.turn(WORK).asks(DONE) is None

    @pytest.mark.parametrize("spoken", [[], [HumanMessage("Go on.")]])
    def test_a_message_of_other_code_may_bring_a_new_list(self, spoken: list[AnyMessage]) -> None:
        history = History("b").turn(WORK).turn(DONE).turn(WORK)
        tagged = HumanMessage("A job.", additional_kwargs={"lc_source": "cron"}, id="job")
        history.messages += [*spoken, tagged]
        history.todos = items("a")
        history.blocks = {"job": history.todos}
        assert history.asks(DONE) == REASON

    def test_a_list_is_not_new_if_a_refused_tick_was_shown_as_made(self) -> None:
        """A later result of the message shows the list without an open item."""
        history = History("a", "b").turn(edit("start", 0)).turn(WORK)
        history.turn_with_refused(DONE, edit("complete", 1)).say("now", history.todos)
        assert history.asks(DONE) is None

    def test_a_refused_plan_that_was_shown_as_made_is_no_new_list(self) -> None:
        """A person may reject it when its call begins."""
        history = History("a", "b").turn(edit("start", 0)).turn(WORK)
        history.messages += [AIMessage("Shall I go on?"), HumanMessage("Yes.")]
        history.turn_with_refused(write("x", "y"), edit("start", 1))
        assert history.asks(DONE) is None

    def test_a_refused_tick_that_was_shown_as_made_does_not_end_what_was_started(self) -> None:
        """The user's message came without a list, and nothing else tells of the list then."""
        history = History("a", "b").turn(WORK).turn(edit("start", 0))
        history.messages += [AIMessage("Shall I go on?"), HumanMessage("Yes.")]
        assert history.turn_with_refused(DONE, edit("start", 1)).asks(DONE) == REASON

    def test_the_first_list_may_come_before_a_message_of_other_code(self) -> None:
        """For example, middleware adds what it remembers after the user's message."""
        history = History().turn(WORK)
        tagged = HumanMessage("They like green.", additional_kwargs={"lc_source": "memory"})
        history.messages += [HumanMessage("Do this now."), tagged.model_copy(update={"id": "new"})]
        history.todos = items("a")
        history.blocks = {"new": history.todos}
        assert history.asks(DONE) == REASON

    def test_a_list_that_comes_back_with_a_continuation_is_no_new_one(self) -> None:
        """What showed it before was summarized away."""
        history = History("a").turn(WORK)
        told = continuation_message("Go on.", key="told")
        history.messages += [AIMessage("Hm."), told]
        history.blocks = {str(told.id): items("a")}
        history.messages[0] = HumanMessage("So far.", additional_kwargs={"lc_source": "summary"})
        assert history.asks(DONE) is None

    def test_a_list_that_is_shown_again_with_a_result_is_no_new_one(self) -> None:
        """A trim may keep the first message, which has an older list, and the last ones."""
        history = History("a").turn(WORK)
        history.messages[0].id, history.messages[-1].id = "first", "last"
        history.blocks = {"first": items("b"), "last": items("a")}
        assert history.asks(DONE) is None

    def test_a_list_that_is_shown_again_is_no_new_one(self) -> None:
        """A request that was shortened, for example, has it again."""
        history = History("a").turn(edit("abandon", 0)).turn(WORK)
        tagged = HumanMessage("A job.", additional_kwargs={"lc_source": "cron"}, id="job")
        history.messages.append(tagged)
        history.blocks = {"job": history.todos}
        assert history.asks(DONE) is None

    def test_a_list_that_the_application_reset_is_ticked_again(self) -> None:
        """A tick is one, though an earlier result showed the same list."""
        history = History("b", "a").turn(WORK).turn(DONE)
        history.messages.append(HumanMessage("Again.", id="again"))
        history.todos = items("b", "a")
        history.blocks = {"again": history.todos}
        assert history.turn(WORK).turn(DONE).asks(edit("complete", 1)) == REASON

    @pytest.mark.parametrize("status", ["not_started", "completed", "abandoned", None])
    def test_an_item_that_a_person_put_aside_is_no_longer_started(self, status: Any) -> None:
        """Even if it is in progress again later: the work on another item does not count for it."""
        history = History("b", "a").turn(edit("start", 1)).turn(WORK)
        aside = items("a", status=status) if status else []
        history.say("aside", [*items("b"), *aside]).turn(WORK).turn(DONE)
        history.say("again", [*items("b", status="completed"), *items("a", status="in_progress")])
        assert history.asks(edit("complete", 1)) == REASON
        assert history.turn(WORK).asks(edit("complete", 1)) is None

    def test_the_start_of_an_item_that_is_put_aside_uses_no_work(self) -> None:
        history = History("a").turn(WORK).turn(edit("start", 0)).say("aside", items("a"))
        assert history.asks(DONE) is None

    @pytest.mark.parametrize("action", ["complete", "abandon"])
    def test_an_item_that_a_person_opened_again_needs_new_work(self, action: str) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK).turn(edit(action, 0))
        history.todos = items("a", status="in_progress")
        assert history.asks(DONE) == REASON
        assert history.turn(WORK).asks(DONE) is None

    @pytest.mark.parametrize("note", [1, {"operation": 1}, {"operation": {"op": "set_status"}}])
    def test_a_note_of_another_program_is_no_obstacle(self, note: Any) -> None:
        history = History("b", "a").turn(DONE).turn(WORK)
        history.messages[2].response_metadata["todo_tools"] = note
        assert history.asks(edit("complete", 1)) is None


class TestTheSameMessage:
    """Calls that come before the completion in its message."""

    def test_work_beside_it_counts(self) -> None:
        assert History("a").asks(edit("start", 0), WORK, DONE) is None
        assert History("a").turn(edit("start", 0)).asks(WORK, DONE) is None

    def test_work_after_it_does_not_count(self) -> None:
        assert History("a").turn(edit("start", 0)).asks(DONE, WORK) == REASON

    def test_the_arguments_of_refused_calls_do_not_hide_it(self) -> None:
        """The check knows which call it decides about."""
        nameless: ToolCall = {**edit("start", 0), "id": ""}
        for refused in (edit("start", 7), nameless):
            assert History("a").asks(refused, DONE, WORK) == REASON
            assert History("a").asks(WORK, refused, DONE) is None

    def test_one_piece_of_work_completes_one_of_several_equal_items(self) -> None:
        history = History("a", "a").turn(WORK)
        assert history.asks(edit("complete", 0, 1)) == REASON
        assert history.asks(DONE, edit("complete", 1)) == REASON
        assert history.asks(DONE) is None

    def test_a_second_tick_of_an_abandoned_item_is_refused_as_well(self) -> None:
        history = History("a").turn(edit("start", 0)).turn(WORK).turn(edit("abandon", 0))
        assert history.asks(DONE) == REASON
        assert history.asks(DONE, edit("complete", 0)) == REASON

    def test_the_tick_of_a_completed_item_is_none(self) -> None:
        """A person had completed it; the model then starts it again."""
        history = History().say("now", [*items("a", status="completed"), *items("b")]).turn(WORK)
        assert history.asks(edit("complete", 0, 1), edit("start", 0), DONE) == REASON

    def test_a_repeated_tick_uses_no_work(self) -> None:
        assert History("a").turn(WORK).asks(DONE, edit("complete", 0)) is None

    @pytest.mark.parametrize(
        "calls",
        [
            [edit("complete", 0, 1), WORK, edit("complete", 0, 1)],
            [edit("complete", 0), edit("complete", 1), WORK, edit("complete", 0, 1)],
            [edit("complete", 1), WORK, edit("complete", 1, 0)],
            [edit("complete", 0, 1), WORK, edit("complete", 0), edit("complete", 1)],
        ],
    )
    def test_a_refused_tick_of_the_message_makes_no_item_done(self, calls: list[ToolCall]) -> None:
        """Nobody knows yet that it will be refused."""
        history = History("a", "b")
        assert REASON in (history.asks(*calls), history.asks(*calls, about="b"))

    def test_an_insertion_between_two_ticks_is_no_way_round(self) -> None:
        insertion = call("write_todos", mode="insert", index=0, todos=["x"])
        first, second = edit("complete", 1), edit("complete", 1)
        assert History("a", "b").turn(WORK).asks(first, insertion, second) == REASON
        first, second = edit("complete", 0), edit("complete", 1)
        assert History("a", "b").turn(WORK).asks(first, insertion, second) is None

    def test_the_item_knows_the_call_in_every_thread(self) -> None:
        """A check may hand it to a thread that has no context."""
        history = History("a").turn(edit("start", 0))
        with ThreadPoolExecutor() as pool:
            check = lambda item, state: pool.submit(has_worked, item, state).result()  # noqa: E731
            assert history.asks(WORK, DONE, check=check) is None
            assert History("a").turn(WORK).asks(edit("start", 0), DONE, check=check) == REASON

    def test_the_state_may_be_reduced(self) -> None:
        check = lambda item, state: has_worked(item, {"messages": state["messages"]})  # noqa: E731
        assert History("a", "b").asks(edit("complete", 0, 1), check=check) == REASON

    def test_of_a_copy_of_the_item_only_the_history_counts(self) -> None:
        state = {"messages": [HumanMessage("Begin."), turn("", WORK, DONE)], "todos": items("a")}
        assert has_worked(items("a")[0], state) == REASON

    def test_a_start_beside_it_asks_for_work_after_the_start(self) -> None:
        assert History("a").turn(WORK).asks(edit("start", 0), DONE) == REASON
        assert History("a").asks(WORK, edit("start", 0), DONE) == REASON

    def test_a_new_list_beside_it_asks_for_work_after_the_list(self) -> None:
        assert History("a").turn(WORK).asks(write("a"), edit("start", 0), DONE) == REASON
        assert History("a").asks(write("a"), edit("start", 0), WORK, DONE) is None

    def test_the_tick_of_another_item_uses_the_work(self) -> None:
        """Items that were never started are ticked one for each piece of work."""
        both = edit("complete", 0), edit("complete", 1)
        assert History("b", "a").turn(WORK).asks(*both) == REASON

    def test_a_call_that_the_tools_refuse_changes_nothing(self) -> None:
        refused = call("write_todos", mode="replace"), edit("start", 7)
        assert History("a").turn(WORK).asks(*refused, DONE) is None
        assert History("a").turn(WORK).asks(call("list_todos"), DONE) is None

    @pytest.mark.parametrize("work", [None, WORK])
    def test_a_call_that_a_person_rejected_hides_no_other(self, work: ToolCall | None) -> None:
        """Its result is in the state before the other calls run; it is no work itself."""
        history = History("a").turn(WORK)
        rejected = call("shell", command="rm")
        calls = [edit("start", 0), *([work] if work else []), rejected, DONE]
        fields: Any = {"tool_call_id": rejected["id"], "name": "shell", "status": "error"}
        messages = [*history.messages, turn("", *calls), ToolMessage("Rejected.", **fields)]
        reason = asks({"messages": messages, "todos": history.todos}, "a")
        assert reason == (None if work else REASON)

    def test_a_tick_that_a_wrapper_made_is_checked_by_the_history(self) -> None:
        """The state may end in another message than the model's answer."""
        history = History("a").turn(edit("start", 0)).turn(WORK)
        item: TodoItem = {"text": "a", "status": "in_progress"}
        messages = [*history.messages, AIMessage("Hm."), HumanMessage("Hm?")]
        assert has_worked(item, {"messages": messages, "todos": history.todos}) is None


CALLS = st.one_of(
    st.just(WORK),
    st.just(call("list_todos")),
    st.builds(edit, st.sampled_from(["start", "complete", "abandon"]), st.integers(0, 2)),
    st.builds(write, TEXTS, mode=st.just("append")),
    st.builds(lambda text: call("write_todos", mode="insert", index=0, todos=[text]), TEXTS),
)
RUNS = st.lists(
    st.tuples(
        st.none()
        | st.tuples(st.booleans(), st.lists(st.sampled_from(STATUSES), min_size=1, max_size=2)),
        st.lists(st.lists(CALLS, min_size=1, max_size=2), max_size=3),
    ),
    min_size=1,
    max_size=4,
)


@given(RUNS, st.integers(0, 2))
def test_an_agent_that_is_a_node_takes_no_work_that_another_agent_would_not(
    runs: list[tuple[tuple[bool, list[Any]] | None, list[list[ToolCall]]]], index: int
) -> None:
    """It has only the block of the last run. It may ask for work again, though.

    It cannot know of a list that no result showed before it was emptied or written again.
    """
    history, forgetful = History(), History()
    for number, (gift, turns) in enumerate(runs):
        for each in (history, forgetful):
            each.messages.append(HumanMessage("Go on.", id=str(number)))
            if gift is not None:
                adds, statuses = gift
                new = [TodoItem(text=f"{number}.{at}", status=s) for at, s in enumerate(statuses)]
                each.todos = [*each.todos, *new] if adds else new
                each.blocks[str(number)] = each.todos
            for calls in turns:
                each.turn(*calls)
        if number < len(runs) - 1:
            forgetful.blocks.clear()
    tick = edit("complete", index)
    about = history.todos[index]["text"] if index < len(history.todos) else ""
    assert history.asks(tick, about=about) is None or forgetful.asks(tick, about=about)


@pytest.mark.parametrize("tags", [{}, {"lc_source": "cron"}])
def test_the_middleware_knows_a_new_list_after_a_run_that_ended_with_a_result(
    config: RunnableConfig, tags: dict[str, str]
) -> None:
    """A structured response is such a result, too."""

    @tool(return_direct=True)
    def look() -> str:
        """Look around."""
        return "Nothing."

    model = ScriptedChatModel(script=[turn("", call("look")), turn("", DONE), "I stop.", "I stop."])
    middleware = [TodoMiddleware(check=has_worked)]
    agent: Any = create_agent(model, [look], middleware=middleware, checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "Look.")]}, config)
    message = HumanMessage("Do this now.", additional_kwargs=tags)
    result = agent.invoke({"messages": [message], "todos": items("a")}, config)
    assert result["todos"] == items("a")


@pytest.mark.parametrize("view", [model_view, None])
def test_the_middleware_knows_a_new_list_also_without_a_view(
    view: Any, config: RunnableConfig
) -> None:
    """The model then reads the list from `list_todos`, after the message that brought it."""
    tick = turn("", edit("complete", 0))
    listing = turn("", call("list_todos"))
    script = turn("", call("list_todos"), call("shell")), "Hm.", listing, tick, "Done."
    middleware = TodoMiddleware(policy=None, view=view, check=has_worked)
    model = ScriptedChatModel(script=script)
    agent: Any = create_agent(model, [shell], middleware=[middleware], checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "Build.")]}, config)
    final = agent.invoke({"messages": [("user", "Paint.")], "todos": items("a")}, config)
    assert final["todos"] == items("a")


@pytest.mark.parametrize("shown_by", [call("list_todos"), edit("start", 1)])
def test_an_agent_that_is_a_node_knows_a_new_list_in_later_runs(
    shown_by: ToolCall, config: RunnableConfig
) -> None:
    """Its private channels are empty in each run."""
    script = (
        turn("", edit("start", 0)),
        turn("", call("shell")),
        "Built.",
        turn("", shown_by),
        "Hm.",
    )
    model = ScriptedChatModel(script=[*script, turn("", DONE), "Done."])
    middleware = TodoMiddleware(policy=None, check=has_worked)
    builder = StateGraph(TodoState)
    builder.add_node("agent", create_agent(model, [shell], middleware=[middleware]))
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({"messages": [("user", "Build.")], "todos": items("b")}, config)
    graph.invoke({"messages": [("user", "Paint.")], "todos": items("a", "c")}, config)
    final = graph.invoke({"messages": [("user", "Go on.")]}, config)
    assert [todo["text"] for todo in final["todos"] if todo["status"] == "completed"] == []


class Shorten(AgentMiddleware[Any, Any, Any]):
    """Send only the newest messages, and keep the history."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        kept = request.messages[-3:]
        while isinstance(kept[0], ToolMessage):
            kept = kept[1:]
        return handler(request.override(messages=kept))


class Inject(AgentMiddleware[Any, Any, Any]):
    """Send another message behind the newest one, and store nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        messages = [*request.messages, HumanMessage("It is noon.")]
        return handler(request.override(messages=messages))


@pytest.mark.parametrize("other", [Shorten(), Inject()])
@pytest.mark.parametrize("store", [True, False])
def test_middleware_that_changes_the_request_hides_no_new_list(
    other: Any, store: bool, config: RunnableConfig
) -> None:
    """The list came with a message that is in the history, although no prompt may have it now."""
    tick, listing = turn("", edit("complete", 0)), turn("", call("list_todos"))
    script = turn("", call("shell")), tick, turn("", call("shell")), "Built.", listing
    model = ScriptedChatModel(script=[*script, tick, tick, tick, "Done.", "Done."])
    todos = TodoMiddleware(policy=AutoContinue(store=store), check=has_worked)
    agent: Any = create_agent(
        model, [shell], middleware=[other, todos], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [("user", "Build.")], "todos": items("b")}, config)
    final = agent.invoke({"messages": [("user", "Paint.")], "todos": items("a")}, config)
    assert final["todos"] == items("a")


def test_a_tick_after_one_that_a_person_answered_uses_the_work() -> None:
    """A result with their words looks like a success."""
    history = History("a", "b").turn(WORK)
    first, then, again = DONE, write("c", mode="append"), edit("complete", 0)
    history.turn(first, then, again)
    history.messages[-3] = ToolMessage("Wait.", name="edit_todos", tool_call_id=first["id"] or "")
    assert history.asks(edit("complete", 1), about="b") == REASON


def test_a_tick_after_a_refused_tick_of_its_message_uses_the_work() -> None:
    """The call between them shows the item as completed already."""
    refused = iter(["Not yet."])

    def check(item: TodoItem, state: Any) -> str | None:
        return has_worked(item, state) or next(refused, None)

    twice = turn("", edit("complete", 0), write("c", mode="append"), edit("complete", 0))
    plan, other = turn("", write("a", "b")), turn("", edit("complete", 1))
    model = ScriptedChatModel(script=[plan, turn("", WORK), twice, other, "Over."])
    middleware = [TodoMiddleware(check=check, policy=None)]
    agent: Any = create_agent(model, [shell], middleware=middleware)
    todos = agent.invoke({"messages": [("user", "Begin.")]})["todos"]
    assert [todo["status"] for todo in todos] == ["completed", "not_started", "not_started"]
