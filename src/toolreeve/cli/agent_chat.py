"""`toolreeve agent chat`: a conversation with the agent.

The main thread reads what the user types; the runtime has a thread of its own. So ^C ends a run, or clears the line,
and never the conversation.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.cli.agent import SHOWN_ANSWER, TextView, run_once, summarize
from toolreeve.cli.options import Options, on_terminal
from toolreeve.cli.output import note, print_text
from toolreeve.core.errors import ExitStatus, ToolreeveError
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.agent.config import BaseAgentConfig
    from toolreeve.agent.recorded_run import StoredRun
    from toolreeve.agent.runs import AgentResult
    from toolreeve.runtime.sync import Portal
    from toolreeve.runtime.toolreeve import Toolreeve

HISTORY = "agent_history"
HISTORY_LINES = 1000
HELP = """\\      at the end of a line: go on in the next
/help  this list
/cost  tokens and dollars so far
/new   start a new conversation
/quit  leave (also ^D)
^C     end what the agent does; at the prompt, clear the line"""


def run_chat(
    options: Options, resumed: str | None, configure: "Callable[..., BaseAgentConfig]", model: str | None
) -> int:
    """`configure` takes the model: the one asked for, else that of the resumed run."""
    from toolreeve.agent.recorded_run import load_run
    from toolreeve.cli.runtime import new_runtime
    from toolreeve.runtime.sync import Portal

    portal = Portal()
    try:
        reeve = new_runtime(options)
        portal.run(reeve.start())
        try:
            run = None if resumed is None else portal.run(load_run(reeve, resumed))
            chat = _Chat(portal, reeve, configure(model=model or (run and run.row.model)), run)
            with _typed_before(options):
                chat.talk()
        finally:
            portal.run(reeve.close())
    finally:
        portal.close()
    return ExitStatus.OK


class _Chat:
    """`run` is the run that the conversation is recorded as; None before the first question."""

    def __init__(
        self, portal: "Portal", reeve: "Toolreeve", config: "BaseAgentConfig", run: "StoredRun | None"
    ) -> None:
        self._portal = portal
        self._reeve = reeve
        self._config = config
        self._run = run
        self._view = TextView(streams=True)
        self._spent = 0.0

    def talk(self) -> None:
        if self._run is not None:
            note(f"going on with: {one_line(self._run.row.question)[:SHOWN_ANSWER]}")
        while (line := _read_line()) is not None:
            match line.strip():
                case "":
                    continue
                case "/quit":
                    break
                case "/help":
                    print_text(HELP)
                case "/cost":
                    tokens = 0 if self._run is None else self._run.conversation.tokens()
                    print_text(f"${self._spent:.4f}, {tokens:,} tokens in the conversation")
                case "/new":
                    self._run = None
                case text if text.startswith("/"):
                    note(f"unknown command {one_line(text)}; /help lists them")
                case text:
                    self._ask(text)
        if self._run is not None:
            note(f"to go on: toolreeve agent chat --resume {self._run.row.id[:8]}")

    def _ask(self, text: str) -> None:
        from toolreeve.agent.recorded_run import load_run, new_stored_run

        run = self._run or new_stored_run(self._reeve, self._config, text)
        try:
            result = self._interruptible(run, text)
        except ToolreeveError as problem:  # the provider refuses: the next question may work, with another model
            note(str(problem))
        else:
            if result is None:
                note("interrupted; the conversation is kept")
            else:
                self._spent += result.outcome.cost
                summarize(result)
        self._run = self._portal.run(load_run(self._reeve, run.row.id))

    def _interruptible(self, run: "StoredRun", text: str) -> "AgentResult | None":
        """None if the user interrupted it. The conversation keeps what was complete."""
        stop = asyncio.Event()

        async def work() -> "AgentResult | None":
            running = asyncio.create_task(run_once(self._reeve, self._config, text, self._view.show, earlier=run))
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait((running,))
            return None if running.cancelled() else running.result()

        async def interrupt() -> None:
            stop.set()

        waiting = self._portal.submit(work())
        try:
            return waiting.result()
        except KeyboardInterrupt:
            self._portal.run(interrupt())
            return waiting.result()


@contextmanager
def _typed_before(options: Options) -> Iterator[None]:
    """The lines of earlier chats, in a file that only the user can read."""
    import readline

    path = Path(options.configuration().settings.state.dir) / HISTORY
    if path.is_file():
        readline.read_history_file(path)
    readline.set_history_length(HISTORY_LINES)
    yield
    path.touch(mode=0o600)
    readline.write_history_file(path)


def _read_line() -> str | None:
    """What the user typed; a line that ends with a backslash goes on in the next. None at the end of the input."""
    lines: list[str] = []
    while not lines or lines[-1].endswith("\\"):
        try:
            lines.append(input(". " if lines else "> "))
        except KeyboardInterrupt:
            print_text("^C")
            lines.clear()
        except EOFError:
            print_text("\n" if on_terminal() else "")
            return None
    return "\n".join(line.removesuffix("\\") for line in lines)
