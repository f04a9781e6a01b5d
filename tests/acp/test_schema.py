"""Every frame that we send to an agent is valid by the published schema of ACP."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.acp.holding import Person, asks, holding, received, requests
from tests.conformance.suite import fetch_peers
from tests.peers.programs import PEERS


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
        requests("terminal/create", command="true"),
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

    methods = [step["request"]["method"] for step in steps]
    frames = received(tmp_path)
    for frame in frames:
        if "method" in frame:
            schema.check(frame["method"], frame["params"])
        elif "result" in frame:
            schema.check(methods[int(frame["id"][1:])], frame["result"], answer=True)
        else:
            assert set(frame["error"]) <= {"code", "message", "data"}
    sent = {frame.get("method") for frame in frames}
    assert {"initialize", "session/new", "session/set_mode", "session/prompt", "session/cancel"} <= sent


async def test_the_frames_of_terminals_are_valid(tmp_path: Path, schema: Schema) -> None:
    async with holding(tmp_path, requests("terminal/create", command="echo x"), person=Person(says=True)) as agent:
        await agent.prompt("go")
        number = next(iter(agent._terminals._terminals))
        params = {"terminalId": number}
        schema.check("terminal/wait_for_exit", await agent._terminals.wait_for_exit(params), answer=True)
        schema.check("terminal/output", await agent._terminals.output(params), answer=True)
        schema.check("terminal/release", await agent._terminals.release(params), answer=True)
