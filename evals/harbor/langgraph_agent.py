"""Deep agents with and without a list, for Harbor's `langgraph` agent.

Harbor runs public tasks, such as Terminal-Bench, in sandboxes. It loads a graph that
`langgraph.json` names, with the model in `configurable["model"]` and the working directory in
`configurable["cwd"]`. `evals/README.md` says how to start it.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, cast

import deepagents
from deepagents.backends import LocalShellBackend
from langchain.agents.middleware import AgentMiddleware, TodoListMiddleware
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel

from todo_tools import TodoMiddleware

WORKDIR = "/app"
"""The working directory of Terminal-Bench tasks."""

_Config = Mapping[str, Any] | None


def none(config: _Config = None) -> Any:
    """Build an agent without a list, as deepagents builds it by default."""
    return _build(config)


def langchain(config: _Config = None) -> Any:
    """Build an agent with LangChain's list."""
    return _build(config, TodoListMiddleware())


def pack(config: _Config = None) -> Any:
    """Build an agent with this package."""
    return _build(config, TodoMiddleware())


def folded(config: _Config = None) -> Any:
    """Build an agent with this package; the work of finished items leaves the prompt."""
    return _build(config, TodoMiddleware(fold_finished=True))


def _build(config: _Config, *middleware: AgentMiddleware[Any, Any, Any]) -> Any:
    """Build an agent; all arms have the same model, tools and base prompt."""
    chosen: Mapping[str, Any] = (config or {}).get("configurable") or {}
    model = chosen.get("model") or os.environ.get("HARBOR_MODEL")
    if not model:
        raise ValueError("no model: set configurable['model'] or HARBOR_MODEL to provider:name")
    # The commands of the model do not get the keys of this process.
    backend = LocalShellBackend(root_dir=chosen.get("cwd") or WORKDIR, inherit_env=False)
    # Their types are too large for type checkers, or unknown in part.
    create_model = cast("Callable[..., BaseChatModel]", init_chat_model)
    create_agent = cast("Callable[..., Any]", deepagents.create_deep_agent)  # pyright: ignore[reportUnknownMemberType]
    return create_agent(
        create_model(model, **(chosen.get("model_kwargs") or {})),
        backend=backend,
        middleware=middleware,
    )
