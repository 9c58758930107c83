"""Hold one conversation: give an agent a task, and keep all that happened."""

from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError

from evals.arms import Arm
from evals.meter import CapReachedError, Caps, MeteredChatModel, Usage
from evals.tasks import Task
from evals.world import World, world_tools

CONTINUE = "Continue."
_BAD_REQUESTS = (400, 413, 422)
"""Status codes that mean the request itself, for example a prompt that is too long."""


@dataclass(frozen=True)
class Conversation:
    """What happened in one run."""

    world: World
    """The world at the end."""
    messages: list[AnyMessage]
    """The history."""
    prompt: list[BaseMessage]
    """The last prompt and its answer: the history as the model has read it."""
    todos: list[dict[str, Any]]
    """The list at the end, in the format of its arm."""
    usage: Usage
    stops: list[int] = field(default_factory=list[int])
    """The number of steps done at each answer without a tool call."""
    outcome: str = ""
    """Why the run ended: the outcome of the loop, `answered`, or what cut the run off."""


def hold(arm: Arm, task: Task, model: BaseChatModel, caps: Caps) -> Conversation:
    """Give an agent a task, and let it work to the end.

    Args:
        arm: The way to give the task.
        task: The task; its world is copied.
        model: The chat model.
        caps: The most that the run may use. The control uses all of these calls.

    Returns:
        What happened, also if a cap or the provider cut the run off.
    """
    world, stops = task.world.copy(), list[int]()
    metered = MeteredChatModel(
        model=model, caps=caps, on_stop=lambda: stops.append(len(task.done(world)))
    )
    agent = arm.build(metered, world_tools(world))
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}
    cut_off = _work(agent, arm, task, metered, config)
    values = agent.get_state(config).values
    outcome = cut_off or values.get("todo_outcome") or "answered"
    todos = [dict(todo) for todo in values.get("todos", [])]
    messages = values["messages"]
    return Conversation(world, messages, metered.last, todos, metered.usage, stops, outcome)


def _work(agent: Any, arm: Arm, task: Task, model: MeteredChatModel, config: RunnableConfig) -> str:
    """Run the agent; return what cut it off, or an empty string."""
    try:
        agent.invoke(arm.first_input(task), config)
        while arm.continues and model.usage.calls < model.caps.calls:
            agent.invoke({"messages": [{"role": "user", "content": CONTINUE}]}, config)
    except CapReachedError as reached:
        # The control ends when its calls are used; this is what it is for.
        return "" if arm.continues and str(reached) == "calls" else f"cap of {reached}"
    except GraphRecursionError:
        return "recursion limit"
    except Exception as error:
        if getattr(error, "status_code", None) not in _BAD_REQUESTS:
            raise  # the provider or the network failed, and not this run
        return f"refused: {str(error)[:200]}"
    return ""
