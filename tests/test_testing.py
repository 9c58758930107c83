"""The chat models for users' own tests."""

import time
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import example, given
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from tests.strategies import todo_lists
from tests.support import edit, items, plan, result_of
from todo_tools import (
    TodoItem,
    create_todo_tools,
    format_todos,
    model_view,
    todos_from_messages,
)
from todo_tools.checklist import command_in, read_checklist, read_todos, write_checklist
from todo_tools.middleware import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, checklist_model, turn


class TestScriptedChatModel:
    def test_it_answers_in_order(self) -> None:
        """A string in the script is an answer without calls."""
        model = ScriptedChatModel(script=[turn("", call("list_todos")), "Done."])
        assert model.invoke("a").tool_calls[0]["name"] == "list_todos"
        assert model.invoke("b").text == "Done."

    def test_it_records_its_prompts_and_tools(self) -> None:
        """Tests read them from `prompts` and `tools`."""
        model = ScriptedChatModel(script=["Hi."])
        model.bind_tools(create_todo_tools()).invoke([HumanMessage("Hello.")])
        assert model.prompts == [[HumanMessage("Hello.")]]
        assert model.tools[0]["function"]["name"] == "write_todos"

    def test_a_function_may_answer(self) -> None:
        """Such a model never runs out of answers."""
        model = ScriptedChatModel(script=lambda prompt: prompt[-1].text.upper())
        assert [model.invoke(text).text for text in ("a", "b")] == ["A", "B"]

    def test_an_exhausted_script_says_so(self) -> None:
        """The error quotes the message that it has no answer to."""
        model = ScriptedChatModel(script=["Hi."])
        model.invoke("a")
        with pytest.raises(ValueError, match=r"has 1 answer\(s\), .* last message: 'b'"):
            model.invoke("b")

    async def test_it_answers_asynchronously_and_in_streams(self) -> None:
        """Tool calls work in both ways."""
        model = ScriptedChatModel(script=[turn("", call("list_todos"))] * 2)
        assert (await model.ainvoke("a")).tool_calls
        assert [chunk.tool_calls[0]["name"] for chunk in model.stream("b")] == ["list_todos"]

    def test_the_script_is_not_changed(self) -> None:
        """The same answer can be used twice and gets a new id each time."""
        answer = AIMessage("Hi.")
        model = ScriptedChatModel(script=[answer, answer])
        assert model.invoke("a").id != model.invoke("b").id
        assert answer.id is None


