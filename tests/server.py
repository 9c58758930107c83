"""Start LangGraph's development server for a test, and end it afterwards."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.waiting import wait_for
from todo_tools._list.formats import from_client_todos

ROOT = Path(__file__).parent.parent


class Server(NamedTuple):
    """A running server."""

    client: SyncLangGraphClient
    directory: Path
    url: str

    @property
    def blocking_calls(self) -> set[str]:
        """The names of the blocking calls that the server has reported."""
        log = (self.directory / "log").read_text(encoding="utf-8", errors="replace")
        return set(re.findall(r"Blocking call to ([\w.]+)", log))

    def new_thread(self) -> str:
        """Create a thread."""
        return str(self.client.threads.create()["thread_id"])

    def state_of(self, thread: str) -> Any:
        """The newest state of a thread, as the JSON that the server sends."""
        return self.client.threads.get_state(thread)

    def values_of(self, thread: str) -> Any:
        """The channels of a thread."""
        return self.state_of(thread)["values"]

    def status_of(self, thread: str) -> str:
        """Whether a thread is idle, busy, or waits for a person."""
        return str(self.client.threads.get(thread)["status"])


def user(text: str, **channels: object) -> Any:
    """The input of a run: the user's message, and values for other channels."""
    return {"messages": [{"role": "user", "content": text}], **channels}


def statuses(todos: list[dict[str, str]]) -> list[str]:
    """The statuses of a list in the format of LangChain's clients."""
    return [todo["status"] for todo in from_client_todos(todos)]


@contextmanager
def serving(
    directory: Path,
    *,
    config: str = "langgraph.json",
    token: str | None = None,
    **environment: str,
) -> Iterator[Server]:
    """Serve a copy of the checkout, because the server leaves files in its directory.

    Args:
        directory: Where the configuration is.
        config: The name of its file.
        token: What the client sends; by default the `TODO_TOKEN` of the environment.
        environment: Environment variables of the server.
    """
    for name in ("graphs", "tests", "todo_tools"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(ROOT / name, directory / name, ignore=ignored)
    with (directory / "log").open("wb") as log, reserved_port() as port:
        process = subprocess.Popen(
            [
                *(Path(sys.executable).with_name("langgraph"), "dev", "--no-browser"),
                *("--no-reload", "--host", "127.0.0.1", "--port", str(port)),
                *("--n-jobs-per-worker", "10", "--config", config),
            ],
            cwd=directory,
            env={**offline(), "PYTHONPATH": str(directory), **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            token = token or environment.get("TODO_TOKEN")
            wait_until_ready(url, token, process, directory / "log")
            with get_sync_client(url=url, api_key=token) as client:
                yield Server(client, directory, url)
        finally:
            with suppress(ProcessLookupError):  # the server may have failed to start
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def offline() -> dict[str, str]:
    """The environment without variables that would make the server or a graph use the network."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_", "TODO_"))
    }
    return {
        **kept,
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "PYTHONUNBUFFERED": "1",
    }


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port that the system gives to nobody else until the block ends.

    A server can still listen on it, because its socket has the same option.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


def wait_until_ready(
    url: str, token: str | None, process: subprocess.Popen[bytes], log: Path
) -> None:
    def is_ready() -> bool:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        headers = {"X-Api-Key": token} if token else {}
        with suppress(httpx.TransportError):
            return httpx.get(f"{url}/ok", headers=headers, trust_env=False).is_success
        return False

    wait_for(is_ready, f"the server; its log is {log}")
