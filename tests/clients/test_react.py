"""The React page of `graphs/react`, in Chromium against the served graphs."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.clients.pages import PICTURES
from tests.server import Server

pytestmark = pytest.mark.slow

STEPS = ["Measure", "Decide", "Saw", "Report"]
CHECKLIST = "\n".join(f"- [ ] {step}" for step in STEPS)


class ReactPage:
    """The page in a window of the browser."""

    def __init__(self, page: Page, origin: str, server: Server) -> None:
        self.page = page
        self.origin = origin
        self.server = server

    def open(self, graph: str) -> None:
        self.page.goto(f"{self.origin}/?server={self.server.url}&graph={graph}")

    def send(self, text: str) -> None:
        self.page.get_by_placeholder("message...").fill(text)
        self.page.get_by_role("button", name="Send").click()

    def shows(self, status: str, *lines: str) -> None:
        """Wait until the page shows these items, and this status line."""
        expect(self.page.get_by_role("listitem")).to_have_text(lines)
        expect(self.page.get_by_role("status")).to_have_text(status)


def reply_in(request: Request) -> object:
    """The answer to a question in a request, if it has one."""
    body: Any = request.post_data_json if request.method == "POST" else None
    return body and (body.get("command") or {}).get("resume")


@pytest.fixture
def react(browser: Browser, origins: dict[str, str], server: Server) -> Iterator[ReactPage]:
    context = browser.new_context(viewport={"width": 640, "height": 480})
    context.set_default_timeout(20_000)
    yield ReactPage(context.new_page(), origins["react"], server)
    context.close()


AGENTS = pytest.mark.parametrize("graph", ["until_done", "agent_unstored", "deepagents_unstored"])


@AGENTS
def test_it_shows_the_list_and_the_outcome(react: ReactPage, graph: str) -> None:
    """After a reload too."""
    react.open(graph)
    react.send(CHECKLIST)
    final = ["4 of 4 finished, finished", *(f"✓ {step}" for step in STEPS)]
    react.shows(*final)
    react.page.reload()
    react.shows(*final)


@pytest.mark.parametrize("graph", ["agent_asking", "deepagents_asking"])
class TestQuestion:
    """The loop asks whether to continue, while the list is half done."""

    @pytest.fixture
    def asked(self, react: ReactPage, graph: str) -> ReactPage:
        react.open(graph)
        react.send(CHECKLIST)
        half = ["✓ Measure", "● Decide", "– Saw", "– Report"]  # noqa: RUF001  the icon
        react.shows("1 of 4 finished, waiting", *half)
        expect(react.page.get_by_role("alert")).to_contain_text("Items remain. Continue?")
        return react

    def test_a_yes_continues(self, asked: ReactPage) -> None:
        """The page asks again after the next item."""
        asked.page.get_by_role("button", name="Yes").click()
        half = ["✓ Measure", "✓ Decide", "● Saw", "– Report"]  # noqa: RUF001  the icon
        asked.shows("2 of 4 finished, waiting", *half)
        PICTURES.mkdir(parents=True, exist_ok=True)
        asked.page.screenshot(path=PICTURES / "react.png")

    @pytest.mark.parametrize("gap", [0, 150])
    def test_a_second_click_does_not_answer_the_next_question(
        self, asked: ReactPage, gap: int
    ) -> None:
        """The page may still show the first question, until the server begins to answer."""
        replies: list[object] = []
        asked.page.on("request", lambda sent: replies.append(reply_in(sent)))
        box = asked.page.get_by_role("button", name="Yes").bounding_box()
        assert box
        place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        asked.page.mouse.click(*place)
        asked.page.wait_for_timeout(gap)
        asked.page.mouse.click(*place)
        half = ["✓ Measure", "✓ Decide", "● Saw", "– Report"]  # noqa: RUF001  the icon
        asked.shows("2 of 4 finished, waiting", *half)
        asked.page.wait_for_timeout(3_000)  # a second run would have ended by then
        asked.shows("2 of 4 finished, waiting", *half)
        assert all(isinstance(reply, dict) for reply in replies if reply is not None)

    def test_a_no_ends_the_run(self, asked: ReactPage) -> None:
        """The page says why it ended."""
        asked.page.get_by_role("button", name="No").click()
        expect(asked.page.get_by_role("status")).to_have_text("1 of 4 finished, declined")

    def test_after_a_reload_too(self, asked: ReactPage) -> None:
        """The question was read from the thread, which is then read again."""
        asked.page.reload()
        asked.page.get_by_role("button", name="No").click()
        expect(asked.page.get_by_role("status")).to_have_text("1 of 4 finished, declined")
        expect(asked.page.get_by_role("alert")).to_have_count(0)


def test_an_answer_in_blocks_is_shown_as_text(react: ReactPage) -> None:
    react.open("agent_in_blocks")
    react.send("Go.")
    expect(react.page.get_by_text("It is done.", exact=True)).to_be_visible()


def test_a_message_that_cannot_be_sent_returns_to_the_input(react: ReactPage) -> None:
    react.open("agent")
    react.page.route("**/threads", lambda route: route.abort())
    for _ in range(2):  # it returns once
        react.send("Go.")
        expect(react.page.get_by_placeholder("message...")).to_have_value("Go.")


@pytest.mark.parametrize("opens", ["reload", "another window"])
def test_a_page_that_is_opened_while_the_agent_works_follows_it(
    react: ReactPage, opens: str
) -> None:
    """The question at the end of the run is shown, too."""
    react.open("agent_asking")
    react.send(CHECKLIST)
    expect(react.page).to_have_url(re.compile("thread="))
    if opens == "reload":
        react.page.reload()
    else:
        address = react.page.url
        react.page.context.new_page().goto(address)
        react.page = react.page.context.pages[-1]
    expect(react.page.get_by_role("status")).to_have_text("1 of 4 finished, waiting")
    expect(react.page.get_by_role("alert")).to_contain_text("Items remain. Continue?")


def test_it_shows_the_list_while_the_agent_works(react: ReactPage) -> None:
    """Each step is seen before the next one is finished."""
    react.open("agent_unstored")
    react.send(CHECKLIST)
    for number in range(4):
        expect(react.page.get_by_role("status")).to_have_text(f"{number} of 4 finished, working")
