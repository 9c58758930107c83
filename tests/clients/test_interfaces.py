"""What a person sees in agent-chat-ui and deep-agents-ui, tested in Chromium."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.clients.pages import ChatPage, Item, changes, told_items

pytestmark = pytest.mark.slow

AGENTS = pytest.mark.parametrize("agent", ["agent", "deepagents"])

STEPS = ["Measure", "Decide", "Report"]
CHECKLIST = "\n".join(f"- [ ] {step}" for step in STEPS)
TWO_STEPS = "- [ ] Measure\n- [ ] Decide"
WITH_COMMAND = "- [ ] Measure: `wc README.md`\n- [ ] Decide"


def graph_for(chat: ChatPage, agent: str) -> str:
    """The agent that does not store its continuations if the page would show them."""
    return agent if chat.hides_notes else f"{agent}_unstored"


def stored_items(values: dict[str, Any]) -> list[Item]:
    return [(todo["content"], todo["status"]) for todo in values.get("todos", [])]


def statuses(chat: ChatPage) -> list[str]:
    return [status for _, status in stored_items(chat.values)]


@AGENTS
def test_the_list_is_right_during_a_run_after_it_and_after_a_reload(
    chat: ChatPage, agent: str
) -> None:
    """The page shows exactly the lists that the tools reported, step by step."""
    chat.open(graph_for(chat, agent))
    chat.run(CHECKLIST)
    final = stored_items(chat.values)
    assert final == [(step, "completed") for step in STEPS]
    chat.wait_for_list(final)

    history: Any = chat.server.client.threads.get_history(chat.thread, limit=100)
    of_steps = changes(filter(None, (stored_items(each["values"]) for each in reversed(history))))
    results = [message for message in chat.values["messages"] if message["type"] == "tool"]
    told = [sorted(told_items(result["content"])) for result in results]
    seen = chat.lists_seen
    assert [items for items in seen if items not in told] == []
    assert [items for items in seen if items in of_steps] == of_steps

    chat.reload()
    chat.wait_for_list(final)


@AGENTS
def test_the_users_bubbles_hold_what_the_user_wrote(chat: ChatPage, agent: str) -> None:
    """A continuation never appears as the user's text, not even after a reload."""
    chat.open(graph_for(chat, agent))
    chat.run(CHECKLIST)
    assert chat.values["todo_loop"]["in_turn"] == 2
    assert chat.bubbles == [CHECKLIST]
    chat.reload()
    assert chat.bubbles == [CHECKLIST]


@AGENTS
def test_what_is_stored_for_the_model_is_shown_only_where_nothing_is_hidden(
    chat: ChatPage, agent: str
) -> None:
    """So deep-agents-ui needs `AutoContinue(store=False)`, and agent-chat-ui does not."""
    chat.open(agent)
    chat.run(CHECKLIST)
    assert chat.values["todo_loop"]["in_turn"] == 2
    assert len(chat.bubbles) == (1 if chat.hides_notes else 3)


@pytest.mark.parametrize("agent", ["agent", "deepagents", "coding"])
class TestCommand:
    """A command that waits for a person."""

    def test_it_is_approved_with_the_buttons_of_the_page(self, chat: ChatPage, agent: str) -> None:
        """The list is right while the command waits, also after a reload."""
        chat.open(graph_for(chat, agent))
        chat.run(WITH_COMMAND)
        waiting = stored_items(chat.values)
        assert [status for _, status in waiting] == ["in_progress", "pending"]
        chat.reload()
        expect(chat.question).to_contain_text("wc README.md")
        chat.wait_for_list(waiting)
        chat.picture("command")
        with chat.running():
            chat.approve()
        chat.wait_for_list(stored_items(chat.values))
        assert statuses(chat) == ["completed", "completed"]
        assert chat.bubbles == [WITH_COMMAND]

    def test_it_is_rejected_with_the_buttons_of_the_page(self, chat: ChatPage, agent: str) -> None:
        """The agent reads the reason and abandons the step."""
        chat.open(graph_for(chat, agent))
        chat.run(WITH_COMMAND)
        with chat.running():
            chat.reject("Not this file.")
        assert any("Not this file." in message["content"] for message in chat.values["messages"])
        assert chat.values["todos"][0]["abandoned"]
        chat.wait_for_list(stored_items(chat.values))
        assert chat.bubbles == [WITH_COMMAND]


