"""Prompts: each begins with the one before it, on random threads that also change their history."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from typing_extensions import override

from campaigns.agents import STATES
from campaigns.cases import Case, Trial
from tests import test_folding_prompts as folding
from tests import test_forks as forks
from tests.test_view import AGENTS, HAND_BUILT, Run, Watched, runs, with_trimming
from todo_tools.state import messages_in
from todo_tools.transcript import is_from_user

SHARE = 0.2
"""How many of the usual examples a case has; an example is a thread with several runs."""


class Change(NamedTuple):
    """A change of the history after some runs."""

    kind: str
    """A `summary` in the place of the older messages, another `text` of a message, or `nothing`."""
    at: int


changes = st.builds(Change, st.sampled_from(["summary", "text", "nothing"]), st.integers(0, 30))
threads = st.lists(st.tuples(runs, changes), min_size=1, max_size=3)


class Rewritten(Watched):
    """A thread whose history people and summarizers change; it knows the history of each prompt."""

    def __init__(self, build: Any) -> None:
        super().__init__(build)
        self.histories: dict[str, list[AnyMessage]] = {}

    @override
    def _answer(self, prompt: list[BaseMessage]) -> AIMessage:
        answer = super()._answer(prompt)
        self.histories[str(answer.id)] = list(messages_in(self.states[-1]))
        return answer

    def change(self, change: Change) -> None:
        """Change the history, as long as no call waits for its result."""
        snapshot = self.graph.get_state(self.config)
        messages = messages_in(snapshot.values)
        if snapshot.interrupts or not messages or change.kind == "nothing":
            return
        if change.kind == "text":
            message = messages[change.at % len(messages)]
            new: list[Any] = [message.model_copy(update={"content": "changed"})]
        else:
            spoken = [at for at, message in enumerate(messages) if is_from_user(message)]
            kept = messages[spoken[change.at % len(spoken)] :] if spoken else []
            said = HumanMessage("In short.", additional_kwargs={"lc_source": "summarization"})
            new = [RemoveMessage(id=REMOVE_ALL_MESSAGES), said, *kept]
        self.graph.update_state(self.config, {"messages": new})

    @override
    def check_prefixes(self) -> None:
        """Each prompt begins with that of the answer before it, if the history does so too."""
        for answer_id, (prompt, _) in self.calls.items():
            history = self.histories[answer_id]
            older = _prompted(history, self.histories)
            if older is None:
                continue
            before, earlier = self.histories[older], self.calls[older].prompt
            if history[: len(before)] == before:
                shown = prompt[: len(earlier)]
                assert shown == earlier, f"sent {_texts(earlier)}, later {_texts(shown)}"
                assert prompt[len(earlier)].id == older, f"{prompt[len(earlier)]} is new"


def _prompted(history: Sequence[AnyMessage], known: dict[str, Any]) -> str | None:
    """The id of the newest answer of a history whose prompt is known."""
    answers = (str(each.id) for each in reversed(history) if isinstance(each, AIMessage))
    return next((each for each in answers if each in known), None)


def _texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


def agent_prompts(case: Case) -> None:
    """Agents with the middleware, also one that trims its history."""
    builds = [*AGENTS.values(), with_trimming]
    given = st.tuples(st.sampled_from(builds), threads)
    case.examples(lambda drawn: play(*drawn), given, share=SHARE)


def hand_built_prompts(case: Case) -> None:
    """Hand-built graphs, in which nothing records an edit during a pause of a run."""
    builds = st.tuples(st.sampled_from(list(HAND_BUILT.values())), threads)
    case.examples(lambda drawn: play(*drawn, pauses=False, ends=True), builds, share=SHARE)


def play(
    build: Any, thread: list[tuple[list[Run], Change]], *, pauses: bool = True, ends: bool = False
) -> None:
    """A thread with several runs and changes of its history."""
    watched = Rewritten(build)
    for several, change in thread:
        for run in several:
            watched.run(run, pauses=pauses, ends=ends)
        watched.change(change)
    watched.check_prefixes()
    watched.check_reader()


def folded(case: Case) -> None:
    """With `fold_finished`, a prompt loses finished work at its end, and shows the same list."""
    every: Any = folding.TestEveryThread()
    properties = [
        every.test_it_shows_the_same_list,
        every.test_the_newest_turn_is_whole,
        every.test_a_prompt_differs_from_the_one_before_only_behind_what_was_finished_since,
    ]

    def check(given: tuple[Any, ...]) -> None:
        test, build, conversation = given
        test.hypothesis.inner_test(every, build, conversation)

    builds = st.sampled_from([folding.hand_built, folding.with_middleware])
    tests = st.tuples(st.sampled_from(properties), builds, folding.whole_conversations)
    case.examples(check, tests, share=SHARE)


def item_forks(case: Case) -> None:
    """A fork at the start of an item is as the thread was then."""
    test: Any = forks.test_a_fork_is_as_it_was_then
    builds = st.sampled_from([forks.hand_built, forks.with_middleware])
    states = st.sampled_from(list(STATES.values()))
    case.examples(
        lambda given: test.hypothesis.inner_test(*given),
        st.tuples(builds, states, st.booleans(), forks.seeds, forks.threads),
        share=SHARE / 2,
    )


TRIALS: dict[Trial, int] = {agent_prompts: 2, hand_built_prompts: 2, folded: 1, item_forks: 1}
