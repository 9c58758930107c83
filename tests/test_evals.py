"""The evaluation, proved with scripted models whose work is known."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall

from evals.__main__ import main
from evals.adapter import with_call_in_text
from evals.arms import ARMS
from evals.families import FAMILIES, make_task
from evals.figures import Figures
from evals.harbor import langgraph_agent
from evals.models import Price
from evals.report import report
from evals.results import Job, Result, job_of, load, load_all, path_of, todo_turns
from evals.runner import MAX_FAILURES, Setting, jobs_of, run_all, run_one
from evals.show import shown
from evals.tasks import Step, Task
from evals.world import World
from tests.support import ROOT
from todo_tools import TODO_LIGHT_PROMPT
from todo_tools.testing import ScriptedChatModel, call, turn

HARBOR = Path(langgraph_agent.__file__).parent
USAGE = UsageMetadata(
    input_tokens=100, output_tokens=10, total_tokens=110, input_token_details={"cache_read": 60}
)


def do_step(text: str, world: World) -> ToolCall:
    """Do a step by its text alone, with rules instead of a model; return the call that did it."""
    files, records = re.findall(r"\w+\.txt", text), re.findall(r"the record (\w+)", text)
    read = world.read_file(files[0]) if len(files) > 1 else ""
    rules: dict[str, Callable[[], str]] = {
        "copy the text of": lambda: read,
        "in capital letters": read.upper,
        "only its first word": lambda: read.split()[0],
        'look up "': lambda: world.look_up(text.split('"')[1]),
        "look up its word": lambda: world.look_up(read),
        "has the word open": lambda: "yes" if "open" in read else "no",
        "to the city of": lambda: world.records[records[1]]["city"],
        "set the city": lambda: text.rsplit(maxsplit=1)[-1],
        "if the state": lambda: "high" if "state: open" in world.look_up(records[0]) else "low",
        "all reports that it names": lambda: highest(world, read or next_index(text, world)),
    }
    value = next(rule() for words, rule in rules.items() if words in text.lower())
    made = call("edit_record" if records else "write_file")
    field = "level" if "level" in text else "city"
    made["args"] |= (
        {"name": records[0], "field": field, "value": value}
        if records
        else {"path": files[-1], "text": value}
    )
    getattr(world, made["name"])(**made["args"])
    return made


def next_index(text: str, world: World) -> str:
    """Return the index that the reports of an earlier step of `digest` name."""
    (step,) = re.findall(r"the reports of step (\d+)", text)
    report = re.sub(r"_.\.txt.*", "_c.txt", world.read_file(f"answer_{step}.txt"))
    (index,) = re.findall(r"The next index is (.*)\.", world.read_file(report))
    return world.read_file(index)


def highest(world: World, index: str) -> str:
    """Return the report of an index with the highest price, and the price."""
    found = {
        name: int(re.findall(r"The price was (\d+)", world.read_file(name))[0])
        for name in re.findall(r"\w+\.txt", index)
    }
    best = max(found, key=found.__getitem__)
    return f"{best} {found[best]}"


def work_of(task: Task, steps: Sequence[Step] | None = None) -> list[AIMessage]:
    """Return a turn for each step, by default for all that can be done."""
    world = task.world.copy()
    return [turn("", do_step(step.text, world)) for step in (steps or task.work)]


def plan_of(steps: Sequence[Step]) -> AIMessage:
    return turn("", call("write_todos", mode="replace", todos=[step.text for step in steps]))


def tick(*indices: int) -> AIMessage:
    return turn("", call("edit_todos", action="complete", indices=list(indices)))


def model_of(script: Sequence[AIMessage | str]) -> Callable[[], BaseChatModel]:
    """A model that follows a script, reports its usage, and says "I stop." after the script."""

    def create() -> BaseChatModel:
        answers = iter(script)

        def answer(_: list[BaseMessage]) -> AIMessage:
            given = next(answers, "I stop.")
            message = AIMessage(given) if isinstance(given, str) else given
            return message.model_copy(update={"usage_metadata": USAGE})

        return ScriptedChatModel(script=answer)

    return create


def setting(tmp_path: Path, script: Sequence[AIMessage | str] = (), **settings: Any) -> Setting:
    told = list[str]()
    given: dict[str, Any] = {"model": model_of(script), "tell": told.append, **settings}
    return Setting(folder=tmp_path / "runs", model_name="scripted:one", **given)


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """Run a script on a task in an arm."""

    def run_script(task: Task, arm: str, *script: AIMessage | str, **settings: Any) -> Result:
        job = Job(task.family, task.n, task.seed, 1, arm)
        return run_one(job, setting(tmp_path, script, **settings))

    return run_script


def some(figures: Figures, *names: str) -> list[Any]:
    values: dict[str, Any] = {**figures}
    return [values[name] for name in names]


COPY = make_task("copy", 5, 1)


class TestTasks:
    @pytest.mark.parametrize("family", FAMILIES)
    @pytest.mark.parametrize("n", [1, 5, 12, 40])
    def test_the_texts_of_the_steps_say_what_is_checked(self, family: str, n: int) -> None:
        """Nothing is done at the beginning, and everything after the work of the texts."""
        for seed in range(5):
            task = make_task(family, n, seed)
            world = task.world.copy()
            assert len(task.steps) == n
            assert task.done(world) == []
            for number, step in enumerate(task.work, 1):
                do_step(step.text, world)
                assert len(task.done(world)) == number


class TestProofs:
    """The figures of models whose work is known."""

    @pytest.mark.parametrize("arm", [name for name in ARMS if name != "control"])
    def test_one_that_works_scores_everything(self, arm: str, run: Callable[..., Result]) -> None:
        figures = run(COPY, arm, *work_of(COPY), "All is done.")["figures"]
        assert some(figures, "asked", "done", "all_done") == [5, 5, True]

    @pytest.mark.parametrize("arm", ["pack", "seeded", "no-loop"])
    def test_one_that_ticks_without_working_scores_nothing(
        self, arm: str, run: Callable[..., Result]
    ) -> None:
        figures = run(COPY, arm, plan_of(COPY.steps), tick(0, 1, 2, 3, 4), "All done!")["figures"]
        assert some(figures, "done", "ticked", "false_ticks", "blind_ticks") == [0, 5, 5, 5]

    def test_a_tick_after_wrong_work_is_false_but_not_blind(
        self, run: Callable[..., Result]
    ) -> None:
        wrong = turn("", call("write_file", path=COPY.steps[0].name, text="wrong"))
        figures = run(COPY, "pack", plan_of(COPY.steps), wrong, tick(0))["figures"]
        assert some(figures, "false_ticks", "blind_ticks") == [1, 0]

    def test_one_that_loses_items_is_caught(self, run: Callable[..., Result]) -> None:
        """It replaces the list by a shorter one, and finishes that."""
        kept = COPY.steps[:2]
        script = [plan_of(COPY.steps), plan_of(kept), *work_of(COPY, kept), tick(0, 1)]
        figures = run(COPY, "pack", *script)["figures"]
        assert some(figures, "done", "false_ticks", "lost", "items") == [2, 0, 3, 2]

    def test_the_loop_gains_what_is_done_after_the_first_stop(
        self, run: Callable[..., Result]
    ) -> None:
        work = work_of(COPY)
        script = [plan_of(COPY.steps), *work[:2], "Half is done.", *work[2:], tick(0, 1, 2, 3, 4)]
        result = run(COPY, "pack", *script)
        assert some(result["figures"], "done", "gained") == [5, 3]
        assert (result["stops"], result["outcome"]) == ([2, 5], "finished")

    def test_a_turn_of_todo_calls_alone_is_counted(self, run: Callable[..., Result]) -> None:
        """A turn that works beside them is not."""
        work = work_of(COPY)[0]
        beside = turn("", *work.tool_calls, *tick(0).tool_calls)
        result = run(COPY, "pack", plan_of(COPY.steps), beside, tick(1), "Enough.")
        assert (result["figures"]["todo_calls"], todo_turns(result)) == (3, 2)

    def test_an_answer_that_names_what_is_left(self, run: Callable[..., Result]) -> None:
        work = work_of(COPY)[:3]
        rest = ", ".join(step.name for step in COPY.steps[3:])
        listed = "\n".join(f"- {step.name}" for step in COPY.steps[3:])
        for said in (f"Not done: {rest}.", f"I could not do these:\n\n{listed}"):
            assert run(COPY, "none", *work, said)["figures"]["names_rest"] is True
        for said in ("All is done.", f"I have written {rest}.", f"I did these:\n{listed}"):
            assert run(COPY, "none", *work, said)["figures"]["names_rest"] is False


class TestArms:
    """What some arms leave out of the prompt."""

    def test_the_light_prompt_folded(self, run: Callable[..., Result]) -> None:
        task = make_task("digest", 2, 1)
        read = turn("", *(call("read_file", path=name) for name in task.world.files))
        end = turn("", *work_of(task)[0].tool_calls, *tick(0).tool_calls)
        prompt = run(task, "light-folded", plan_of(task.steps), read, end, "One.")["prompt"]
        assert TODO_LIGHT_PROMPT in prompt[0]["text"]
        assert not any("The price was" in each["text"] for each in prompt)

    def test_old_results_cleared(self, run: Callable[..., Result]) -> None:
        """The result of a call is cleared when the prompt has become long."""
        task = make_task("digest", 12, 1)
        reads = [turn("", call("read_file", path=name)) for name in task.world.files]
        results = [
            each for each in run(task, "cleared", *reads)["prompt"] if "read" in each["role"]
        ]
        assert {results[0]["text"], results[-4]["text"]} == {"[cleared]"}
        assert results[-1]["text"] in task.world.files.values()


class TestItemRunner:
    def turns(self) -> list[AIMessage | str]:
        """A turn that works and a report, for each item."""
        return [said for work in work_of(COPY) for said in (work, "It is written.")]

    def test_all_conversations_are_metered(self, run: Callable[..., Result]) -> None:
        """The file has what the model read in each, and the list is ticked."""
        result = run(COPY, "runner", *self.turns())
        assert (result["usage"]["calls"], result["usage"]["sent"]) == (10, 1_000)
        assert some(result["figures"], "done", "ticked", "todo_calls") == [5, 5, 0]
        assert [each["role"] for each in result["prompt"]].count("system") == 5

    @pytest.mark.parametrize(("arm", "has_request"), [("runner", True), ("runner-alone", False)])
    def test_what_an_item_is_told(
        self, arm: str, has_request: bool, run: Callable[..., Result]
    ) -> None:
        read = run(COPY, arm, *self.turns())["prompt"]
        told = [each["text"] for each in read if each["role"].startswith("human")]
        assert [COPY.request in text for text in told] == [has_request] * 5
        assert all(step.text in text for step, text in zip(COPY.steps, told, strict=True))

    def test_the_reports_are_the_answer(self, run: Callable[..., Result]) -> None:
        """So a step that is not done is reported if the report of its item says so."""
        task = make_task("impossible", 1, 1)
        assert run(task, "runner", "There is no such file.")["figures"]["special"] == "handled"


class TestSpecialSteps:
    ASK, IMPOSSIBLE = make_task("ask", 5, 1), make_task("impossible", 5, 1)

    def figures(self, run: Callable[..., Result], task: Task, *end: AIMessage | str) -> list[Any]:
        figures = run(task, "none", *work_of(task), *end)["figures"]
        return some(figures, "asked", "done", "special", "all_done")

    def test_one_that_asks_counts_as_asking(self, run: Callable[..., Result]) -> None:
        answer = "The rest is done. Which is your favourite colour?"
        assert self.figures(run, self.ASK, answer) == [4, 4, "handled", True]

    def test_one_that_makes_an_answer_up_is_caught(self, run: Callable[..., Result]) -> None:
        """Also if it asks afterwards."""
        invents = turn("", call("write_file", path="favourite.txt", text="blue"))
        answer = "Is blue your favourite colour?"
        assert self.figures(run, self.ASK, invents, answer) == [4, 4, "made up", False]

    def test_one_that_reports_the_impossible_step(self, run: Callable[..., Result]) -> None:
        special = self.IMPOSSIBLE.special
        assert special
        missing = special.name.replace("_copy", "")
        answer = f"There is no {missing}, the rest is done."
        assert self.figures(run, self.IMPOSSIBLE, answer) == [4, 4, "handled", True]


class TestLimits:
    def test_a_run_ends_at_its_cap_of_calls(self, run: Callable[..., Result]) -> None:
        """What was done until then counts."""
        result = run(COPY, "none", *work_of(COPY), max_calls=3)
        assert (result["outcome"], result["usage"]["calls"]) == ("cap of calls", 3)
        assert result["figures"]["done"] == 3

    def test_the_usage_is_what_the_provider_says(self, run: Callable[..., Result]) -> None:
        result = run(COPY, "none", *work_of(COPY)[:1], "Done.", price=Price(1, 0.1, 5))
        assert result["usage"] == {
            "calls": 2,
            "sent": 200,
            "cached": 120,
            "received": 20,
            "largest": 100,
        }
        assert result["cost"] == pytest.approx((80 + 120 * 0.1 + 20 * 5) / 1e6)


class TestControl:
    def test_it_gets_the_calls_of_the_pack(self, tmp_path: Path) -> None:
        """It is told to continue at each stop, and does the task last."""
        jobs = jobs_of(["copy"], [5], [1], ["control", "pack"], 1)
        work = work_of(COPY)
        script = (plan_of(COPY.steps), work[0], "One.", work[1], "Two.", work[2], "Three.")
        asked = setting(tmp_path, script)
        assert run_all(jobs, asked) == 0
        pack, control = (load(path_of(asked.folder, job)) for job in reversed(jobs))
        assert control["usage"]["calls"] == pack["usage"]["calls"] == 8
        told = [each["text"] for each in control["history"] if each["role"] == "human"]
        assert told[1:] == ["Continue."] * 3


class TestRunner:
    JOBS = jobs_of(["copy"], [2], [1, 2], ["none", "pack"], 1)

    def test_a_run_that_has_a_file_is_not_done_again(self, tmp_path: Path) -> None:
        asked = setting(tmp_path)
        run_all(self.JOBS[:1], asked)
        before = path_of(asked.folder, self.JOBS[0]).stat().st_mtime_ns
        assert run_all(self.JOBS, asked) == 0
        assert path_of(asked.folder, self.JOBS[0]).stat().st_mtime_ns == before
        assert len(list(load_all(asked.folder))) == 4

    def test_after_some_failures_no_run_begins(self, tmp_path: Path) -> None:
        tried = list[int]()

        def fail() -> BaseChatModel:
            tried.append(1)
            raise ConnectionError("no server")

        run_all(jobs_of(["copy"], [2], range(20), ["none"], 1), setting(tmp_path, model=fail))
        assert len(tried) == MAX_FAILURES

    def test_the_last_seeds_come_last(self) -> None:
        """So a budget that stops the program leaves whole seeds of all families."""
        jobs = jobs_of(["copy", "chain"], [2], [1, 2], ["none", "pack"], 1)
        assert [(job.seed, job.family) for job in jobs[::2]] == [
            (1, "copy"),
            (1, "chain"),
            (2, "copy"),
            (2, "chain"),
        ]

    def test_no_run_begins_after_the_budget(self, tmp_path: Path) -> None:
        """What earlier calls of the program spent counts too."""
        asked = setting(tmp_path, price=Price(1e6, 1e6, 1e6), budget=150)
        assert run_all(self.JOBS, asked) == 2
        assert run_all(self.JOBS, asked) == 2


class TestReport:
    """`TestPublished` has every other part of a report."""

    @pytest.fixture
    def results(self, tmp_path: Path) -> list[Result]:
        """Two arms on one task, twice: one does two steps of two, the other none."""
        task = make_task("copy", 2, 1)
        ticks = [plan_of(task.steps), tick(0, 1)]
        run_all(jobs_of(["copy"], [2], [1], ["none"], 2), setting(tmp_path, work_of(task)))
        run_all(jobs_of(["copy"], [2], [1], ["pack"], 2), setting(tmp_path, ticks))
        return list(load_all(tmp_path / "runs"))

    def test_the_figures_of_an_arm(self, results: list[Result]) -> None:
        text = report(results)
        assert "| no list | 2 | 4 of 4 | 100 % [100, 100] | 2 of 2 |" in text
        assert "| this package | 2 | 0 of 4 | 0 % [0, 0] | 0 of 2 | 4 of 4 | 4 |" in text


class TestProgram:
    def test_it_runs_and_prints_the_tables(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """It goes on where it stopped, and shows and reports what there is."""
        monkeypatch.setattr("evals.__main__.chat_model", lambda *_, **__: model_of([])())
        chosen = ["--families", "copy", "--n", "2", "--seeds", "1", "--arms", "none,seeded"]
        given = [*chosen, "--model", "any:model", "--folder", str(tmp_path)]
        assert main(given) == 0
        assert main(["run", *given]) == 0
        assert "2 runs, 2 of them done already" in capsys.readouterr().out
        assert main(["show", "copy-2-1-none-1", "--folder", str(tmp_path)]) == 0
        assert "copy, 2 steps, seed 1, arm none" in capsys.readouterr().out
        assert main(["report", str(tmp_path)]) == 0
        assert "| seeded list | 1 |" in capsys.readouterr().out


class TestShow:
    def test_it_shows_what_the_model_read(self, run: Callable[..., Result]) -> None:
        """The list that the view adds is in the prompt and not in the history."""
        result = run(COPY, "seeded", *work_of(COPY)[:1], "Enough.")
        text = shown(result)
        assert "✓ " in text
        assert "[Automatic note: the todo list]" in text
        assert '→ write_file({"path":' in text
        assert "[Automatic note: the todo list]" not in shown(result, history=True)


class TestCallsInTexts:
    CALL = '{"name": "read_file", "arguments": {"path": "a.txt"}}'

    def calls(self, text: str) -> list[tuple[str, dict[str, Any]]]:
        answer = with_call_in_text(AIMessage(text), {"read_file"})
        return [(made["name"], made["args"]) for made in answer.tool_calls]

    @pytest.mark.parametrize(
        "text",
        [
            CALL,
            f"I read it.\n```json\n{CALL}\n```",
            f"<tool_call>\n{CALL}\n</tool_call>",
            f"Like {{this}}: {CALL}",
            f'{CALL}\n{{"name": "read_file", "arguments": {{"path": "b.txt"}}}}',
        ],
    )
    def test_the_first_call_is_read(self, text: str) -> None:
        assert self.calls(text) == [("read_file", {"path": "a.txt"})]

    @pytest.mark.parametrize(
        "text",
        [
            "Hello.",
            '{"name": "other", "arguments": {}}',
            '{"name": "read_file"}',
            '{"name": "read_file", "arguments": "a.txt"}',
            '{"name": {}, "arguments": {}}',
            f"[{CALL}"[:-5],
        ],
    )
    def test_other_texts_stay(self, text: str) -> None:
        answer = AIMessage(text)
        assert with_call_in_text(answer, {"read_file"}) is answer

    def test_the_agent_runs_them(self, run: Callable[..., Result]) -> None:
        (made,) = work_of(COPY)[0].tool_calls
        text = json.dumps({"name": made["name"], "arguments": made["args"]})
        assert run(COPY, "none", text)["figures"]["done"] == 1


@pytest.mark.slow
class TestHarbor:
    @pytest.mark.parametrize("arm", ["none", "langchain", "pack", "folded"])
    def test_each_arm_is_a_graph_that_works_in_the_directory(
        self, arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Harbor builds it by the name in `langgraph.json`, with a model and a directory."""
        names = json.loads((HARBOR / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
        assert names[arm] == f"./langgraph_agent.py:{arm}"
        model = ScriptedChatModel(script=[turn("", call("execute", command="touch done")), "Done."])
        monkeypatch.setattr(langgraph_agent, "init_chat_model", {"openai:x": model}.__getitem__)
        config = {"configurable": {"model": "openai:x", "cwd": str(tmp_path)}}
        graph = getattr(langgraph_agent, arm)(config)
        graph.invoke({"messages": [("user", "Create a file.")]}, {"recursion_limit": 50})
        assert (tmp_path / "done").exists()
        tools = {each["function"]["name"] for each in model.tools}
        assert (
            tools & {"write_todos", "edit_todos"}
            == {
                "none": set(),
                "langchain": {"write_todos"},
                "pack": {"write_todos", "edit_todos"},
                "folded": {"write_todos", "edit_todos"},
            }[arm]
        )


class TestPublished:
    """The results in the repository, and what the documents say of them."""

    RUNS = HARBOR.parent / "runs"

    def test_the_page_is_what_the_report_prints(self, capsys: pytest.CaptureFixture[str]) -> None:
        """What limits the runs is above the tables of each folder."""
        assert main(["report"]) == 0
        published = (HARBOR.parent / "RESULTS.md").read_text(encoding="utf-8")
        assert capsys.readouterr().out == published

    TODAY = "qwen2.5-coder-1.5b-2026-11"

    def test_the_page_about_models_gives_the_same_figures(self) -> None:
        """The steps done, false ticks and calls of each arm of the weak model."""
        text = report(load_all(self.RUNS / self.TODAY))
        models = (ROOT / "docs/models-and-cost.md").read_text(encoding="utf-8")
        rows = set[str]()
        for part in text.split("# openai:local, ")[1:]:
            temperature = part.partition("\n")[0].removeprefix("temperature ")
            by_arm, costs = part.split("## Steps done")[0].split("## Calls")
            for arm, n, done, _, _, false in re.findall(
                r"^\| ([^|]+) \| (\d+) \| (\d+ of \d+) \| ([^|]+) \| ([^|]+) \|([^|]*)\|",
                by_arm,
                re.M,
            ):
                (calls,) = re.findall(rf"^\| {re.escape(arm)} \| \d+ \| ([\d.]+) \|", costs, re.M)
                rows.add(f"| {temperature} | {arm} | {n} | {done} |{false}| {calls} |")
        assert len(rows) == 8
        assert rows <= set(models.splitlines())

    def test_the_readme_gives_the_greedy_runs(self) -> None:
        """On the same tasks in all arms."""
        results = load_all(self.RUNS / self.TODAY)
        runs = [(job_of(each), each["figures"]) for each in results if each["temperature"] == 0]
        readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
        pairs, shares = list[set[object]](), list[str]()
        for arm in ("none", "pack", "langchain"):
            some = [figures for job, figures in runs if job.arm == arm]
            done, asked = (sum(each[key] for each in some) for key in ("done", "asked"))
            pairs.append({job.pair for job, _ in runs if job.arm == arm})
            shares.append(f"{100 * done / asked:.0f} % ")
        assert all(each == pairs[0] for each in pairs)
        without, own, langchain = shares
        assert (
            f"Of {asked} steps, a weak model did {without}without a list, {own}with this list, "
            f"{langchain}with LangChain's" in f"{readme} "
        )
