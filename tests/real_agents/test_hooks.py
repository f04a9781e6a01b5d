"""Hooks in the real agents: our policy decides about their own tools, with a scripted model.

`make agents` runs these; they are no part of `make test`.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.real_agents.agents import AGENTS, PROMPT, Place, RealAgent
from tests.real_agents.test_scenarios import is_scenario, last_text
from toolreeve.config.xdg import DATABASE
from toolreeve.record.store import Store
from toolreeve.testing import Reply, ScriptedModel, call, say

CLIENTS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini"}
HOOKED = [agent for agent in AGENTS if agent.name in CLIENTS]
pytestmark = pytest.mark.parametrize("agent", HOOKED, ids=lambda agent: agent.name)


def shell(agent: RealAgent, command: str) -> Reply:
    """A call of the agent's own shell."""
    match agent.name:
        case "claude":
            return call("Bash", command=command, description="do it")
        case "codex":
            return call("exec_command", cmd=command)
        case _:
            return call("run_shell_command", command=command, description="do it")


def arguments(agent: RealAgent, place: Place) -> list[str]:
    """As in the scenarios, with the agent's own shell allowed by itself, and the hook trusted."""
    given = agent.arguments(place)
    match agent.name:
        case "claude":
            given[given.index("mcp__toolreeve")] = "mcp__toolreeve,Bash"
        case "codex":
            given.insert(1, "--dangerously-bypass-hook-trust")
    return given


def run(agent: RealAgent, place: Place, *turns: Reply) -> list[str]:
    """The texts that the model was sent, one per request."""
    with ScriptedModel([*turns, say("done")], only=is_scenario) as model:
        agent.configure(place, model)
        installed = place.toolreeve("hooks", "install", CLIENTS[agent.name])
        assert installed.returncode == 0, installed.stderr
        ended = agent.start(place, model, arguments(agent, place))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(model.requests) == len(turns) + 1, ended.stdout + ended.stderr
    return [last_text(body) for body in model.requests]


def records(place: Place) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = json.loads(place.toolreeve("audit", "list", "--json", "--kind", "call").stdout)
    return [each for each in found if each["origin"] == "hook"]


def test_what_reads_runs_and_is_on_record(agent: RealAgent, place: Place) -> None:
    texts = run(agent, place, shell(agent, "cat notes.txt"))

    assert "the notes of today" in texts[1]
    (record,) = records(place)
    assert record["tool"] == "bash"
    assert asyncio.run(said(place, record["session"])) == [PROMPT]


def test_a_denied_call_does_not_run_and_the_model_reads_why(agent: RealAgent, place: Place) -> None:
    (place.workspace / ".env").write_text("TOKEN=not-for-models\n")
    texts = run(agent, place, shell(agent, "cat .env"))

    assert "not-for-models" not in texts[1]
    assert "toolreeve" in texts[1]


def test_what_needs_a_person_does_not_run_unasked(agent: RealAgent, place: Place) -> None:
    texts = run(agent, place, shell(agent, "rm notes.txt"))

    assert (place.workspace / "notes.txt").exists(), texts[1]
    assert [each["decision"]["effect"] for each in records(place)] == ["ask"]
    if agent.name == "claude":
        return  # it asks its own user
    (question,) = json.loads(place.toolreeve("approvals", "--json").stdout)
    assert question["id"] in texts[1]
    assert place.toolreeve("approvals", "allow", question["id"], "--yes").returncode == 0
    run(agent, place, shell(agent, "rm notes.txt"))
    assert not (place.workspace / "notes.txt").exists(), "the next same call uses the answer"


async def said(place: Place, session: str) -> list[str]:
    """What the hook passed on as the user's words."""
    store = Store(place.home / ".local/state/toolreeve" / DATABASE, read_only=True)
    await store.start()
    try:
        return [fact.value for fact in await store.flow_facts(time.time).find(user="local", session=session)]
    finally:
        await store.close()
