"""ACP agents as tools: sessions, failures, governors, and the environment's agent."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.acp.holding import PROGRAM, Person, received, requests, settings_for, write_script
from toolreeve.acp.client.agent_tools import AgentTools
from toolreeve.acp.client.agents import FROM_ENVIRONMENT, read_agents
from toolreeve.config import Settings, from_settings
from toolreeve.config.sections.approval import Approval
from toolreeve.core.errors import ErrorCode
from toolreeve.runtime.toolreeve import Toolreeve


@asynccontextmanager
async def offering(place: Path, person: Person | None = None, **changes: Any) -> AsyncIterator[Toolreeve]:
    configuration = from_settings(replace(settings_for(place, profile="goose", mode=""), **changes))
    agents = AgentTools(list(read_agents(configuration, print).values()))
    reeve = Toolreeve(settings=configuration, approve=person, tools=agents.tools)
    agents.bind(reeve)
    async with reeve:
        yield reeve


def started(place: Path) -> int:
    return [each.get("method") for each in received(place)].count("session/new")


async def test_a_session_of_the_caller_is_a_session_of_the_agent(tmp_path: Path) -> None:
    write_script(tmp_path, {"steps": []})
    async with offering(tmp_path) as reeve:
        first = await reeve.call("agent_test", prompt="one", session="a")
        again = await reeve.call("agent_test", prompt="two", session="a")
        assert started(tmp_path) == 1
        await reeve.call("agent_test", prompt="three", session="b")

    assert first.unwrap() == again.unwrap() == "done"
    assert first.data["stop"] == "end_turn"
    assert started(tmp_path) == 2
    prompts = [each["params"]["prompt"][0]["text"] for each in received(tmp_path) if each["method"] == "session/prompt"]
    assert prompts == ["one", "two", "three"]


async def test_calls_inside_are_recorded_in_the_same_session_and_asked(tmp_path: Path) -> None:
    person = Person(says=True)
    write_script(tmp_path, {"steps": [requests("fs/write_text_file", path="a.txt", content="x")]})
    async with offering(tmp_path, person) as reeve:
        await reeve.call("agent_test", prompt="write", session="a")

    assert [(each.tool, each.session, each.client) for each in person.asked] == [("write_file", "a", "test")]
    assert (tmp_path / "work" / "a.txt").read_text() == "x"


async def test_an_agent_that_crashed_is_started_anew_and_then_left_alone(tmp_path: Path) -> None:
    write_script(tmp_path, {"steps": [{"exit": 3}]})
    async with offering(tmp_path) as reeve:
        results = [await reeve.call("agent_test", prompt="go", session="a") for _ in range(6)]

    codes = [result.error.code for result in results if result.error is not None]
    assert codes == [ErrorCode.TOOL_EXEC] * 5 + [ErrorCode.CIRCUIT_OPEN]
    assert started(tmp_path) == 5


async def test_an_agent_that_ignores_the_end_of_its_call_is_ended(tmp_path: Path) -> None:
    write_script(tmp_path, {"steps": [{"hang": ""}]})
    async with offering(tmp_path) as reeve, asyncio.timeout(60):
        call = asyncio.create_task(reeve.call("agent_test", prompt="go", session="a"))
        for _ in range(3000):
            if (tmp_path / "home" / "received").exists() and received(tmp_path)[-1]["method"] == "session/prompt":
                break
            await asyncio.sleep(0.01)
        call.cancel()
        await asyncio.wait({call})
        write_script(tmp_path, {"steps": []})
        again = await reeve.call("agent_test", prompt="go", session="a")

    assert again.unwrap() == "done"
    assert started(tmp_path) == 2


async def test_output_governors_send_the_agent_back_to_work(tmp_path: Path) -> None:
    check = (
        "import json, sys; body = json.load(sys.stdin); print(json.dumps({'status': 'needs_attention', "
        "'messages': ['no tests'], 'followUpPrompt': 'write tests'}))"
    )
    file = tmp_path / "governors.yaml"
    command = [sys.executable, "-c", check]
    file.write_text(f"output_governors:\n- {{id: tests, type: script, command: {command!r}}}\n")
    write_script(tmp_path, {"steps": []})
    async with offering(tmp_path, approval=Approval(governors_file=str(file))) as reeve:
        await reeve.call("agent_test", prompt="one")

    prompts = [each["params"]["prompt"][0]["text"] for each in received(tmp_path) if each["method"] == "session/prompt"]
    assert prompts == ["one", *["write tests"] * 3]


def test_the_environment_names_an_agent(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "A2A_AGENT_COMMAND": shlex.join([sys.executable, str(PROGRAM)]),
        "A2A_AGENT_API_KEY": "the-key-of-the-model",
        "A2A_AGENT_DESCRIPTION": "Writes code.",
    }
    configuration = from_settings(Settings(), environ=environ, cwd=tmp_path)

    spec = read_agents(configuration, print)[FROM_ENVIRONMENT]

    assert (spec.program.args, spec.description) == ((str(PROGRAM),), "Writes code.")
    assert spec.program.env["A2A_AGENT_API_KEY"] == "the-key-of-the-model"
    assert spec.program.sandbox is not None
    assert spec.program.sandbox["network"] == "none"
