"""`toolreeve agent`: runs Toolreeve's own agent in the terminal.

The answer goes to stdout, what happens meanwhile to stderr. Approvals are asked for on the terminal.
"""

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from toolreeve.cli.audit import short_ids
from toolreeve.cli.options import CliGroup, Options, current, on_terminal
from toolreeve.cli.output import count, note, print_json, print_table, print_text
from toolreeve.cli.record import format_time, open_journal
from toolreeve.config.os_user import os_user_name
from toolreeve.core import json
from toolreeve.core.errors import ExitStatus, ToolreeveError
from toolreeve.core.visible import one_line, visible

if TYPE_CHECKING:
    from toolreeve.agent.config import BaseAgentConfig
    from toolreeve.agent.events import AgentEvent
    from toolreeve.agent.messages import Message
    from toolreeve.agent.recorded_run import StoredRun
    from toolreeve.agent.runs import AgentResult
    from toolreeve.record.agent_runs import AgentRunRow, AgentRunTable
    from toolreeve.runtime.toolreeve import Toolreeve

SHOWN_ARGUMENTS = 100
SHOWN_ANSWER = 200
HISTORY = "agent_history"
HISTORY_LINES = 1000
T = TypeVar("T")
HELP = """\\      at the end of a line: go on in the next
/help  this list
/cost  tokens and dollars so far
/new   start a new conversation
/quit  leave (also ^D)"""


@click.group(cls=CliGroup)
def agent() -> None:
    """Run an agent that acts through the tools."""


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--model", metavar="PROVIDER:MODEL", help="The model; agent.model by default."),
        click.option("--base-url", metavar="URL", help="The address of the provider's API."),
        click.option("--max-steps", type=click.IntRange(min=1), help="Maximum number of turns of the model."),
        click.option("--budget", type=click.FloatRange(min=0), metavar="DOLLARS", help="What one run may cost."),
        click.option("--phases", is_flag=True, help="Specify and plan first; run the project's checks afterwards."),
    ):
        command = option(command)
    return command


@agent.command()
@click.argument("task")
@click.option("--resume", metavar="RUN", help="Continue RUN with TASK, as `agent resume` does.")
@_model_options
def run(task: str, resume: str | None, **chosen: Any) -> int:
    """Do TASK, and print the answer. With --json, print every event as a line."""
    options = current()
    if resume is not None:
        return asyncio.run(_resume(options, resume, task, chosen))
    return asyncio.run(_run(options, agent_config(options, **chosen), task))


@agent.command()
@click.option("--resume", metavar="RUN", help="Go on with the conversation of RUN, an earlier chat for example.")
@_model_options
def chat(resume: str | None, **chosen: Any) -> int:
    """Talk with the agent. /help lists the commands; ^C interrupts a run and keeps the conversation.

    A conversation is one run: `agent list` shows it, and `agent chat --resume` goes on with it. What you typed is kept
    for the next chat.
    """
    return asyncio.run(_chat(current(), resume, chosen))


def agent_config(
    options: Options,
    *,
    model: str | None,
    base_url: str | None,
    max_steps: int | None,
    budget: float | None,
    phases: bool,
) -> "BaseAgentConfig":
    from toolreeve.agent.config import BaseAgentConfig

    settings = options.configuration().settings.agent
    chosen = model or settings.model
    if not chosen:
        raise ToolreeveError("no model: pass --model PROVIDER:MODEL, or set agent.model in toolreeve.toml")
    return BaseAgentConfig.parse(
        chosen,
        base_url=base_url or settings.base_url or None,
        max_steps=max_steps or settings.max_steps,
        max_seconds=settings.max_seconds,
        context_tokens=settings.context_tokens,
        budget_limit=budget,
        phases=phases,
    )


async def _run(options: Options, config: "BaseAgentConfig", task: str) -> int:
    from toolreeve.cli.runtime import new_runtime

    async with new_runtime(options) as reeve:
        view = _JsonView() if options.json else _TextView()
        result = await _once(reeve, config, task, view.show)
    return _finish(options, result)


def _finish(options: Options, result: "AgentResult") -> int:
    if not options.json:
        print_text(result.outcome.text)
        _summarize(result)
    return ExitStatus.OK if result.completed else ExitStatus.TOOL_ERROR


