"""Recognise whether the newest answer in a history is the model's own, from this run.

Another middleware may end the run, for example a limit on model calls. The loop must not restart
such a run, so it continues only if the answer that was noted is still the newest one, or if exactly
one answer was added since the model call. Neither is enough alone: other middleware may replace the
answer, or delete older ones.
"""

from langchain_core.messages import AIMessage

from todo_tools.state import LoopState, loop_in, messages_in

NO_ANSWER: LoopState = {"answer": ""}
"""What to record at the start of a run and after each decision of the loop: the newest answer is
then an old one until the model gives another."""


def noted_answer(state: object, answer: AIMessage | None) -> LoopState:
    """Return what to record about an answer of the model.

    Args:
        state: The state before the answer.
        answer: The answer, if there is one.

    Returns:
        Nothing if the answer has no id: it did not come from a chat model, but from middleware, for
        example after failed retries.
    """
    if answer is None or answer.id is None:
        return {}
    return {"answers": _answers_in(state), "answer": answer.id}


def is_own_answer(state: object) -> bool:
    """Whether the newest answer is the one that was noted."""
    loop, messages = loop_in(state), reversed(messages_in(state))
    if loop.get("answer") == "":
        return False
    newest = next((message.id for message in messages if isinstance(message, AIMessage)), None)
    is_newest = newest is not None and newest == loop.get("answer")
    return is_newest or loop.get("answers") == _answers_in(state) - 1


def _answers_in(state: object) -> int:
    return sum(isinstance(message, AIMessage) for message in messages_in(state))
