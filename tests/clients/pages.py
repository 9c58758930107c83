"""What a person does and sees in each interface."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.clients.build import AGENT_CHAT_UI, CACHE, DEEP_AGENTS_UI
from tests.prompt_reader import read_lines
from tests.server import Server
from todo_tools import TodoItem
from todo_tools.clients import to_client_todos

PICTURES = Path(os.environ.get("PICTURES", CACHE / "pictures"))

_HEIGHT = 640
_ANIMATION = 700
"""Milliseconds after which every animation of the interfaces has ended; no test depends on it."""

# A click on a button may move a page sideways.
_TO_THE_END = """() => document.querySelectorAll("*").forEach((element) => {
  element.scrollLeft = 0;
  if (/auto|scroll/.test(getComputedStyle(element).overflowY)) {
    element.scrollTop = element.scrollHeight;
  }
})"""

Item = tuple[str, str]
"""The text and the status of an item, in the format of LangChain's clients."""

# Runs before the scripts of a page, and records what `READ` finds at each change of the page.
_RECORD = """
window.seen = [];
const read = READ;
const note = () => {
  const found = JSON.stringify(read());
  if (found !== "null" && found !== window.seen.at(-1)) window.seen.push(found);
};
new MutationObserver(note).observe(
  document, {subtree: true, childList: true, characterData: true});
"""


def changes(lists: Iterable[Sequence[Item]]) -> list[list[Item]]:
    """The lists in order, each sorted, without repetitions."""
    return [list(items) for items, _ in groupby(sorted(items) for items in lists)]


def told_items(text: str) -> list[Item]:
    """The items in the text of a todo tool's result."""
    todos = [TodoItem(text=item, status=status) for item, status in read_lines(text)]
    return [(item["content"], item["status"]) for item in to_client_todos(todos)]


class ChatPage(ABC):
    """An interface in a window of the browser."""

    name: str
    read: str
    """A JavaScript function: what the page shows of the list now, or null."""
    user_text: str
    """Where the page shows the user's texts."""
    stop: str
    """The button that the page shows during a run."""
    hides_notes: bool
    """Whether messages of the loop that are stored in the history are hidden."""
    question_height: int
    """The height of a window that shows a whole question."""
    bounds_steps: bool
    """Whether runs are sent with `recursion_limit: 100`."""
    asks_without_a_call: bool
    """Whether it shows a question that belongs to no tool call of the agent's last answer."""
    shows_components: bool
    """Whether it shows React components from the channel `ui`."""

    def __init__(self, page: Page, origin: str, server: Server) -> None:
        self.page = page
        self.origin = origin
        self.server = server
        page.add_init_script(_RECORD.replace("READ", self.read))

    @abstractmethod
    def open(self, graph: str) -> None:
        """Open a new thread of a graph."""

    @abstractmethod
    def parse(self, shown: Any) -> list[Item]:
        """The items in the result of `READ`."""

    @property
    @abstractmethod
    def question(self) -> Locator:
        """The element that asks the person."""

    def read_question(self) -> str:
        """Open the text of the question, and close it again."""
        said: str = self.question.inner_text()
        return said

    @abstractmethod
    def approve(self) -> None:
        """Answer the question with yes."""

    def reply(self, text: str) -> None:
        """Answer the question with the person's own text."""
        self.question.get_by_role("textbox").first.fill(text)
        self.question.get_by_role("button", name="Submit", exact=True).click()

    @abstractmethod
    def reject(self, reason: str) -> None:
        """Answer the question with no."""

    def send(self, text: str) -> None:
        """Write a message."""
        self.page.get_by_placeholder("message...").fill(text)
        self.page.get_by_role("button", name="Send", exact=True).click()

    def run(self, text: str) -> None:
        """Write a message, and wait until its run is over or waits for a person."""
        with self.running():
            self.send(text)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Wait until the run that the block starts is over or waits for a person."""
        stop = self.page.get_by_role("button", name=self.stop, exact=True)
        yield
        expect(stop).to_be_visible()
        expect(stop).to_have_count(0, timeout=60_000)

    def reload(self) -> None:
        """Reload the page, like a person who comes back."""
        self.page.reload()
        expect(self.page.locator(self.user_text).first).to_be_visible()

    def picture(self, name: str) -> None:
        """Save a picture of the end of the page."""
        size = self.page.viewport_size
        assert size
        height = self.question_height if self.question.count() else _HEIGHT
        self.page.set_viewport_size({"width": size["width"], "height": height})
        self.page.wait_for_timeout(_ANIMATION)
        self.page.evaluate(_TO_THE_END)
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{self.name}-{name}.png")
        self.page.set_viewport_size(size)

    @property
    def bubbles(self) -> list[str]:
        """The texts that the page shows as the user's."""
        texts: list[str] = self.page.locator(self.user_text).all_inner_texts()
        return texts

    @property
    def lists_seen(self) -> list[list[Item]]:
        """Each list that the page has shown since it was loaded, in order."""
        shown: list[str] = self.page.evaluate("window.seen")
        return changes(self.parse(json.loads(each)) for each in shown)

    def wait_for_list(self, items: list[Item]) -> None:
        """Wait until the page shows these items."""
        for _ in range(200):
            if self.lists_seen[-1:] == [sorted(items)]:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"not {items}, but {self.lists_seen}")

    @property
    def thread(self) -> str:
        """The thread that is shown."""
        shown: str = self.page.evaluate("new URLSearchParams(location.search).get('threadId')")
        return shown

    @property
    def values(self) -> Any:
        """The state of the thread on the server."""
        return self.server.values_of(self.thread)