class TestChecklists:
    def test_open_steps_are_read(self) -> None:
        """Every form of list is read; ticked steps and other lines are not."""
        markdown = (
            "# Plan\n- [ ] One\n* [x] Two\n  + [ ] Three  \n1. [ ] Four: `make`\n- Five\n- [ ]\n"
        )
        assert read_checklist(markdown) == ["One", "Three", "Four: `make`"]

    @pytest.mark.parametrize(
        ("markdown", "text"),
        [
            ("- [ ] Test it all:\n      `make test`", "Test it all: `make test`"),
            ("1. [ ] Test it\nall: `make\n  test`", "Test it all: `make test`"),
            ("- [ ] One <!-- or\n  two: `rm x` -->", "One"),
            ("- [ ] One `<!--`\n  two `-->`", "One `<!--` two `-->`"),
            ("- [ ] One\n  -5 degrees\n  #2 *or* 3", "One -5 degrees #2 *or* 3"),
        ],
    )
    def test_the_text_of_a_step_may_go_on_in_the_next_lines(self, markdown: str, text: str) -> None:
        """As in a file that is wrapped at 80 columns; a command may be in a later line."""
        assert read_checklist(f"{markdown}\n- [ ] Last") == [text, "Last"]
        assert read_checklist(f"{markdown}\n\n  A note.\n- [ ] Last") == [text, "Last"]

    @pytest.mark.parametrize(
        "block",
        [
            "  - Two",
            "2) Two",
            "-",
            "## Two",
            "  > Two",
            "---",
            "* * *",
            "===",
            "</details>",
            "```\nTwo\n```\nThree",
            "<!-- Two -->\nThree",
            "<!--\nTwo\n-->\nThree",
        ],
    )
    def test_the_text_of_a_step_ends_at_another_block(self, block: str) -> None:
        assert read_checklist(f"- [ ] One\n{block}\n- [ ] Last") == ["One", "Last"]

    @pytest.mark.parametrize(
        "markdown",
        [
            "- [ ]\n- [x] done",
            "- [ ] \n\nA paragraph.",
            "- [ ] <!-- what else?\nwrite it here -->",
            "<!--\n- [ ] old: `rm -rf x`\n-->",
            "<!-- - [ ] never closed",
            "- <!--\n  - [ ] old\n  -->",
            "- [x] done <!-- - [ ] old -->",
            "```sh\n- [ ] an example\n```",
            "~~~\n```\n- [ ] an example\n~~~",
            "- ```\n  - [ ] an example\n  ```",
            "```\n```python\n- [ ] an example",
        ],
    )
    def test_text_that_is_not_a_step_is_ignored(self, markdown: str) -> None:
        """Text in comments and code, and steps without text, must not run."""
        assert read_checklist(markdown) == []

    @pytest.mark.parametrize(
        "before",
        [
            "- [x] Put `<!--` before the block",
            "- [x] Replace <!-- by {{",
            "```html\n<!-- the head\n```",
            "1. ```bash\n   make\n   ```",
            "<!-- `a` --> <!-- a\nb -->",
        ],
    )
    def test_no_step_is_lost_behind_the_mark_of_a_comment(self, before: str) -> None:
        """In code, or within a line where it is not closed, the mark begins no comment."""
        assert read_checklist(f"{before}\n- [ ] One") == ["One"]

    @pytest.mark.parametrize("line", ["```sh echo hi``` first", "```` ``` ```` first"])
    def test_no_step_is_lost_behind_a_line_that_opens_no_block(self, line: str) -> None:
        """Three backticks that end in the same line are code in it."""
        assert read_checklist(f"{line}\n- [ ] One") == ["One"]

    def test_a_byte_order_mark_hides_no_step(self) -> None:
        """Some editors put it before the first line."""
        assert read_checklist("\ufeff- [ ] One") == ["One"]

    @pytest.mark.parametrize("mark", ["```", "````", "~~~"])
    def test_a_block_ends_only_at_its_mark(self, mark: str) -> None:
        """Not at code in a line, nor at other or shorter marks."""
        inside = "```sh echo```\n~~\n- [ ] an example"
        assert read_checklist(f"{mark}sh\n{inside}\n{mark}\n- [ ] One") == ["One"]

    def test_many_backticks_take_no_time(self) -> None:
        began = time.monotonic()
        assert read_checklist(f"{'`' * 50_000}{'a' * 50_000}`\n- [ ] One") == ["One"]
        assert time.monotonic() - began < 2

    def test_many_comments_that_are_not_closed_take_no_time(self) -> None:
        line = "- [ ] " + "<!--" * 20_000
        began = time.monotonic()
        assert read_checklist(line) == [line.removeprefix("- [ ] ")]
        assert time.monotonic() - began < 2

    def test_a_command_is_written_in_backticks(self) -> None:
        """The first one counts if there are several."""
        assert command_in("Build: `make all` then `make test`") == "make all"
        assert command_in("Print: ``echo `date` ``") == "echo `date`"
        assert command_in("Think") is None

    def test_checked_steps_are_completed_or_abandoned(self) -> None:
        """An abandoned step is struck out."""
        todos = [
            *items("One"),
            *items("Two", status="completed"),
            *items("Three", status="abandoned"),
        ]
        assert read_todos("- [ ] One\n1. [X] Two\n* [x] ~~Three~~") == todos
        assert read_todos("- [ ] One\n1. [X]\tTwo\n* [x] ~~Th\nree~~")[2]["text"] == "Th ree"
        assert write_checklist(todos) == "- [ ] One\n- [x] Two\n- [x] ~~Three~~\n"

    @given(todo_lists)
    @example(items("<!-- a", "<\\!-- b -->", "```", "~~c~~", "\\~~d~~"))
    @example(items("~~a~~", "\\~~b~~", "~~~~", "<!--", status="completed"))
    @example(items("~~a~~", "\\", "a~~ ~~b", "~", status="abandoned"))
    @example(items("a\nb\x85- [ ] c", status="in_progress"))
    def test_a_written_list_is_read_as_it_was(self, todos: list[TodoItem]) -> None:
        """Except for line breaks and for items in progress, which have no mark."""
        known = [
            TodoItem(
                text=" ".join(todo["text"].splitlines()).strip(),
                status="not_started" if todo["status"] == "in_progress" else todo["status"],
            )
            for todo in todos
        ]
        assert read_todos(write_checklist(todos)) == known
        opened = [todo["text"] for todo in known if todo["status"] == "not_started"]
        assert read_checklist(write_checklist(todos)) == opened


