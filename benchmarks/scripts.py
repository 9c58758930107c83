"""The answers of the scripted model, turn by turn, for each list."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from langchain_core.messages import AIMessage
from langchain_core.messages.tool import ToolCall

from benchmarks.work import Case, Step, Style, steps, text
from todo_tools.testing import call, turn

TodoCalls = Callable[[Step], list[ToolCall]]
"""A function from a step to the todo calls that make its changes."""

SYSTEM_PROMPT = "You are a careful engineer."
REQUEST = "Do all of the steps, one after the other."
ANSWER = "All steps are done: the modules are changed, their tests pass, the findings are written."


def no_calls(_: Step) -> list[ToolCall]:
    """There is no list."""
    return []


def langchain_calls(step: Step) -> list[ToolCall]:
    """One call rewrites the whole list, however many items change."""
    if not step.changes:
        return []
    items = enumerate(step.statuses)
    todos = [{"content": text(item), "status": status} for item, status in items]
    return [call("write_todos", todos=todos)]


def pack_calls(step: Step) -> list[ToolCall]:
    """The list is written once, then changed by index."""
    calls = list[ToolCall]()
    if step.plans:
        todos = [{"text": text(item)} for item in range(len(step.statuses))]
        calls.append(call("write_todos", mode="replace", todos=todos))
    if step.completes is not None:
        calls.append(call("edit_todos", action="complete", indices=[step.completes]))
    if step.starts is not None:
        calls.append(call("edit_todos", action="start", indices=[step.starts]))
    return calls


def light_calls(step: Step) -> list[ToolCall]:
    """Items are completed and never started: the light prompt does not ask for it."""
    return pack_calls(replace(step, starts=None))


def script(
    case: Case, style: Style, todo_calls: TodoCalls, *, folds: bool = False
) -> list[AIMessage]:
    """The answers of a run; without todo calls, turns that only change the list are left out.

    Args:
        case: The work.
        style: The turns of the todo calls.
        todo_calls: The list.
        folds: Whether finished items leave the prompt. Then the model says beside a tick what later
            items need, and fetches results again.
    """
    numbers = count()
    answers = list[AIMessage]()
    for step in steps(case if folds else replace(case, again=0), style):
        said = _said(step, case.said) if folds else ""
        calls = [*todo_calls(step), *_work(step, case, numbers)]
        answers += [turn(said, *calls)] if calls else []
    return [*answers, turn(ANSWER)]


def _work(step: Step, case: Case, numbers: Iterator[int]) -> list[ToolCall]:
    if step.fetches is not None:
        return [call("work", item=step.fetches, call=step.fetches * case.calls)]
    return [] if step.works is None else [call("work", item=step.works, call=next(numbers))]


def _said(step: Step, tokens: int) -> str:
    """What the model says beside a tick; four characters are a token."""
    if step.completes is None:
        return ""
    sentence = f"Item {step.completes}: the module reads its input once, and its tests pass. "
    return (sentence * tokens)[: 4 * tokens]


QUESTIONS = [
    f"Question {number}: how does this part of the library work, and where do I find its tests?"
    for number in range(1, 21)
]
"""Twenty user messages that ask for no work."""

ANSWERS = [
    turn(
        f"Answer {number}: the module reads its input once and checks it before anything is "
        "changed. Each of its functions has a test in the file of the same name, which says in "
        "one sentence what it is for. Begin with the shortest of them."
    )
    for number in range(1, 21)
]