@agent.command("list")
@click.option("--last", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
def list_runs(last: int) -> int:
    """List recent runs, newest first."""
    options = current()
    rows = asyncio.run(_with_runs(options, lambda runs: runs.recent(os_user_name(), last)))
    if options.json:
        print_json([dataclasses.asdict(row) for row in rows])
    elif rows:
        ids = short_ids([row.id for row in rows])
        cells = [_cells(row, ids[row.id]) for row in rows]
        print_table(options, ("run", "began", "stop", "steps", "cost", "question"), cells)
    else:
        note("no runs yet")
    return ExitStatus.OK


def _cells(row: "AgentRunRow", short_id: str) -> tuple[str, ...]:
    stop = row.stop or "unfinished"
    began = format_time(row.began)[:16].replace("T", " ")
    return (short_id, began, stop, str(row.steps), f"${row.cost:.4f}", one_line(row.question)[:60])


@agent.command()
@click.argument("run_id", metavar="RUN")
def show(run_id: str) -> int:
    """Show how RUN ended, what it cost, and the tools it called."""
    from toolreeve.agent.messages import AssistantMessage

    options = current()
    row, messages = asyncio.run(_with_runs(options, partial(_read_run, run_id)))
    calls = Counter(call.name for each in messages if isinstance(each, AssistantMessage) for call in each.calls)
    fields = {**dataclasses.asdict(row), "stop": row.stop or "unfinished", "messages": len(messages), "tools": calls}
    if options.json:
        print_json(fields)
    else:
        tools = ", ".join(f"{name} {times}" for name, times in calls.most_common())
        shown = fields | {
            "began": format_time(row.began),
            "ended": row.ended and format_time(row.ended),
            "tools": tools,
        }
        print_table(options, ("", ""), [(name, one_line(str(value or "-"))) for name, value in shown.items()])
    return ExitStatus.OK


async def _read_run(run_id: str, runs: "AgentRunTable") -> "tuple[AgentRunRow, list[Message]]":
    from toolreeve.agent.transcript import find_run, load_messages

    row = await find_run(runs, os_user_name(), run_id)
    return row, await load_messages(runs, row.id)


@agent.command()
@click.argument("run_id", metavar="RUN")
def replay(run_id: str) -> int:
    """Show what was said and done in RUN, from the record. No model is asked and no tool runs."""
    from toolreeve.agent.messages import to_dict

    options = current()
    row, messages = asyncio.run(_with_runs(options, partial(_read_run, run_id)))
    if options.json:
        print_json({**dataclasses.asdict(row), "messages": [to_dict(message) for message in messages]})
    else:
        print_text("\n".join(line for message in messages for line in _lines(to_dict(message))))
        note(f"{row.stop or 'unfinished'}: {count(row.steps, 'step')}, ${row.cost:.4f}, model {row.model}")
    return ExitStatus.OK


def _lines(message: dict[str, Any]) -> list[str]:
    match message["role"]:
        case "user":
            return [f"> {message['text']}"]
        case "assistant":
            said = [message["text"]] if message["text"] else []
            return [*said, *(_call_line(call["name"], call["args"]) for call in message["calls"])]
        case _:
            return [f"    {_labels(answer)}{one_line(answer['text'])[:SHOWN_ANSWER]}" for answer in message["answers"]]


def _labels(answer: dict[str, Any]) -> str:
    return f"[{', '.join(answer['labels'])}] " if answer["labels"] else ""


@agent.command()
@click.argument("run_id", metavar="RUN")
@click.argument("task", default="Continue.")
@_model_options
def resume(run_id: str, task: str, **chosen: Any) -> int:
    """Continue RUN where it ended. A call that was interrupted is not repeated: the model is told so."""
    return asyncio.run(_resume(current(), run_id, task, chosen))


async def _resume(options: Options, run_id: str, task: str, chosen: dict[str, Any]) -> int:
    from toolreeve.agent.recorded_run import load_run
    from toolreeve.cli.runtime import new_runtime

    async with new_runtime(options) as reeve:
        earlier = await load_run(reeve, run_id)
        config = agent_config(options, **chosen | {"model": chosen["model"] or earlier.row.model})
        view = _JsonView() if options.json else _TextView()
        result = await _once(reeve, config, task, view.show, earlier=earlier)
    return _finish(options, result)


async def _with_runs(options: Options, query: "Callable[[AgentRunTable], Awaitable[T]]") -> T:
    async with open_journal(options) as (store, _):
        return await query(store.agent_runs)


async def _once(
    reeve: "Toolreeve",
    config: "BaseAgentConfig",
    task: str,
    emit: "Callable[[AgentEvent], None]",
    *,
    earlier: "StoredRun | None" = None,
) -> "AgentResult":
    from toolreeve.agent.errors import ModelError
    from toolreeve.agent.providers import connect
    from toolreeve.agent.recorded_run import run_recorded

    environ = reeve.configuration.known.environ
    try:
        provider = connect(
            config.llm_provider, base_url=config.base_url, timeout=config.request_timeout, environ=environ
        )
    except ModelError as problem:  # an unknown provider, no key, no package: nothing was sent yet
        raise ToolreeveError(str(problem)) from None
    inputs = {"task": task}
    try:
        return await run_recorded(reeve, config, inputs, provider=provider, emit=emit, earlier=earlier)
    finally:
        await provider.close()


async def _chat(options: Options, resumed: str | None, chosen: dict[str, Any]) -> int:
    from toolreeve.agent.recorded_run import load_run, new_stored_run
    from toolreeve.cli.runtime import new_runtime

    view = _TextView(streams=True)
    spent = 0.0
    async with new_runtime(options) as reeve:
        chat = None if resumed is None else await load_run(reeve, resumed)
        if chat is not None:
            note(f"going on with: {one_line(chat.row.question)[:SHOWN_ANSWER]}")
        config = agent_config(options, **chosen | {"model": chosen["model"] or (chat and chat.row.model)})
        with _typed_before(options):
            while (line := await asyncio.to_thread(_read_line)) is not None:
                match line.strip():
                    case "":
                        continue
                    case "/quit":
                        break
                    case "/help":
                        print_text(HELP)
                    case "/cost":
                        tokens = 0 if chat is None else chat.conversation.tokens()
                        print_text(f"${spent:.4f}, {tokens:,} tokens in the conversation")
                    case "/new":
                        chat = None
                    case text if text.startswith("/"):
                        note(f"unknown command {one_line(text)}; /help lists them")
                    case text:
                        chat = chat or new_stored_run(reeve, config, text)
                        result = await _interruptible(_once(reeve, config, text, view.show, earlier=chat))
                        if result is not None:
                            spent += result.outcome.cost
                            _summarize(result)
                        chat = await load_run(reeve, chat.row.id)
    if chat is not None:
        note(f"to go on: toolreeve agent chat --resume {chat.row.id[:8]}")
    return ExitStatus.OK


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


async def _interruptible(work: "Coroutine[Any, Any, AgentResult]") -> "AgentResult | None":
    """None if the user interrupted it. The conversation keeps what was complete."""
    import signal

    task = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        note("interrupted; the conversation is kept")
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _read_line() -> str | None:
    """What the user typed; a line that ends with a backslash goes on in the next. None at the end of the input."""
    try:
        lines = [input("> ")]
        while lines[-1].endswith("\\"):
            lines[-1] = lines[-1][:-1]
            lines.append(input(". "))
    except EOFError:
        return None
    return "\n".join(lines)


def _summarize(result: "AgentResult") -> None:
    outcome = result.outcome
    tokens = outcome.usage.input + outcome.usage.output
    if not result.completed:
        note(f"stopped ({outcome.stop}): {outcome.why}")
    done = f"{count(outcome.steps, 'step')}, {count(len(outcome.tools_used), 'tool call')}"
    note(f"{done}, {tokens:,} tokens, ${outcome.cost:.4f}")


def _call_line(tool: str, args: Any) -> str:
    arguments = one_line(json.dumps(args).decode())
    shown = arguments if len(arguments) <= SHOWN_ARGUMENTS else f"{arguments[:SHOWN_ARGUMENTS]}…"
    return f"  {one_line(tool)} {shown}"


def _checks(checks: dict[str, bool | None]) -> str:
    words = {True: "passed", False: "failed", None: "not run"}
    return "".join(f"; {tool} {words[passed]}" for tool, passed in checks.items())


class _JsonView:
    def show(self, event: "AgentEvent") -> None:
        click.echo(json.dumps(event.to_dict()))


class _TextView:
    """One line for each tool call. With `streams`, text is printed as it arrives."""

    def __init__(self, *, streams: bool = False) -> None:
        self._streams = streams
        self._open = False

    def show(self, event: "AgentEvent") -> None:
        from toolreeve.agent.events import EventKind

        data = event.data
        match event.kind:
            case EventKind.TEXT if self._streams:
                click.echo(visible(data["text"]) if on_terminal() else data["text"], nl=False)
                self._open = True
            case EventKind.TURN | EventKind.RETRIED | EventKind.ENDED if self._open:
                click.echo()
                self._open = False
            case EventKind.TOOL_STARTED:
                click.echo(_call_line(data["tool"], data["args"]), err=True)
            case EventKind.TOOL_ENDED if not data["success"]:
                click.echo(f"  {data['tool']} failed: {data.get('error', '')}", err=True)
            case EventKind.PHASE:
                click.echo(f"{data['phase']}{_checks(data.get('checks', {}))}", err=True)
            case EventKind.COMPACTED:
                click.echo(f"  {data['results']} old results were shortened to save context", err=True)