class TestChecklistModel:
    """The stand-in's next action depends only on the prompt."""

    def next_calls(self, *history: Any, todos: Any = ()) -> list[tuple[str, Any]]:
        prompt = model_view({"messages": list(history), "todos": list(todos)})
        answer = checklist_model().invoke(prompt)
        return [(made["name"], made["args"]) for made in answer.tool_calls]

    DONE: ClassVar[list[TodoItem]] = [*items("a", status="completed"), *items("b")]

    def results(self, *answers: AIMessage, todos: Sequence[TodoItem] = ()) -> list[ToolMessage]:
        """The results of todo calls, one for each answer of a model."""
        made = []
        for answer in answers:
            (each,) = answer.tool_calls
            made.append(result_of(each["name"], each["args"], todos))
            todos = todos_from_messages(made)
        return made

    def test_it_plans_the_users_checklist(self) -> None:
        """It starts the first item in the same message."""
        assert self.next_calls(HumanMessage("- [ ] One\n- [ ] Two")) == [
            ("write_todos", {"mode": "replace", "todos": [{"text": "One"}, {"text": "Two"}]}),
            ("edit_todos", {"action": "start", "indices": [0]}),
        ]

    @pytest.mark.parametrize("prompt", ["Hello.", []])
    def test_without_a_checklist_it_says_what_it_understands(self, prompt: Any) -> None:
        assert "found no open checklist steps" in checklist_model().invoke(prompt).text

    def test_it_rests_after_one_item_or_more(self) -> None:
        with pytest.raises(ValueError, match="rest_after must be 1 or more, got 0"):
            checklist_model(rest_after=0)

    def test_it_stops_where_its_plan_is_refused(self) -> None:
        """It would only make the same plan again."""
        refused = ToolMessage("Error: no", name="write_todos", tool_call_id="1", status="error")
        assert self.next_calls(HumanMessage("- [ ] One"), refused) == []

    def test_it_runs_the_command_of_the_item_in_progress(self) -> None:
        assert self.next_calls(
            HumanMessage("Begin."), todos=items("Build: `make`", status="in_progress")
        ) == [("shell", {"command": "make"})]

    def test_a_step_without_a_command_is_completed_at_once(self) -> None:
        """There is nothing to run; after the last item, no other is started."""
        todos = items("Think", status="in_progress")
        assert self.next_calls(HumanMessage("Begin."), todos=todos) == [
            ("edit_todos", {"action": "complete", "indices": [0]})
        ]

    def test_it_follows_the_short_results_of_the_view(self) -> None:
        """It reads the list once, and then only the changes of it."""
        results = self.results(plan("a", "b"), edit("start", 0), edit("complete", 0))
        history = [HumanMessage("Begin."), *results, HumanMessage("Go on.")]
        assert self.next_calls(*history, todos=self.DONE) == [
            ("edit_todos", {"action": "start", "indices": [1]})
        ]

    def test_it_does_the_same_checklist_again(self) -> None:
        """The result does not show the list, since the texts are known."""
        agent: Any = create_agent(
            checklist_model(), middleware=[TodoMiddleware()], checkpointer=InMemorySaver()
        )
        config: RunnableConfig = {"configurable": {"thread_id": "1"}}
        for _ in range(2):
            final = agent.invoke({"messages": [("user", "- [ ] a\n- [ ] b")]}, config)
            assert final["todos"] == items("a", "b", status="completed")
        assert sum(message.type == "ai" for message in final["messages"]) == 8

    def test_it_stops_early_after_some_finished_items(self) -> None:
        """So the loop has to send it back; it stops directly after the change of the list."""
        history = [HumanMessage("Begin."), *self.results(plan("a", "b"), edit("complete", 0))]
        results = [*history, *self.results(edit("start", 1), todos=self.DONE)]
        for rest_after, said in ((1, "1 of 2 steps are finished so far."), (2, "")):
            assert checklist_model(rest_after=rest_after).invoke(results).text == said

    def test_an_emptied_list_is_planned_again(self) -> None:
        """The application removed the items, so there is nothing to work on."""
        results = self.results(plan("a", "b"), edit("start", 0))
        asked = HumanMessage("- [ ] One")
        assert self.next_calls(*results, asked, todos=())[0][0] == "write_todos"

    @pytest.mark.parametrize(("code", "action"), [(0, "complete"), (3, "abandon")])
    def test_the_exit_code_completes_or_abandons_an_item(self, code: int, action: str) -> None:
        """The next item is started in the same message."""
        result = ToolMessage(f"…\nexit code {code}", name="shell", tool_call_id="1")
        todos = [*items("Build: `make`", status="in_progress"), *items("Ship")]
        assert self.next_calls(HumanMessage("Begin."), result, todos=todos) == [
            ("edit_todos", {"action": action, "indices": [0]}),
            ("edit_todos", {"action": "start", "indices": [1]}),
        ]

    def test_a_finished_list_is_reported(self) -> None:
        """The answer counts the completed items."""
        todos = [*items("a", status="completed"), *items("b", status="abandoned")]
        listed = ToolMessage(format_todos(todos), name="list_todos", tool_call_id="1")
        prompt = model_view({"messages": [HumanMessage("Begin."), listed], "todos": todos})
        assert checklist_model().invoke(prompt).text == "1 of 2 steps are completed."
