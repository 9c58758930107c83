"""The results: one JSON file for each run."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from evals.figures import TODO_TOOLS, Figures


@dataclass(frozen=True, order=True)
class Job:
    """One run to do: a task, an arm, and the number of its repetition."""

    family: str
    n: int
    seed: int
    repeat: int
    arm: str

    @property
    def name(self) -> str:
        """The name of its file, without the ending."""
        return f"{self.family}-{self.n}-{self.seed}-{self.arm}-{self.repeat}"

    @property
    def pair(self) -> tuple[str, int, int, int]:
        """What runs of different arms have in common to be compared."""
        return self.family, self.n, self.seed, self.repeat


class Said(TypedDict):
    """One message of a transcript."""

    role: str
    text: str
    calls: list[dict[str, Any]]


class Result(TypedDict):
    """What the file of a run has."""

    job: dict[str, Any]
    model: str
    temperature: float | None
    date: str
    versions: dict[str, str]
    words: NotRequired[str]
    """Which words of this package the model read, if `versions` does not say it."""
    caps: dict[str, int]
    figures: Figures
    usage: dict[str, int]
    cost: float | None
    """US dollars; `None` if the price is unknown."""
    seconds: float
    outcome: str
    stops: list[int]
    steps: list[dict[str, Any]]
    todos: list[dict[str, Any]]
    history: list[Said]
    prompt: list[Said]
    """The last prompt and its answer, in each conversation."""


def job_of(result: Result) -> Job:
    """Return the job of a result."""
    return Job(**result["job"])


def todo_turns(result: Result) -> int:
    """Count the answers with calls that all keep the list."""
    turns = [{call["name"] for call in message["calls"]} for message in result["history"]]
    return sum(bool(turn) and turn.issubset(TODO_TOOLS) for turn in turns)


def said(messages: Iterable[BaseMessage]) -> list[Said]:
    """Return messages in a short form for a file."""
    return [
        {"role": _role(message), "text": str(message.text), "calls": _calls(message)}
        for message in messages
    ]


def _role(message: BaseMessage) -> str:
    if isinstance(message, ToolMessage):
        return f"{message.name} ({message.status})"
    source = message.additional_kwargs.get("lc_source")
    return f"{message.type} ({source})" if source else message.type


def _calls(message: BaseMessage) -> list[dict[str, Any]]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [{"name": call["name"], "args": call["args"]} for call in calls]


def path_of(folder: Path, job: Job) -> Path:
    """Return the file of a job."""
    return folder / f"{job.name}.json"


def save(folder: Path, job: Job, result: Result) -> None:
    """Write a result whole or not at all, so that a run that was cut off leaves no half file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = path_of(folder, job)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")
    part.replace(path)


def load(path: Path) -> Result:
    """Read a result."""
    return cast("Result", json.loads(path.read_text(encoding="utf-8")))


def load_all(folder: Path) -> Iterator[Result]:
    """Read the results of a folder and the folders in it, in the order of their names."""
    return map(load, sorted(folder.rglob("*.json")))
