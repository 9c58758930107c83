"""A conversation in a terminal: the agent's work above, the input line, the list below it."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, suppress
from dataclasses import replace

from rich.console import Console

from graphs.terminal.approval import ANSWERS, Approval, question_lines, read_answer
from graphs.terminal.commands import HELP, Asked, CommandError, edited, read_line
from graphs.terminal.lines import error_text, said
from graphs.terminal.run_lines import RunLines
from graphs.terminal.screen import ChatScreen
from graphs.terminal.thread import Request, Thread, current_branch
from graphs.terminal.views import branch_lines, history_lines, last_exchange
from todo_tools.rendering import show_todos
from todo_tools.rendering.lowlevel import Followed, Line, LiveLines, Span, one_line
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
    """

    def __init__(self, thread: Thread, waiting: list[str], console: Console) -> None:
        self.thread = thread
        self.waiting = waiting
        self.console = console
        self.followed = Followed()
        self.work: asyncio.Task[None] | None = None
        self.approval = Approval()
        self.leaving = False
        self._live = LiveLines()
        self.screen = ChatScreen(
            console, below=self._below, typed=self._typed, interrupt=self._interrupt
        )

    @property
    def working(self) -> bool:
        """Whether the agent is working."""
        return self.work is not None and not self.work.done()

    async def talk(self) -> None:
        """Take lines until the user leaves."""
        await self._arrive()
        try:
            with suppress(EOFError):
                while await self._take(await self.screen.read()):
                    self.leaving = False
        finally:  # also when a signal ends the program
            if self.work:
                self.work.cancel()
                await asyncio.wait({self.work})

    async def _arrive(self) -> None:
        """Show the last messages of the thread, and what it waits for."""
        await self._look()
        now = await self.thread.now()
        await self.screen.show(*last_exchange(now.values))
        if not await self._ask() and now.tasks and messages_in(now.values):
            await self.screen.show(*said("The agent was stopped here; /go continues."))

    async def _take(self, line: str) -> bool:
        """Carry out what was typed; false to leave."""
        if not line.strip():
            return True
        try:
            asked = read_line(line)
            if asked.name == "exit":
                return False
            await self._carry_out(asked)
        except Exception as error:  # for example a locked database; the chat goes on
            await self._fail(error)
        return True

    async def _carry_out(self, asked: Asked) -> None:
        if self.work and (self.work.cancelling() or self.approval.next_call):  # it is about to end
            await asyncio.wait({self.work})
        match asked.name:
            case "say":
                await self._say(asked.text)
            case "todos":
                await self.screen.show(*show_todos(self.followed.todos or []).lines)
            case "history":
                await self.screen.show(*history_lines(await self.thread.history()))
            case "branches":
                await self.screen.show(*branch_lines(await self.thread.history()))
            case "help":
                await self.screen.show(*said(HELP))
            case _ if self.working:
                raise CommandError("the agent is working; stop it with Ctrl-C first")
            case "go":
                await self._go()
            case "edit":
                await self._edit(asked)
            case _:
                await self._move(asked)

    async def _say(self, text: str) -> None:
        if self.working:
            self.waiting.append(text)
        elif self.approval.next_call:
            await self._decide(text)
        else:
            self._start(text)

    async def _decide(self, text: str) -> None:
        answer = read_answer(text)
        if answer:
            self.approval = self.approval.decided(answer)
            await self.screen.show(answer.line)
        if call := self.approval.next_call:
            await self.screen.ask(*question_lines(call))
        else:
            self._start(self.approval.command)

    async def _go(self) -> None:
        now = await self.thread.now()
        if self.approval.next_call:
            raise CommandError("the agent waits for your answer")
        if not (now.tasks and messages_in(now.values)):  # a list alone is no request
            raise CommandError("nothing to continue here; send a message")
        self._start(None)

    async def _edit(self, asked: Asked) -> None:
        todos = todos_in((await self.thread.now()).values)
        await self.thread.replace_todos(edited(todos, asked))
        await self._look()
        if self.approval.next_call and not await self._ask():
            await self.screen.show(*said("The question is withdrawn; /go asks it again."))

    async def _move(self, asked: Asked) -> None:
        """Go to another checkpoint, and show the list there."""
        moves = {"fork": self.thread.fork, "redo": self.thread.redo, "switch": self.thread.switch}
        await moves[asked.name](asked.number or 0)
        await self._look()
        branch = f"On branch {current_branch(await self.thread.history())}"
        if asked.text or asked.name == "redo":
            await self.screen.show(*said(f"{branch}."))
            self._start(asked.text or None)
        elif not await self._ask():
            waits = ", or /go to continue" if (await self.thread.now()).tasks else ""
            await self.screen.show(*said(f"{branch}. Send a message{waits}."))

    async def _ask(self) -> bool:
        """Ask about the next call that a person must decide; return whether there is one."""
        approval = self.approval.of((await self.thread.now()).interrupts)
        if call := approval.next_call:
            await self.screen.ask(*question_lines(call))
        self.approval = approval  # a line that was sent before is not an answer
        return call is not None

    def _start(self, request: Request) -> None:
        self.approval = self.approval.of(())
        self._live.begin()
        self.work = asyncio.create_task(self._work(request))

    async def _work(self, request: Request) -> None:
        """Run the agent, and then run it on the messages typed meanwhile.

        If it asks a question, they wait for the answer too: a message would withdraw the question.
        """
        try:
            await self._follow(request)
            while not await self._ask():
                if self.approval.waiting:  # all its calls are approved always
                    await self._follow(self.approval.command)
                elif self.waiting:
                    kept = "\n".join(self.waiting)
                    self.waiting.clear()
                    await self._follow(kept)
                else:
                    break
        except asyncio.CancelledError:
            text = _NOT_CONTINUED if self.followed.countdown else _STOPPED
            await self.screen.show(*said(text))
            raise
        except Exception as error:  # keep the chat alive when a run fails
            await self._fail(error, _STOPPED)
        finally:
            await self._look()

    async def _fail(self, error: Exception, advice: str = "") -> None:
        await self.screen.show(Line((Span(error_text(error), "error"),)), *said(advice))

    async def _follow(self, request: Request) -> None:
        """Show a run as it happens."""
        run = RunLines(messages_in((await self.thread.now()).values))
        async with aclosing(self.thread.run(request)) as stream:
            async for mode, chunk in stream:
                self.followed = replace(self.followed.after((mode, chunk)), notice="")
                await self.screen.show(*run.after(mode, chunk))
                self._typed()

    async def _look(self) -> None:
        """Show the stored list: an interrupted call may have announced a change in vain."""
        self.followed = Followed(todos_in((await self.thread.now()).values))
        self.screen.redraw()

    def _typed(self) -> None:
        """Stop the countdown when the user types, even before it begins."""
        if not self.screen.typed.text:
            return
        self.leaving = False
        if self.followed.countdown and self.work and not self.work.cancelling():
            self.work.cancel()

    def _interrupt(self) -> None:
        """Stop the agent; if it is not working, clear the line, and leave the second time.

        Messages that wait to be sent return to the input line.
        """
        typed = self.screen.typed
        if self.waiting:
            typed.text = " ".join([*self.waiting, typed.text]).strip()
            typed.cursor_position = len(typed.text)
            self.waiting.clear()
        elif self.leaving and not self.working:
            self.screen.leave()
        elif not self.working:
            typed.reset()
            self.leaving = True
        if self.work and self.working and not self.work.cancelling():
            self.work.cancel()

    def _below(self) -> Iterator[Line]:
        countdown = self.followed.countdown.partition(" (")[0]
        advice = f"{countdown} (type to stop it)" if countdown else ""
        self._live.see(replace(self.followed, countdown=advice))
        height = max(self.console.height // 2 - len(self.waiting), 4)
        yield from self._live.lines(height, working=self.working, hint=self._doing())
        yield from (Line((Span(f"kept: {one_line(text)}", "dim"),)) for text in self.waiting)

    def _doing(self) -> str:
        if self.working:
            return "working, Ctrl-C stops it"
        if self.leaving:
            return "Ctrl-C again leaves"
        return ANSWERS if self.approval.next_call else "your turn"
