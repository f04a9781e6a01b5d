"""Methods of ours besides those of the specification, as they are sent."""

from typing import Any

import pytest

from tests.serve.a2a.agents import connected, post, send, tool_call
from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.tokens import AccessScope

WRITE = tool_call("write_file", path="a.txt", content="written")


async def test_commands_are_the_tools_that_the_caller_may_use(world: World) -> None:
    async with serving(world.reeve()) as server:
        everything = await post(server, "commands/get", {})
        viewer = await server.token(Role.VIEWER)
        shown = await post(server, "commands/get", {}, **viewer)

    commands = {each["name"]: each for each in everything["result"]["commands"]}
    (argument,) = [each for each in commands["calculate"]["arguments"] if each["name"] == "expression"]
    assert argument["isRequired"] is True
    names = {each["name"] for each in shown["result"]["commands"]}
    assert "read_file" in names
    assert "write_file" not in names


@pytest.mark.parametrize(
    "params",
    [
        {"command": "/calculate", "parameters": {"expression": "6 * 7"}},
        {"commandPath": ["calculate"], "args": "expression='6 * 7'"},
    ],
    ids=["parameters", "text"],
)
async def test_a_command_is_a_call_on_the_road(world: World, params: dict[str, Any]) -> None:
    async with serving(world.reeve()) as server:
        done = await post(server, "command/execute", params)
        asked = await post(
            server, "command/execute", {"command": "write_file", "parameters": {"path": "a", "content": ""}}
        )
        records = await server.reeve.audit.list(limit=10)

    result = done["result"]
    assert (result["status"], result["task"]["id"]) == ("STARTED", result["executionId"])
    assert result["task"]["artifacts"][0]["parts"][0]["text"] == "42"
    assert asked["result"]["status"] == "AWAITING_ACTION_CONFIRMATION"
    assert {each.body.get("origin") for each in records if each.kind == "call"} == {"a2a"}


BAD = [
    ("command/execute", {"command": "nothing"}, "no tool is called"),
    ("command/execute", {"commandPath": ["a", "b"]}, "commandPath"),
    ("command/execute", {"commandPath": ["calculate"], "command": "calculate"}, "commandPath"),
    ("command/execute", {"command": 1}, "command must be a text"),
    ("command/execute", {"command": "calculate", "parameters": []}, "object"),
    ("commands/get", {"all": True}, "unknown parameter"),
    ("commands/get", [], "params must be an object"),
    ("tasks/list", {"limit": 1000}, "limit"),
    ("tasks/list", {"offset": -1}, "offset"),
    ("governor/history", {"limit": "1"}, "limit"),
    ("tasks/getInputRequired", {}, "taskId"),
]


@pytest.mark.parametrize(("method", "params", "said"), BAD, ids=range(len(BAD)))
async def test_wrong_parameters_are_named(world: World, method: str, params: Any, said: str) -> None:
    async with serving(world.reeve()) as server:
        answer = await post(server, method, params, **await server.token(Role.ADMIN, scopes=tuple(AccessScope)))

    assert answer["error"]["code"] == -32602
    assert said in answer["error"]["message"]


async def test_history_shows_what_was_decided_to_those_who_may_approve(world: World) -> None:
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada", scopes=(AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE))
        bob = await server.token(Role.OPERATOR, "bob")
        async with connected(server, ada) as client:
            asked = await send(client, WRITE)
            await send(client, "no", task_id=asked.id)
        history = await post(server, "governor/history", {"limit": 5}, **ada)
        refused = await post(server, "governor/history", {}, **bob)

    (decision,) = history["result"]["permissionDecisions"]
    assert (decision["optionId"], decision["source"]) == ("deny", "person:ada via a2a")
    assert history["result"]["pendingPermissions"] == []
    assert "scope 'approve'" in refused["error"]["message"]
