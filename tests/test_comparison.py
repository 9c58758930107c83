"""The README's comparison with LangChain's `TodoListMiddleware`: a test for each row."""

import json
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware, TodoListMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from tests.support import BEGIN, results_in
from todo_tools import TodoMiddleware
from todo_tools.testing import ScriptedChatModel, call, turn


class Stock:
    """LangChain's own middleware."""

    ours = False

    def middleware(self) -> Any:
        return TodoListMiddleware()

    def items(self, *texts: str) -> list[dict[str, str]]:
        return [{"content": text, "status": "pending"} for text in texts]

    def plan(self, *texts: str) -> Any:
        return call("write_todos", todos=self.items(*texts))

    def finish(self, *texts: str) -> Any:
        todos = [{"content": text, "status": "completed"} for text in texts]
        return call("write_todos", todos=todos)


class Ours:
    """The middleware of this project."""

    ours = True

    def middleware(self) -> Any:
        return TodoMiddleware()

    def items(self, *texts: str) -> list[dict[str, str]]:
        return [{"text": text, "status": "not_started"} for text in texts]

    def plan(self, *texts: str) -> Any:
        return call("write_todos", mode="replace", todos=[{"text": text} for text in texts])

    def finish(self, *texts: str) -> Any:
        return call("edit_todos", action="complete", indices=list(range(len(texts))))


Kind = Stock | Ours
BOTH = pytest.mark.parametrize("kind", [Stock(), Ours()], ids=["stock", "ours"])


def agent(kind: Kind, *script: AIMessage | str, beside: Any = ()) -> tuple[Any, ScriptedChatModel]:
    model = ScriptedChatModel(script=[*script, *["Nothing more."] * 90])
    middleware = [kind.middleware(), *beside]
    return create_agent(model, middleware=middleware, checkpointer=InMemorySaver()), model


def errors(state: dict[str, Any]) -> list[str]:
    return [result.text for result in results_in(state) if result.status == "error"]


@BOTH
class TestCells:
    def test_a_change_of_one_item(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock middleware needs the whole list again; this package needs an index."""
        texts = [f"Step {n}" for n in range(9)]
        written = json.dumps(
            kind.finish(*texts[:1])["args"] if kind.ours else kind.plan(*texts)["args"]
        )
        graph, _ = agent(kind, turn("", kind.plan(*texts)), turn("", kind.finish(*texts[:1])))
        final = graph.invoke(BEGIN, config)
        assert len(final["todos"]) == (9 if kind.ours else 1)  # others are gone
        assert ("Step 8" in written) != kind.ours

    def test_two_calls_in_one_turn(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock middleware refuses both; this package applies them in order."""
        graph, _ = agent(kind, turn("", kind.plan("a"), kind.finish("a")), "Done.")
        final = graph.invoke(BEGIN, config)
        if kind.ours:
            assert final["todos"] == [{"text": "a", "status": "completed"}]
        else:
            assert not final.get("todos")
            assert len(errors(final)) == 2

    def test_an_agent_that_stops_with_open_items(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock agent stops; this package's agent is sent back to work."""
        graph, model = agent(kind, turn("", kind.plan("a")), "I stop.", turn("", kind.finish("a")))
        final = graph.invoke(BEGIN, config)
        assert final["todos"][0]["status"] == ("completed" if kind.ours else "pending")
        assert len(model.prompts) == (4 if kind.ours else 2)

    def test_a_list_seeded_by_the_caller(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock middleware ignores it silently; this package uses it."""
        graph, _ = agent(kind, "Hello.", turn("", kind.finish("a")))
        final = graph.invoke({**BEGIN, "todos": kind.items("a")}, config)
        assert bool(final.get("todos")) == kind.ours

    def test_an_edit_with_an_invalid_list(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock middleware stores it; this package refuses it with the reason."""
        graph, _ = agent(kind, "Hello.")
        graph.invoke(BEGIN, config)
        if kind.ours:
            with pytest.raises(ValueError, match="todos must be a list"):
                graph.update_state(config, {"todos": "milk"})
        else:
            graph.update_state(config, {"todos": "milk"})
            assert graph.get_state(config).values["todos"] == "milk"

    def test_a_list_sent_as_a_json_string(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock middleware echoes it in an error; this package accepts it."""
        written = call("write_todos", mode="replace", todos='[{"text": "a", "content": "a"}]')
        graph, _ = agent(kind, turn("", written), turn("", kind.finish("a")))
        final = graph.invoke(BEGIN, config)
        if kind.ours:
            assert final["todos"] == [{"text": "a", "status": "completed"}]
        else:
            assert '"content": "a"' in errors(final)[0]

    def test_the_list_after_summarization(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock agent's model no longer sees the list; with this package it does."""
        summary = SummarizationMiddleware(
            ScriptedChatModel(script=lambda _: "In short: much was said."),
            trigger=("messages", 4),
            keep=("messages", 1),
        )
        graph, model = agent(kind, turn("", kind.plan("Fetch the milk")), beside=[summary])
        graph.invoke(BEGIN, config)
        for word in ("Go on.", "And on."):
            graph.invoke({"messages": [("user", word)]}, config)
        prompt = model.prompts[-1]
        seen = any(
            "Fetch the milk" in f"{m.content} {getattr(m, 'tool_calls', '')}" for m in prompt
        )
        assert seen == kind.ours

    def test_an_item_that_is_no_longer_needed(self, kind: Kind, config: RunnableConfig) -> None:
        """The stock middleware has no status for it; this package has `abandoned`."""
        if kind.ours:
            drop = call("edit_todos", action="abandon", indices=[0])
        else:
            drop = call("write_todos", todos=[{"content": "a", "status": "abandoned"}])
        graph, _ = agent(kind, turn("", kind.plan("a")), turn("", drop))
        final = graph.invoke(BEGIN, config)
        assert bool(errors(final)) == (not kind.ours)
        assert final["todos"][0]["status"] == ("abandoned" if kind.ours else "pending")
