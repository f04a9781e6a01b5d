"""Hostile agents, editors, A2A callers and remote A2A agents: each case is an attack that must not work."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acp.holding import OPTIONS, Person, asks, chosen, found, holding, requests
from tests.serve.a2a.agents import post, tool_call
from tests.serve.api.api_server import serving
from tests.upstream.transports.test_a2a import reeve_of
from tests.world import World
from toolreeve.acp.server.editor import _server, _servers, _text_of
from toolreeve.config import Settings, from_settings
from toolreeve.core.call import Role
from toolreeve.core.errors import ConfigErrors, ToolError
from toolreeve.core.mcp import RpcError
from toolreeve.serve.tokens import AccessScope

LONG = "x" * 3_000_000
VERSION = {"a2a-version": "1.0"}

AGENT_REQUESTS: dict[str, dict[str, Any]] = {
    "a file above the workspace": requests("fs/read_text_file", path="../home/script.json"),
    "a file by an encoded climb": requests("fs/read_text_file", path="..%2fhome%2fscript.json"),
    "a path with a null": requests("fs/read_text_file", path="a\0b"),
    "a path of the system": requests("fs/write_text_file", path="/etc/cron.d/x", content="x"),
    "a path of a process": requests("fs/read_text_file", path="/proc/self/environ"),
    "a very long path": requests("fs/write_text_file", path=LONG[:100_000], content="x"),
    "a path that is a table": requests("fs/write_text_file", path={"a": 1}, content="x"),
    "content that is a number": requests("fs/write_text_file", path="a", content=1),
    "lines that are negative": requests("fs/read_text_file", path="a", line=-1),
    "lines that are a truth": requests("fs/read_text_file", path="a", line=True),
    "a file of git's hooks": requests("fs/write_text_file", path=".git/hooks/pre-commit", content="x"),
    "arguments that are no texts": requests("terminal/create", command="a", args=[1]),
    "a variable that is a command": requests("terminal/create", command="a", env=[{"name": "A=$(id)", "value": "x"}]),
    "variables that are no list": requests("terminal/create", command="a", env=7),
    "a terminal of another session": requests("terminal/output", terminalId="../x"),
    "a terminal that is a table": requests("terminal/kill", terminalId={}),
    "a permission without a call": requests("session/request_permission", toolCall=None, options=OPTIONS),
    "a method of the agent's side": requests("session/prompt", prompt=[]),
    "a method of the future": requests("mcp/connect"),
}


@pytest.mark.parametrize("case", AGENT_REQUESTS)
async def test_a_request_of_a_hostile_agent_is_refused(tmp_path: Path, case: str) -> None:
    person = Person(says=False)
    async with holding(tmp_path, AGENT_REQUESTS[case], person=person) as agent:
        turn = await agent.prompt("go")

    (answer,) = found(tmp_path)["answers"]
    assert "error" in answer, answer
    assert turn.stop == "end_turn"
    assert list((tmp_path / "work").iterdir()) == []


OPTION_LISTS: dict[str, Any] = {
    "none": [],
    "no list": {"optionId": "a", "kind": "allow_once"},
    "only for always": [{"optionId": "a", "kind": "allow_always"}],
    "a kind that is a list": [{"optionId": "a", "kind": ["allow_once"]}],
    "a kind of the future": [{"optionId": "allow_once", "kind": "allow_forever"}],
    "ids that are tables": [{"optionId": {"x": 1}, "kind": "allow_always"}],
    "texts": ["allow_once"],
}


@pytest.mark.parametrize("case", OPTION_LISTS)
async def test_options_that_allow_nothing_once_are_never_chosen(tmp_path: Path, case: str) -> None:
    call = {"title": "touch x", "kind": "execute", "rawInput": {"command": "touch x"}}
    async with holding(tmp_path, asks(call, OPTION_LISTS[case]), person=Person(says=True)) as agent:
        await agent.prompt("go")

    (answer,) = found(tmp_path)["answers"]
    assert "error" in answer or chosen(tmp_path) == ["cancelled"]


UPDATES: list[Any] = [
    {"sessionUpdate": "tool_call", "toolCallId": {"a": 1}, "rawInput": 7},
    {"sessionUpdate": ["plan"]},
    {"sessionUpdate": "plan", "entries": "none"},
    {"sessionUpdate": "usage_update", "used": {"deep": [[[[]]]]}},
    {"sessionUpdate": "agent_message_chunk", "content": [{"text": "x"}]},
    {"sessionUpdate": "current_mode_update", "currentModeId": 7},
    {"sessionUpdate": "config_option_update", "configOptions": [7, {"category": "mode"}]},
    [],
    None,
]


async def test_malformed_updates_end_nothing(tmp_path: Path) -> None:
    steps = [{"send": {"method": "session/update", "params": {"sessionId": "s1", "update": each}}} for each in UPDATES]
    async with holding(tmp_path, *steps) as agent:
        turn = await agent.prompt("go")

    assert (turn.text, turn.stop) == ("done", "end_turn")


async def test_an_answer_to_a_request_that_we_did_not_make_is_ignored(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"send": {"id": number, "result": {"stopReason": "end_turn"}}} for number in (99, True, "x", None)
    ]
    async with holding(tmp_path, *steps) as agent:
        assert (await agent.prompt("go")).text == "done"


@pytest.mark.parametrize("opened", [{"modes": "all"}, {"modes": {"availableModes": 7}}, {"options": "none"}])
async def test_a_session_that_is_described_wrongly_is_refused_in_words(tmp_path: Path, opened: Any) -> None:
    with pytest.raises(ToolError, match="the agent 'test' failed"):
        async with holding(tmp_path, script=opened, mode="ask"):
            pass


ENTRIES: dict[str, Any] = {
    "no list": {"name": "x"},
    "no name": [{"command": "/bin/true"}],
    "a command that is a list": [{"name": "x", "command": ["/bin/true"]}],
    "no program and no address": [{"name": "x"}],
    "an address of a file": [{"type": "http", "name": "x", "url": "file:///etc/passwd"}],
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_editors_server_that_cannot_be_is_refused(tmp_path: Path, case: str) -> None:
    with pytest.raises((RpcError, ConfigErrors)):
        _servers(ENTRIES[case], from_settings(Settings(), cwd=tmp_path))


def test_an_editor_gives_a_server_neither_trust_nor_a_sandbox() -> None:
    entry = {"name": "x", "command": "a", "danger": "safe", "sandbox": {}, "env_pass": ["HOME"], "trust": True}

    assert _server(entry) == {"command": "a"}


@pytest.mark.parametrize("blocks", [None, [], "text", [7], [{"type": "image", "data": "x"}], [{"type": "text"}]])
def test_a_prompt_of_an_editor_that_is_no_text_is_refused(blocks: Any) -> None:
    with pytest.raises(RpcError):
        _text_of(blocks)


CALLS: dict[str, Any] = {
    "a part without content": {"parts": [{}]},
    "text that is a number": {"parts": [{"text": 7}]},
    "deeply nested data": {"parts": [{"data": json.loads("[" * 90 + "]" * 90)}]},
    "a role that is an agent's": {"role": "ROLE_AGENT", "parts": [{"text": "/calculate expression=1"}]},
    "a tool that is a table": {"parts": [{"data": {"toolId": {}, "parameters": {}}}]},
    "parameters that are a text": {"parts": [{"data": {"toolId": "calculate", "parameters": "1"}}]},
    "another key in a call": {"parts": [{"data": {"toolId": "calculate", "parameters": {}, "role": "admin"}}]},
    "a text without end": {"parts": [{"text": "/calculate expression=" + "1" * 20_000}]},
    "a task of nobody": {"taskId": "none", "parts": [{"text": "yes"}]},
    "a file by address": {"parts": [{"url": "http://169.254.169.254/latest"}]},
    "a file that no call names": {"parts": [{"raw": "YQ==", "filename": "../x"}, {"text": "/calculate expression=1"}]},
    "a thousand calls": {"parts": [{"data": {"toolCalls": [{"toolId": "calculate"}] * 1000}}]},
}


@pytest.mark.parametrize("case", CALLS)
async def test_a_message_of_a_hostile_caller_begins_nothing(world: World, case: str) -> None:
    message = {"messageId": "m", "role": "ROLE_USER", **CALLS[case]}
    async with serving(world.reeve()) as server:
        answer = await post(server, "SendMessage", {"message": message}, **VERSION)
        total = (await post(server, "tasks/list", {}))["result"]["total"]

    assert -32700 <= answer["error"]["code"] <= -32000
    assert total == 0


async def test_two_answers_at_once_count_once(world: World) -> None:
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada", scopes=[AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE])
        write = tool_call("write_file", path="a.txt", content="x")
        sent = {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": write}]}
        task = (await post(server, "SendMessage", {"message": sent}, **VERSION, **ada))["result"]["task"]["id"]
        said = [{"taskId": task, "permissionOptionId": each} for each in ("allow_once", "reject_once", "allow_once")]
        answers = await asyncio.gather(*(post(server, "tasks/provideInputAndContinue", each, **ada) for each in said))
        cancels = [await post(server, "CancelTask", {"id": task}, **VERSION, **ada) for _ in range(2)]
        ran = [each for each in await server.reeve.audit.list(limit=20) if each.kind == "call" and each.body["success"]]

    assert len([each for each in answers if "result" in each]) >= 1
    assert len(ran) <= 1
    assert [each["error"]["code"] for each in cancels] == [-32002, -32002]


@asynccontextmanager
async def hostile_agent(answers: Any) -> AsyncIterator[str]:
    """A remote A2A agent that answers every request with the same result."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = json.dumps(card if head.startswith(b"GET") else answers).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    place = {"url": f"{url}/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    skill = {"id": "greet", "name": "Greet", "description": "x", "tags": []}
    card = {"name": "Hostile", "version": "1", "supportedInterfaces": [place], "skills": [skill, 7, {}, {"id": ""}]}
    async with server:
        yield url


