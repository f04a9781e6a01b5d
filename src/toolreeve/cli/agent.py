"""`toolreeve agent`: runs Toolreeve's own agent in the terminal.

The answer goes to stdout, what happens meanwhile to stderr. Approvals are asked for on the terminal.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliGroup, Options, current, on_terminal
from toolreeve.cli.output import note, print_text
from toolreeve.core import json
from toolreeve.core.errors import ExitStatus, ToolreeveError
from toolreeve.core.visible import one_line, visible

if TYPE_CHECKING:
    from toolreeve.agent.config import BaseAgentConfig
    from toolreeve.agent.conversation import Conversation
    from toolreeve.agent.events import AgentEvent
    from toolreeve.agent.runs import AgentResult
    from toolreeve.runtime.toolreeve import Toolreeve

SHOWN_ARGUMENTS = 100
HELP = "/help  this list\n/cost  tokens and dollars so far\n/new   start a new conversation\n/quit  leave (also ^D)"


@click.group(cls=CliGroup)
def agent() -> None:
    """Run an agent that acts through the tools."""


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--model", metavar="PROVIDER:MODEL", help="The model; agent.model by default."),
        click.option("--base-url", metavar="URL", help="The address of the provider's API."),
        click.option("--max-steps", type=click.IntRange(min=1), help="Maximum number of turns of the model."),
        click.option("--budget", type=click.FloatRange(min=0), metavar="DOLLARS", help="What one run may cost."),
    ):
        command = option(command)
    return command


@agent.command()
@click.argument("task")
@_model_options
def run(task: str, model: str | None, base_url: str | None, max_steps: int | None, budget: float | None) -> int:
    """Do TASK, and print the answer. With --json, print every event as a line."""
    options = current()
    config = _config(options, model, base_url, max_steps, budget)
    return asyncio.run(_run(options, config, task))


@agent.command()
@_model_options
def chat(model: str | None, base_url: str | None, max_steps: int | None, budget: float | None) -> int:
    """Talk with the agent. /help lists the commands; ^C interrupts a run and keeps the conversation."""
    options = current()
    config = _config(options, model, base_url, max_steps, budget)
    return asyncio.run(_chat(options, config))


def _config(
    options: Options, model: str | None, base_url: str | None, max_steps: int | None, budget: float | None
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
    )


async def _run(options: Options, config: "BaseAgentConfig", task: str) -> int:
    from toolreeve.cli.runtime import new_runtime

    async with new_runtime(options) as reeve:
        view = _JsonView() if options.json else _TextView()
        result = await _once(reeve, config, task, view.show)
    if not options.json:
        print_text(result.outcome.text)
        _summarize(result)
    return ExitStatus.OK if result.completed else ExitStatus.TOOL_ERROR


async def _once(
    reeve: "Toolreeve",
    config: "BaseAgentConfig",
    task: str,
    emit: "Callable[[AgentEvent], None]",
    conversation: "Conversation | None" = None,
) -> "AgentResult":
    from toolreeve.agent.conversation import Conversation
    from toolreeve.agent.providers import connect
    from toolreeve.agent.runs import AgentRun
    from toolreeve.agent.signature import Ask
    from toolreeve.agent.tool_host import ReeveTools
    from toolreeve.core.call import new_id

    provider = connect(
        config.llm_provider,
        base_url=config.base_url,
        timeout=config.request_timeout,
        environ=reeve.configuration.known.environ,
    )
    try:
        await reeve.fleet.settled()
        work = AgentRun(
            id=new_id(),
            config=config,
            signature=Ask,
            provider=provider,
            tools=ReeveTools(reeve, reeve.session),
            emit=emit,
            conversation=conversation if conversation is not None else Conversation(),
        )
        return await work.run(task)
    finally:
        await provider.close()


async def _chat(options: Options, config: "BaseAgentConfig") -> int:
    from toolreeve.agent.conversation import Conversation
    from toolreeve.cli.runtime import new_runtime

    view = _TextView(streams=True)
    conversation = Conversation()
    spent = 0.0
    async with new_runtime(options) as reeve:
        while (line := await asyncio.to_thread(_read_line)) is not None:
            match line.strip():
                case "":
                    continue
                case "/quit":
                    break
                case "/help":
                    print_text(HELP)
                case "/cost":
                    print_text(f"${spent:.4f}, {conversation.tokens():,} tokens in the conversation")
                case "/new":
                    conversation = Conversation()
                case text if text.startswith("/"):
                    note(f"unknown command {one_line(text)}; /help lists them")
                case text:
                    result = await _interruptible(_once(reeve, config, text, view.show, conversation))
                    if result is not None:
                        spent += result.outcome.cost
                        _summarize(result)
    return ExitStatus.OK


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
    try:
        return input("> ")
    except EOFError:
        return None


def _summarize(result: "AgentResult") -> None:
    outcome = result.outcome
    tokens = outcome.usage.input + outcome.usage.output
    if not result.completed:
        note(f"stopped ({outcome.stop}): {outcome.why}")
    note(f"{outcome.steps} steps, {len(outcome.tools_used)} tool calls, {tokens:,} tokens, ${outcome.cost:.4f}")


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
                arguments = one_line(json.dumps(data["args"]).decode())
                if len(arguments) > SHOWN_ARGUMENTS:
                    arguments = f"{arguments[:SHOWN_ARGUMENTS]}…"
                click.echo(f"  {data['tool']} {arguments}", err=True)
            case EventKind.TOOL_ENDED if not data["success"]:
                click.echo(f"  {data['tool']} failed: {data.get('error', '')}", err=True)
            case EventKind.COMPACTED:
                click.echo(f"  {data['results']} old results were shortened to save context", err=True)
