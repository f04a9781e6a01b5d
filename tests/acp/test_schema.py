"""Every frame that we send to an agent is valid by the published schema of ACP."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.acp.holding import Person, asks, holding, received, requests, settings_for, write_script
from tests.conformance.suite import fetch_peers
from tests.peers.programs import PEERS
from toolreeve.acp.client.agents import find_agent
from toolreeve.acp.client.held_agent import hold_agent
from toolreeve.runtime.toolreeve import Toolreeve


class Schema:
    """The definitions by method: what a side may be sent, and what it answers."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._names = {
            (each["x-method"], name.removesuffix("Response") != name): name
            for name, each in document["$defs"].items()
            if "x-method" in each
        }

    def check(self, method: str, value: Any, *, answer: bool = False) -> None:
        name = self._names[method, answer]
        schema = {**self._document, "$ref": f"#/$defs/{name}"}
        schema.pop("anyOf", None)
        jsonschema_rs.validate(schema, value)


@pytest.fixture(scope="session")
def schema() -> Schema:
    fetch_peers()
    file = PEERS / "node_modules" / "@agentclientprotocol" / "sdk" / "schema" / "schema.json"
    return Schema(json.loads(file.read_text()))


async def test_every_frame_to_an_agent_is_valid(tmp_path: Path, schema: Schema) -> None:
    modes = {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "a"}, {"id": "ask", "name": "b"}]}
    work = tmp_path / "work"
    steps = [
        requests("fs/write_text_file", path=str(work / "a"), content="x"),
        requests("fs/read_text_file", path=str(work / "a")),
        requests("fs/read_text_file", path=str(work / "none")),
        requests("terminal/create", command="echo x"),
        requests("terminal/output", terminalId="$terminal"),
        requests("terminal/wait_for_exit", terminalId="$terminal"),
        requests("terminal/output", terminalId="$terminal"),
        requests("terminal/kill", terminalId="$terminal"),
        requests("terminal/release", terminalId="$terminal"),
        requests("terminal/kill", terminalId="none"),
        asks({"title": "t", "rawInput": {"command": "touch y"}}),
        asks({"title": "t", "rawInput": {"command": "touch y"}}, []),
    ]
    async with holding(
        tmp_path, *steps, person=Person(says=True), script={"modes": modes}, mode="ask", tools=True
    ) as agent:
        await agent.prompt("go")
        agent.cancel()
        await agent.prompt("again")

    check_frames(tmp_path, schema, [step["request"]["method"] for step in steps])
    sent = {frame.get("method") for frame in received(tmp_path)}
    assert {"initialize", "session/new", "session/set_mode", "session/prompt", "session/cancel"} <= sent


def check_frames(place: Path, schema: Schema, methods: Sequence[str]) -> None:
    """`methods` are those of the agent's own requests, in their order."""
    for frame in received(place):
        if "method" in frame:
            schema.check(frame["method"], frame["params"])
        elif "result" in frame:
            schema.check(methods[int(frame["id"][1:])], frame["result"], answer=True)
        else:
            assert set(frame["error"]) <= {"code", "message", "data"}


async def test_the_frames_that_load_a_session_and_choose_its_options_are_valid(tmp_path: Path, schema: Schema) -> None:
    values = [{"value": "auto", "name": "Auto"}, {"value": "ask", "name": "Ask"}]
    option = {"id": "approvals", "category": "mode", "type": "select", "currentValue": "auto", "options": values}
    async with holding(tmp_path, script={"options": [option]}, mode="ask"):
        pass
    write_script(tmp_path, {"steps": [], "loads": True})
    async with (
        Toolreeve(settings=settings_for(tmp_path)) as reeve,
        hold_agent(reeve, find_agent(reeve.configuration, "test"), earlier="s1"),
    ):
        pass

    check_frames(tmp_path, schema, [])
    sent = {frame.get("method") for frame in received(tmp_path)}
    assert {"session/load", "session/set_config_option"} <= sent