@AGENTS
class TestQuestion:
    """The loop asks whether to continue; the question belongs to no tool call."""

    @pytest.fixture
    def asked(self, chat: ChatPage, agent: str) -> ChatPage:
        """A page whose agent has finished the first of two items and waits."""
        chat.open(f"{agent}_asking")
        chat.run(TWO_STEPS)
        assert statuses(chat) == ["completed", "in_progress"]
        assert chat.server.status_of(chat.thread) == "interrupted"
        return chat

    @pytest.fixture
    def shown(self, asked: ChatPage) -> ChatPage:
        """That page, if the interface has buttons for the question."""
        if not asked.asks_without_a_call:
            pytest.skip(f"{asked.name} shows only questions about calls of the last answer")
        expect(asked.question).to_be_visible()
        return asked

    def test_a_yes_continues(self, shown: ChatPage) -> None:
        """The question is there after a reload too."""
        shown.reload()
        assert "Items remain. Continue?" in shown.read_question()
        shown.picture("question")
        with shown.running():
            shown.approve()
        shown.wait_for_list(stored_items(shown.values))
        assert statuses(shown) == ["completed", "completed"]
        assert shown.bubbles == [TWO_STEPS]

    def test_a_no_ends_the_run(self, shown: ChatPage) -> None:
        """The page asks for a reason, which becomes the user's message to the next run."""
        with shown.running():
            shown.reject("That is enough.")
        assert shown.values["todo_outcome"] == "declined"
        assert statuses(shown) == ["completed", "in_progress"]
        assert shown.bubbles == [TWO_STEPS, "That is enough."]

    def test_a_message_continues(self, shown: ChatPage) -> None:
        """The text that a person writes into the question is the user's message."""
        with shown.running():
            shown.reply("Be quick.")
        assert statuses(shown) == ["completed", "completed"]
        assert shown.bubbles == [TWO_STEPS, "Be quick."]

    def test_a_message_in_the_chat_continues_too(self, asked: ChatPage) -> None:
        """The message starts a new run, in which the agent continues."""
        if not asked.asks_without_a_call:
            expect(asked.question).to_have_count(0)
        asked.run("Go on.")
        asked.wait_for_list(stored_items(asked.values))
        assert statuses(asked) == ["completed", "completed"]
        assert asked.bubbles == [TWO_STEPS, "Go on."]


def test_a_half_done_list_is_shown_with_all_statuses(chat: ChatPage) -> None:
    """An abandoned item is a completed one, and its text says so."""
    chat.open("half_done")
    chat.run("Go.")
    chat.wait_for_list(stored_items(chat.values))
    assert statuses(chat) == ["completed", "completed", "in_progress", "pending"]
    chat.picture("list")


def test_agent_chat_ui_shows_the_list_as_a_component(chat: ChatPage) -> None:
    """Live, with all statuses, in one place: below the newest answer."""
    if not chat.shows_components:
        pytest.skip(f"{chat.name} shows no components")
    todos = chat.page.get_by_role("region", name="Todos")
    chat.open("half_done_shown")
    with chat.running():
        chat.send("Go.")
        expect(todos).to_contain_text("0 of 4 finished")
    half = ["✓ Measure", "✗ Ask the owner (abandoned)", "● Saw", "– Report"]  # noqa: RUF001  the icons
    expect(todos.get_by_role("listitem")).to_have_text(half)
    chat.reload()
    expect(todos.get_by_role("listitem")).to_have_text(half)
    chat.page.get_by_label("Hide Tool Calls").click()
    chat.picture("component")
    chat.run("Go on.")
    done = ["✓ Measure", "✗ Ask the owner (abandoned)", "✓ Saw", "✓ Report"]
    expect(todos.get_by_role("listitem")).to_have_text(done)
    expect(todos).to_contain_text("4 of 4 finished")


def test_the_served_example_shows_its_list_while_it_works(chat: ChatPage) -> None:
    """`langgraph-ui.json` serves it."""
    if not chat.shows_components:
        pytest.skip(f"{chat.name} shows no components")
    chat.open("with_list")
    chat.run(CHECKLIST)
    expect(chat.page.get_by_role("region", name="Todos")).to_contain_text("3 of 3 finished")


@AGENTS
def test_a_reached_limit_is_seen(chat: ChatPage, agent: str) -> None:
    """The page says that the agent has stopped and what is left, also after a reload."""
    chat.open(f"{agent}_limited")
    chat.run("Go.")
    assert chat.values["todo_outcome"] == "stalled"
    notice = chat.page.get_by_text("2 todos remain")
    expect(notice).to_be_visible()
    assert chat.bubbles == ["Go."]
    chat.reload()
    expect(notice).to_be_visible()
    chat.picture("limit")
    assert chat.bubbles == ["Go."]


@AGENTS
def test_a_list_too_long_for_one_run_ends_with_a_notice(chat: ChatPage, agent: str) -> None:
    """The page sends the limit; the next message continues with the list."""
    if not chat.bounds_steps:
        pytest.skip(f"{chat.name} sends no recursion limit")
    checklist = "\n".join(f"- [ ] Step {number}" for number in range(20))
    chat.open(f"{agent}_unstored")
    chat.run(checklist)
    assert chat.values["todo_outcome"] == "out_of_steps"
    expect(chat.page.get_by_text("todos remain")).to_be_visible()
    chat.wait_for_list(stored_items(chat.values))
    chat.run("Go on.")
    assert statuses(chat) == ["completed"] * 20
    chat.wait_for_list(stored_items(chat.values))
    assert chat.bubbles == [checklist, "Go on."]


@pytest.mark.parametrize("graph", ["coding", "until_done"])
def test_the_graphs_of_this_repository_show_their_lists(chat: ChatPage, graph: str) -> None:
    """None of them shows a continuation."""
    chat.open(graph_for(chat, graph) if graph == "coding" else graph)
    chat.run(TWO_STEPS)
    chat.wait_for_list(stored_items(chat.values))
    assert statuses(chat) == ["completed", "completed"]
    assert chat.bubbles == [TWO_STEPS]