class AgentChat(ChatPage):
    """agent-chat-ui has no place for the list; it shows the results of the tools."""

    name = AGENT_CHAT_UI.name

    # The page cuts a longer result until a click opens it. This script opens it and records the
    # newest whole result. The page draws the lines of a result as one line.
    read = """() => {
      const shown = [...document.querySelectorAll("h3")]
        .filter((title) => /^Tool Result: (write|edit|list)_todos$/.test(title.innerText.trim()))
        .map((title) => title.closest(".overflow-hidden"));
      const whole = shown.map((result) => {
        const text = result.querySelector("code.block").textContent;
        const more = result.querySelector("button");
        if (!more || !text.endsWith("...")) return text;
        if (!more.dataset.asked) { more.dataset.asked = 1; more.click(); }
        return null;
      });
      return whole.filter((text) => text !== null).at(-1) ?? null;
    }"""
    user_text = "p.bg-muted.ml-auto"
    stop = "Cancel"
    hides_notes = True
    asks_without_a_call = True
    shows_components = True
    bounds_steps = False
    question_height = 1100

    def open(self, graph: str) -> None:
        self.page.goto(f"{self.origin}/?apiUrl={self.server.url}&assistantId={graph}")

    def parse(self, shown: Any) -> list[Item]:
        return told_items(shown)

    @property
    def question(self) -> Locator:
        return self.page.locator("div.bg-gray-50.rounded-2xl.p-8")

    def read_question(self) -> str:
        self.question.get_by_role("button", name="Description", exact=True).click()
        said: str = self.question.inner_text()
        self.question.get_by_role("button").last.click()
        return said

    def approve(self) -> None:
        self.question.get_by_role("button", name="Approve", exact=True).click()

    def reject(self, reason: str) -> None:
        self.question.get_by_placeholder("Share feedback with the agent...").fill(reason)
        self.question.get_by_role("button", name="Submit rejection").click()


class DeepAgents(ChatPage):
    """deep-agents-ui shows the list above the input, sorted by status."""

    name = DEEP_AGENTS_UI.name

    # The list is shown after a click on its first line.
    read = """() => {
      const [tasks] = [...document.querySelectorAll("button[aria-expanded]")]
        .filter((button) => /task/i.test(button.innerText));
      if (!tasks) return null;
      if (tasks.ariaExpanded === "false") {
        if (!tasks.dataset.asked) { tasks.dataset.asked = 1; tasks.click(); }
        return null;
      }
      const groups = [...document.querySelectorAll("h3")]
        .filter((title) => /^(Pending|In Progress|Completed)$/i.test(title.innerText));
      return groups.map((title) => [title.innerText.toLowerCase().replace(" ", "_"),
        [...title.nextElementSibling.querySelectorAll("span")].map((span) => span.innerText)]);
    }"""
    user_text = ".flex-row-reverse p.whitespace-pre-wrap"
    stop = "Stop"
    hides_notes = False
    asks_without_a_call = False
    shows_components = False
    bounds_steps = True
    question_height = 760

    def open(self, graph: str) -> None:
        self.page.goto(self.origin)
        self.page.get_by_label("Deployment URL").fill(self.server.url)
        self.page.get_by_label("Assistant ID").fill(graph)
        self.page.get_by_role("button", name="Save").click()

    def parse(self, shown: Any) -> list[Item]:
        return [(text, status) for status, texts in shown for text in texts]

    @property
    def question(self) -> Locator:
        return self.page.locator("div.rounded-md", has_text="Approval Required").last

    def approve(self) -> None:
        self.question.get_by_role("button", name="Approve", exact=True).click()

    def reject(self, reason: str) -> None:
        self.question.get_by_role("button", name="Reject", exact=True).click()
        self.question.get_by_placeholder("Explain why").fill(reason)
        self.question.get_by_role("button", name="Confirm Reject").click()


PAGES: dict[str, type[ChatPage]] = {page.name: page for page in (AgentChat, DeepAgents)}
