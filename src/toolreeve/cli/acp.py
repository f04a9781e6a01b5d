"""`toolreeve acp`: holds agents that speak the Agent Client Protocol.

The answer goes to stdout, what happens meanwhile to stderr. Approvals are asked for on the terminal.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from toolreeve.cli.options import CliGroup, Options, current
from toolreeve.cli.output import note, print_json, print_table, print_text
from toolreeve.core.errors import ExitStatus
from toolreeve.core.visible import one_line

if TYPE_CHECKING:
    from toolreeve.acp.client.turn import AgentTurn

SHOWN_TITLE = 100


@click.group(cls=CliGroup)
def acp() -> None:
    """Run agents that speak the Agent Client Protocol (ACP) in the sandbox."""


@acp.command("list")
def list_agents() -> int:
    """List the configured agents."""
    from toolreeve.acp.client.agents import read_agents

    options = current()
    agents = read_agents(options.configuration())
    if options.json:
        print_json([{"name": each.name, "command": each.program.place, "mode": each.mode} for each in agents.values()])
    elif agents:
        cells = [(each.name, each.mode or "-", each.program.place) for each in agents.values()]
        print_table(options, ("agent", "asks in mode", "command"), cells)
    else:
        note("no agents yet: add [acp_agents.NAME] to toolreeve.toml")
    return ExitStatus.OK


@acp.command()
@click.argument("agent")
@click.argument("prompt")
def run(agent: str, prompt: str) -> int:
    """Send PROMPT to AGENT, and print its answer. With --json, print its updates and the turn, a line each."""
    options = current()
    turn = asyncio.run(_run(options, agent, prompt))
    if options.json:
        print_json(asdict(turn))
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
        return await held.prompt(prompt)


def _show(update: Mapping[str, Any]) -> None:
    if update.get("sessionUpdate") == "tool_call":
        note(f"→ {one_line(str(update.get('title', '')))[:SHOWN_TITLE]}")
