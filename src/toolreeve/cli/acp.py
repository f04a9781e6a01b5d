"""`toolreeve acp`: our agent in editors, and ACP agents held here.

The answer goes to stdout, what happens meanwhile to stderr. Approvals are asked for on the terminal.
"""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.core.errors import ConfigError, ExitStatus, ToolreeveError
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.acp.client.turn import AgentTurn
    from toolreeve.agent.config import BaseAgentConfig
    from toolreeve.config import Configuration
    from toolreeve.serve.mcp.pipes import Pipes

SHOWN_TITLE = 100


@click.group(cls=CliGroup, invoke_without_command=True)
@click.option("--model", metavar="PROVIDER:MODEL", help="The model of our agent; agent.model by default.")
@click.option("--base-url", metavar="URL", help="The address of the provider's API.")
@click.pass_context
def acp(context: click.Context, model: str | None, base_url: str | None) -> None:
    """Serve our own agent to an editor over the Agent Client Protocol (ACP), or run other agents that speak it.

    Without a command, serves the editor on stdin and stdout.
    """
    if context.invoked_subcommand is not None:
        return
    from toolreeve.agent.errors import ModelError
    from toolreeve.agent.providers import find_key
    from toolreeve.cli.agent import agent_config
    from toolreeve.serve.mcp.pipes import claim
    from toolreeve.serve.mcp.stdio import run as run_loop

    pipes = claim()
    options = current()
    config = agent_config(options, model=model, base_url=base_url, max_steps=None, budget=None, phases=False)
    try:
        find_key(config.llm_provider, config.api_key, options.configuration().known.environ)
    except ModelError as problem:
        raise ToolreeveError(str(problem)) from None
    run_loop(_serve(options, pipes, config))


async def _serve(options: Options, pipes: "Pipes", config: "BaseAgentConfig") -> None:
    from toolreeve.acp.server.editor import EditorDoor
    from toolreeve.config import load

    def configure(folder: str) -> "Configuration":
        return load({"workspace.dir": folder, "policy.mode": options.mode}, origin="editor")

    door = EditorDoor(pipes, configure, config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, door.finished.set)
    try:
        await door.finished.wait()
    finally:
        await door.close()


@acp.command("list")
def list_agents() -> int:
    """List the configured agents, and what keeps others from working."""
    from toolreeve.acp.client.agents import read_agents

    options = current()
    problems: list[ConfigError] = []
    agents = read_agents(options.configuration(), problems.append)
    if options.json:
        print_json([{"name": each.name, "command": each.program.place, "mode": each.mode} for each in agents.values()])
    elif agents:
        cells = [(each.name, each.mode or "-", each.program.place) for each in agents.values()]
        print_table(options, ("agent", "asks in mode", "command"), cells)
    elif not problems:
        note("no agents yet: add [acp_agents.NAME] to your toolreeve.toml (`toolreeve config path` shows where)")
    for problem in problems:
        note(str(problem))
    return ExitStatus.TOOL_ERROR if problems else ExitStatus.OK


@acp.command()
@click.argument("agent")
@click.argument("prompt")
def run(agent: str, prompt: str) -> int:
    """Send PROMPT to AGENT, and print its answer. With --json, print its updates and the turn, a line each."""
    options = current()
    turn = asyncio.run(_run(options, agent, prompt))
    if options.json:
        print_json({name: value for name, value in asdict(turn).items() if not name.startswith("_")})
    else:
        print_text(turn.text.strip())
        for refusal in turn.refusals:
            note(f"refused: {one_line(refusal)}")
    return ExitStatus.OK if turn.stop == "end_turn" else ExitStatus.TOOL_ERROR


async def _run(options: Options, agent: str, prompt: str) -> "AgentTurn":
    from toolreeve.acp.client.agents import find_agent
    from toolreeve.acp.client.held_agent import hold_agent
    from toolreeve.cli.runtime import new_runtime

    spec = find_agent(options.configuration(), agent)
    async with (
        new_runtime(options) as reeve,
        hold_agent(reeve, spec, on_update=print_json if options.json else _show) as held,
    ):
        await reeve.say(prompt)
        return await held.prompt(prompt)


def _show(update: Mapping[str, Any]) -> None:
    if update.get("sessionUpdate") == "tool_call":
        note(f"→ {one_line(str(update.get('title', '')))[:SHOWN_TITLE]}")
