"""What a person sees in agent-chat-ui and deep-agents-ui, each driven in Chromium."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.clients.pages import ChatPage, Item, changes
from todo_tools._formatting import read_lines
from todo_tools.clients import to_client_todos

pytestmark = pytest.mark.slow

AGENTS = pytest.mark.parametrize("agent", ["agent", "deepagents"])

STEPS = ["Measure", "Decide", "Report"]
CHECKLIST = "\n".join(f"- [ ] {step}" for step in STEPS)
WITH_COMMAND = "- [ ] Measure: `wc README.md`\n- [ ] Decide"


def graph_for(chat: ChatPage, agent: str) -> str:
    """The agent that keeps its notes out of the history, where the page would show them."""
    return agent if chat.hides_notes else f"{agent}_unstored"


def stored_items(values: dict[str, Any]) -> list[Item]:
    return [(todo["content"], todo["status"]) for todo in values.get("todos", [])]


def told_items(message: dict[str, Any]) -> list[Item]:
    """The items in the result of a todo tool."""
    todos = [entry[1] for entry in read_lines(message["content"]) if entry]
    return [(item["content"], item["status"]) for item in to_client_todos(todos)]


def statuses(chat: ChatPage) -> list[str]:
    return [status for _, status in stored_items(chat.values)]


@AGENTS
def test_the_list_is_right_during_a_run_after_it_and_after_a_reload(
    chat: ChatPage, agent: str
) -> None:
    """Every list that the page shows is one that a tool told, and none of a step is left out."""
    chat.open(graph_for(chat, agent))
    chat.run(CHECKLIST)
    final = stored_items(chat.values)
    assert final == [(step, "completed") for step in STEPS]
    chat.wait_for_list(final)

    history: Any = chat.server.client.threads.get_history(chat.thread, limit=100)
    of_steps = changes(filter(None, (stored_items(each["values"]) for each in reversed(history))))
    results = [message for message in chat.values["messages"] if message["type"] == "tool"]
    told = [sorted(told_items(result)) for result in results]
    seen = chat.lists_seen
    assert [items for items in seen if items not in told] == []
    assert [items for items in seen if items in of_steps] == of_steps

    chat.reload()
    chat.wait_for_list(final)


@AGENTS
def test_the_users_bubbles_hold_what_the_user_wrote(chat: ChatPage, agent: str) -> None:
    """An agent that was sent back to work says nothing in the user's name, now or later."""
    chat.open(graph_for(chat, agent))
    chat.run(CHECKLIST)
    assert chat.values["todo_loop"]["in_turn"] == 2
    assert chat.bubbles == [CHECKLIST]
    chat.reload()
    assert chat.bubbles == [CHECKLIST]


@AGENTS
class TestCommand:
    """A command that waits for a person."""

    def test_it_is_approved_with_the_buttons_of_the_page(self, chat: ChatPage, agent: str) -> None:
        """The list is right while it waits, also after a reload."""
        chat.open(graph_for(chat, agent))
        chat.run(WITH_COMMAND)
        waiting = stored_items(chat.values)
        assert [status for _, status in waiting] == ["in_progress", "pending"]
        chat.reload()
        expect(chat.question).to_contain_text("wc README.md")
        chat.wait_for_list(waiting)
        with chat.running():
            chat.approve()
        chat.wait_for_list(stored_items(chat.values))
        assert statuses(chat) == ["completed", "completed"]
        assert chat.bubbles == [WITH_COMMAND]

    def test_it_is_rejected_with_the_buttons_of_the_page(self, chat: ChatPage, agent: str) -> None:
        """The agent gets the reason and abandons the step."""
        chat.open(graph_for(chat, agent))
        chat.run(WITH_COMMAND)
        with chat.running():
            chat.reject("Not this file.")
        assert any("Not this file." in message["content"] for message in chat.values["messages"])
        assert chat.values["todos"][0]["abandoned"]
        chat.wait_for_list(stored_items(chat.values))
        assert chat.bubbles == [WITH_COMMAND]


@AGENTS
def test_a_reached_limit_is_seen(chat: ChatPage, agent: str) -> None:
    """The page says that the agent has stopped and what is left, also after a reload."""
    chat.open(f"{agent}_limited")
    chat.run("Go.")
    assert chat.values["todo_loop"]["outcome"] == "stalled"
    notice = chat.page.get_by_text("2 todo(s) remain")
    expect(notice).to_be_visible()
    assert chat.bubbles == ["Go."]
    chat.reload()
    expect(notice).to_be_visible()
    assert chat.bubbles == ["Go."]