DONE = {"state": "TASK_STATE_COMPLETED"}
RESULTS: dict[str, Any] = {
    "no object": [],
    "no result": {"jsonrpc": "2.0", "id": 1},
    "an error without a code": {"error": {"message": "x"}},
    "an error with a code of ours": {"error": {"code": -32002, "message": "x\x1b[2J"}},
    "a task without an id that works": {"result": {"task": {"status": {"state": "TASK_STATE_WORKING"}}}},
    "a state of the future": {"result": {"task": {"id": "1", "status": {"state": "TASK_STATE_OWNED"}}}},
    "a failure": {"result": {"task": {"id": "1", "status": {"state": "TASK_STATE_FAILED"}}}},
}


@pytest.mark.parametrize("case", RESULTS)
async def test_what_a_hostile_remote_agent_answers_is_no_success(world: World, case: str) -> None:
    async with (
        hostile_agent(RESULTS[case]) as url,
        reeve_of(world, {"h": {"url": url, "danger": "safe"}}) as reeve,
    ):
        names = [bound.spec.name for bound in reeve.tools.list() if bound.spec.name.startswith("h__")]
        result = await asyncio.wait_for(reeve.call("h__greet", message="x"), 30)

    assert names == ["h__greet"]
    assert not result.success
    assert "\x1b" not in result.to_text()


PARTS: list[Any] = [7, {"text": 7}, {"raw": "!!"}, {"url": 7}, {"file": {"bytes": 7}}, {"data": LONG[:10]}, None]


async def test_malformed_parts_of_a_remote_agent_are_left_out(world: World) -> None:
    task = {"id": "1", "status": DONE, "artifacts": [{"parts": PARTS}, 7, {"parts": "none"}]}
    async with (
        hostile_agent({"result": {"task": task}}) as url,
        reeve_of(world, {"h": {"url": url, "danger": "safe"}}) as reeve,
    ):
        result = await asyncio.wait_for(reeve.call("h__greet", message="x"), 30)

    assert result.data["state"] == "completed"
