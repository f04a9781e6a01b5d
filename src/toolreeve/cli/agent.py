"""`toolreeve agent`: runs Toolreeve's own agent in the terminal.

The answer goes to stdout, what happens meanwhile to stderr. Approvals are asked for on the terminal.
"""

import asyncio
import dataclasses
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
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
T = TypeVar("T")


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
    from toolreeve.cli.agent_chat import run_chat

    return run_chat(current(), resume, partial(agent_config, current(), **chosen), chosen["model"])


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
        view = _JsonView() if options.json else TextView()
        result = await run_once(reeve, config, task, view.show)
    return _finish(options, result)


def _finish(options: Options, result: "AgentResult") -> int:
    if not options.json:
        print_text(result.outcome.text)
        summarize(result)
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
        view = _JsonView() if options.json else TextView()
        result = await run_once(reeve, config, task, view.show, earlier=earlier)
    return _finish(options, result)


async def _with_runs(options: Options, query: "Callable[[AgentRunTable], Awaitable[T]]") -> T:
    async with open_journal(options) as (store, _):
        return await query(store.agent_runs)


async def run_once(
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


def summarize(result: "AgentResult") -> None:
    outcome = result.outcome
    tokens = outcome.usage.input + outcome.usage.output
    if not result.completed:
        note(f"stopped ({outcome.stop}): {outcome.why}")
    done = f"{count(outcome.steps, 'step')}, {count(len(outcome.tools_used), 'tool call')}"
    cost = _dollars(None if outcome.unpriced else outcome.cost)
    note(f"{done}, {tokens:,} tokens, {cost}, {outcome.seconds:.1f} s")


def _dollars(cost: float | None) -> str:
    return "no known price" if cost is None else f"${cost:.4f}"


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


class TextView:
    """A line for each step and each tool call. With `streams`, text is printed as it arrives."""

    def __init__(self, *, streams: bool = False) -> None:
        self._streams = streams
        self._is_line_open = False
        self._began = 0.0
        self._steps = 0
        self._cost: float | None = 0.0

    def show(self, event: "AgentEvent") -> None:
        from toolreeve.agent.events import EventKind

        data = event.data
        if event.kind in (EventKind.TURN, EventKind.RETRIED, EventKind.ENDED):
            self._close_line()
        match event.kind:
            case EventKind.STARTED:
                self._began = time.monotonic()
                self._steps = 0
                self._cost = 0.0
            case EventKind.TEXT if self._streams:
                click.echo(visible(data["text"]) if on_terminal() else data["text"], nl=False)
                self._is_line_open = True
            case EventKind.TURN:
                self._show_step(data)
            case EventKind.RETRIED:
                _say(f"  the model did not complete its reply; attempt {data['attempt']}")
            case EventKind.TOOL_STARTED:
                _say(_call_line(data["tool"], data["args"]))
            case EventKind.TOOL_ENDED if not data["success"]:
                _say(f"  {one_line(data['tool'])} failed: {data.get('error', '')}")
            case EventKind.PHASE:
                _say(f"{data['phase']}{_checks(data.get('checks', {}))}")
            case EventKind.COMPACTED:
                _say(f"  {data['results']} old results were shortened to save context")

    def _show_step(self, turn: "Mapping[str, Any]") -> None:
        """What was said is shown here unless it was streamed; the last turn is the answer, which is not shown."""
        self._steps += 1
        cost = turn["cost_usd"]
        self._cost = None if cost is None or self._cost is None else self._cost + cost
        if turn["calls"]:
            said = "" if self._streams or not turn["text"] else f": {visible(turn['text'])}"
            _say(f"step {self._steps}, {time.monotonic() - self._began:.1f} s, {_dollars(self._cost)}{said}")

    def _close_line(self) -> None:
        if self._is_line_open:
            click.echo()
            self._is_line_open = False


def _say(line: str) -> None:
    click.echo(line, err=True)
