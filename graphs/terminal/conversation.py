"""A conversation in a terminal: the agent's work above, the input line, the list below it.

prompt_toolkit keeps the input line and the list in place; everything is drawn by the views of
`todo_tools.rendering`.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from langgraph.types import Command, StateSnapshot
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console

from graphs.model import chat_model
from graphs.terminal.approval import (
    Approval,
    Approved,
    answer_about,
    answers_about,
    question_about,
    wants_all,
)
from graphs.terminal.commands import (
    HELP,
    Asked,
    CommandError,
    Fork,
    Model,
    Plain,
    Redo,
    Say,
    Shell,
    Show,
    Switch,
    as_typed,
    edited,
    read_line,
)
from graphs.terminal.ctrl_c import deaf_to_ctrl_c
from graphs.terminal.cut_off import cut_off_lines
from graphs.terminal.foot import Foot
from graphs.terminal.lines import error_lines, rows_below, said
from graphs.terminal.plan import NotEditedError
from graphs.terminal.question import Room, call_rows, is_cut
from graphs.terminal.run_lines import RunLines
from graphs.terminal.screen import ChatScreen
from graphs.terminal.session import Session
from graphs.terminal.thread import Request, Thread, current_branch, moments
from graphs.terminal.thread_views import (
    branches_view,
    diff_lines,
    history_view,
    last_exchange,
    whole_result,
)
from todo_tools.rendering import show_todos
from todo_tools.rendering.lowlevel import Line
from todo_tools.state import messages_in, todos_in

_STOPPED = "Stopped. Send a message, or /go to continue."
_NOT_CONTINUED = "Not continued. Enter sends what you type instead; /go continues."


class Conversation:
    """A conversation with the agent of a thread.

    Args:
        thread: The thread of the conversation.
        waiting: Messages typed while the agent works. If there are any, the graph's policy stops
            the loop, and they are sent next.
        console: Where to show everything.
        session: The settings of the thread; without them nobody can run commands, and calls are
            shown before the question about them, too.
        history: The file that keeps what is typed.
    """

    def __init__(
        self,
        thread: Thread,
        waiting: list[str],
        console: Console,
        session: Session | None = None,
        history: str = "",
    ) -> None:
        self.thread = thread
        self.session = session
        self.waiting = waiting
        self.console = console
        self.run = RunLines(asks=self._asks)
        self.work: asyncio.Task[None] | None = None
        self.approval = Approval()
        self.approved = Approved()
        self.asked = False  # whether a question is on the screen
        self.is_answer = False  # whether one was when the last line was sent
        self.leaving = False
        self.change: Model | Plain | None = None
        """Why the conversation ended, if it goes on with another model or in a new thread."""
        self.foot = Foot()
        self.screen = ChatScreen(
            console,
            foot=self._foot_lines,
            typed=self._typed,
            sent=self._sent,
            interrupt=self._interrupt,
            history=history,
        )

    @property
    def working(self) -> bool:
        """Whether the agent is working."""
        return self.work is not None and not self.work.done()

    async def talk(self) -> None:
        """Take lines until the user leaves."""
        with patch_stdout(raw=True):
            await self._guarded(self._arrive())
            try:
                with suppress(EOFError):
                    while await self._take(await self.screen.read()):
                        self.leaving = False
            finally:  # also when a signal ends the program
                if self.work:
                    self.work.cancel()
                    await asyncio.wait({self.work})

    async def _arrive(self) -> None:
        """Show the state of the thread, the last messages, and what it waits for."""
        await self._look()
        await self.screen.show(*last_exchange((await self.thread.now()).values))
        if await self._ask():
            return
        now = await self.thread.now()
        if now.tasks:
            await self.screen.show(
                *said("The agent was stopped here; /go continues."), *cut_off_lines(now)
            )

    async def _take(self, line: str) -> bool:
        """Carry out what was typed; false to leave."""
        try:
            asked = read_line(line) if line.strip() else None
        except CommandError as error:
            await self.screen.show(*error_lines(error))
            return True
        if asked == Plain("quit"):
            return False
        if asked:
            with deaf_to_ctrl_c():  # between two prompts, it would end the program
                await self._guarded(self._carry_out(asked))
        return self.change is None

    async def _guarded(self, doing: Coroutine[Any, Any, None]) -> None:
        """Show an error, for example a locked database, and keep the chat running."""
        try:
            await doing
        except Exception as error:
            await self.screen.show(*error_lines(error))

    async def _carry_out(self, asked: Asked) -> None:
        if self.work and (self.asked or self.work.cancelling()):
            await asyncio.wait({self.work})  # this run is about to end
        match asked:
            case Say(text):
                await self._say(text)
            case Plain("ask"):
                await self._ask_again()
            case Plain("help" | "todos" | "history" | "branches") | Show():
                await self.screen.show(*await self._answer(asked))
            case _ if self.working:
                raise CommandError("the agent is working; stop it with Ctrl-C first")
            case Shell() | Plain("diff") if self.session:
                await self._run_own(asked, self.session)
            case Model() | Plain("clear"):
                self._end_for(asked)
            case Plain("go"):
                await self._go()
            case _:
                await self._move(asked)

    async def _run_own(self, asked: Shell | Plain, session: Session) -> None:
        if isinstance(asked, Shell):
            session.run(asked.command)
        else:
            await self.screen.show(*diff_lines(session.diff()))
        if self.asked:  # what was typed meanwhile was meant for the command
            await self._ask()

    def _end_for(self, change: Model | Plain) -> None:
        if self.waiting:
            raise CommandError("a message is kept for later; press Ctrl-C to take it back first")
        if isinstance(change, Model):
            chat_model(change.name)  # an error leaves the conversation as it is
        self.change = change

    async def _answer(self, asked: Asked) -> Iterable[Line]:
        """What a command shows that changes nothing."""
        match asked:
            case Show(number):
                return whole_result(messages_in((await self.thread.now()).values), number)
            case Plain("todos"):
                return show_todos(self.run.followed.todos or []).lines
            case Plain("history"):
                view = history_view(moments(await self.thread.history()))
                return view.lines or said("No checkpoints yet.")
            case Plain("branches"):
                view = branches_view(await self.thread.history())
                return view.lines or said("No branches yet.")
            case _:
                return said(HELP)

    async def _say(self, text: str) -> None:
        if self.working or (self.asked and not self.is_answer):
            self.waiting.append(text)
        elif self.asked:
            await self._decide(text)
        else:
            self._start(text)

    async def _ask(self) -> bool:
        """Show the next call that a person must decide; return whether the thread waits for one."""
        self.asked = False
        now = await self.thread.now()
        self.approval = self.approval.of(now.interrupts).passing(self.approved)
        if self.approval.calls and not self.approval.complete:
            await self._ask_about(self.approval.next_call, now)
            self.asked = True
        return bool(self.approval.calls)

    async def _ask_again(self) -> None:
        """Ask about every call from now on, and also about those that have passed and wait."""
        self.approved.names.clear()
        await self.screen.show(*said("You are asked about every call again."))
        if self.work and self.approval.calls:
            await asyncio.wait({self.work})  # its question is being drawn
        if self.asked:
            self.approval = Approval(self.approval.waiting)
            await self._ask()

    async def _ask_about(
        self, call: Mapping[str, Any], now: StateSnapshot, *, whole: bool = False
    ) -> None:
        todos = self.approval.list_before_next(todos_in(now.values))
        room = Room.of(self.console, taken=self.console.height // 3)
        before = self.session.text_before(call) if self.session else ""
        cut = is_cut(call, todos, room, before)
        shown = call_rows(call, todos, room.whole if whole else room, before)
        self.run.has_asked(call)
        await self.screen.ask(*shown, question_about(call, cut=cut))

    async def _decide(self, text: str) -> None:
        call = self.approval.next_call
        if wants_all(text):
            await self._ask_about(call, await self.thread.now(), whole=True)
            return
        try:
            answer = answer_about(call, text)
        except NotEditedError as error:
            await self.screen.ask(*said(str(error)), question_about(call))
            return
        if answer:
            await self.screen.show(*self.approved.after(answer, call["name"], "/ask asks again"))
            self.approval = self.approval.decided(answer)
        await self._ask()
        if decided := self._take_decisions():
            self._start(decided)

    def _take_decisions(self) -> Command[Any] | None:
        """The input that resumes the run once all its calls are decided."""
        if not self.approval.calls or not self.approval.complete:
            return None
        decided, self.approval = self.approval.command, Approval()
        return decided

    async def _go(self) -> None:
        now = await self.thread.now()
        if not (now.tasks and messages_in(now.values)):  # a list alone is no request
            raise CommandError("nothing to continue here; send a message")
        if not self.approval.waiting:  # what was answered is still among the interrupts
            now = now._replace(interrupts=())
        await self.screen.show(*cut_off_lines(now))
        self._start(None)

    async def _move(self, asked: Any) -> None:
        """Change the list or go to another checkpoint, and show the list there."""
        had_question = self.asked
        match asked:
            case Fork(number):
                await self.thread.fork(number)
            case Redo(index):
                await self.thread.redo(index)
            case Switch(number):
                await self.thread.switch(number)
            case _:
                todos = todos_in((await self.thread.now()).values)
                await self.thread.replace_todos(edited(todos, asked))
        await self._look()
        message = asked.message if isinstance(asked, Fork | Redo) else ""
        if not message:  # it would withdraw the question of this checkpoint, if there is one
            await self._ask()
        start = message or self._take_decisions()
        if isinstance(asked, Fork | Redo | Switch) or (had_question and not self.asked):
            await self.screen.show(*said(await self._branch(waits=not start)))
        if start:
            self._start(start)

    async def _branch(self, *, waits: bool) -> str:
        """Name the current branch, and say what /go does if the branch waits for it."""
        history = await self.thread.history()
        branch, steps = f"On branch {current_branch(history)}", history[0].next
        if not steps or self.asked or not waits:
            return f"{branch}."
        does = "runs the calls of its last answer" if "tools" in steps else "continues"
        return f"{branch}; /go {does}."

    def _start(self, message: Request) -> None:
        self.asked = False  # what is typed from now on answers no question
        if isinstance(message, str):  # it withdraws the question
            self.approval = Approval()
        self.foot.begin()
        self.work = asyncio.create_task(self._work(message))

    async def _work(self, message: Request) -> None:
        """Run the agent, and then run it on the messages typed meanwhile.

        If it asks a question, they wait for the answer too: a message would withdraw the question.
        """
        await self._run(message)
        while self.waiting and not self.asked:
            kept = "\n".join(self.waiting)
            self.waiting.clear()
            await self._run(kept)

    async def _run(self, message: Request) -> None:
        try:
            await self._follow(message)
            while await self._ask() and (decided := self._take_decisions()):
                await self._follow(decided)
        except asyncio.CancelledError:
            await self.screen.show(
                *said(_NOT_CONTINUED if self.run.followed.countdown else _STOPPED)
            )
            raise
        except Exception as error:  # keep the chat alive when a run fails
            await self.screen.show(*error_lines(error), *said(_STOPPED))
        finally:
            await self._guarded(self._look())

    async def _follow(self, message: Request) -> None:
        """Show a run as it happens."""
        await self.screen.show(*self.run.shown_now())
        async with aclosing(self.thread.run(message)) as stream:
            async for mode, chunk in stream:
                await self.screen.show(*self.run.after(mode, chunk))
                self._typed()

    async def _look(self) -> None:
        """Show the stored list: an interrupted call may have announced a change in vain."""
        self.run.resume_at((await self.thread.now()).values)
        self.screen.redraw()

    def _sent(self) -> None:
        self.is_answer = self.asked

    def _typed(self) -> None:
        """Stop the countdown when the user types, even before it begins."""
        if not self.screen.typed.text:
            return
        self.leaving = False
        if self.run.followed.countdown and self.work and not self.work.cancelling():
            self.work.cancel()

    def _interrupt(self) -> None:
        """Stop the agent; if it is not working, clear the line, and leave the second time.

        Messages that wait to be sent return to the input line.
        """
        if self.waiting:  # meant for a later moment, so the user must press Enter again
            typed = self.screen.typed
            typed.text = as_typed("\n".join([*self.waiting, typed.text]).strip())
            typed.cursor_position = len(typed.text)
            self.waiting.clear()
            if not self.working:
                return
        if self.work and self.working:
            if not self.work.cancelling():
                self.work.cancel()
        elif self.leaving:
            self.screen.leave()
        else:
            self.screen.typed.reset()
            self.leaving = True

    def _asks(self, tool: str) -> bool:
        asked_about = self.session.asked_about if self.session else ()
        return tool in asked_about and tool not in self.approved

    def _foot_lines(self) -> Iterator[Line]:
        height = self.console.height // (4 if self.approval.calls else 2)
        return self.foot.lines(
            self.run.followed,
            self._doing() + (f" · {self.run.tokens:,} tokens" if self.run.tokens else ""),
            self.waiting,
            height,
            working=self.working,
            rows_of=partial(rows_below, self.console),
        )

    def _doing(self) -> str:
        if self.working:
            return "working, Ctrl-C stops it"
        if self.leaving:
            return "Ctrl-C again leaves"
        return answers_about(self.approval.next_call) if self.asked else "your turn"
