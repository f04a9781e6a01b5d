"""Tools over REST: listed by credential, called on the road, failures as problem details."""

import asyncio
import json

import pytest

from tests.serve.api.api_server import PROBLEM, read_events, serving
from tests.serve.mcp.http_server import Sleeper
from tests.world import World
from toolreeve.config.sections.policy import Policy
from toolreeve.core.call import Role


async def test_a_call_returns_the_result_of_the_road_and_is_recorded(world: World) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.call("calculate", {"expression": "6 * 7"})
        (record,) = await server.reeve.audit.recent(last_n=5, filters={})

    result = answer.json()
    assert (answer.status_code, result["success"], result["data"]["result"]) == (200, True, 42)
    assert (record["call_id"], record["origin"], record["tool"]) == (result["meta"]["call_id"], "http", "calculate")


@pytest.mark.parametrize(
    ("tool", "args", "status", "code"),
    [
        ("read_file", {"path": "missing.txt"}, 422, "E_FILE_NOT_FOUND"),
        ("read_file", {"path": "/etc/shadow"}, 403, "E_PATH_FORBIDDEN"),
        ("read_file", {"file": "x"}, 422, "E_INVALID_PARAMS"),
        ("calculate", {"expression": "9**9**9"}, 422, "E_CALC_ERROR"),
        ("reed_file", {"path": "x"}, 404, "E_TOOL_NOT_FOUND"),
    ],
)
async def test_a_failed_call_is_problem_details_with_its_code(
    world: World, tool: str, args: dict[str, str], status: int, code: str
) -> None:
    async with serving(world.reeve()) as server:
        answer = await server.call(tool, args)

    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert (problem["status"], problem["code"], bool(problem["detail"])) == (status, code, True)
    assert {"title", "type", "recoverable", "suggestions"} <= problem.keys()


async def test_a_token_sees_and_calls_its_own_tools_only(world: World) -> None:
    async with serving(world.reeve()) as server:
        own = await server.token(Role.OPERATOR, tools=("calculate",))
        listed = (await server.client.get("/api/v1/tools", headers=own)).json()
        shown = await server.client.get("/api/v1/tools/read_file", headers=own)
        called = await server.call("read_file", {"path": "x"}, headers=own)

    assert [each["name"] for each in listed["tools"]] == ["calculate"]
    assert (shown.status_code, called.status_code) == (404, 404)


async def test_a_tool_is_shown_with_its_schema_and_filters_narrow_the_list(world: World) -> None:
    async with serving(world.reeve()) as server:
        shown = (await server.client.get("/api/v1/tools/fs/read_text_file")).json()
        safe = (await server.client.get("/api/v1/tools?danger=safe&category=file")).json()["tools"]

    assert (shown["name"], shown["input_schema"]["required"], shown["tokens"] > 10) == ("read_file", ["path"], True)
    assert {(each["danger"], each["category"]) for each in safe} == {("safe", "file")}


async def test_a_call_in_the_background_is_answered_at_once_and_can_be_cancelled(world: World) -> None:
    sleeper = Sleeper()
    async with serving(world.reeve(tools=[sleeper.tool()])) as server:
        answer = await server.call("sleep", {}, headers={"prefer": "respond-async"})
        await sleeper.runs.wait()
        accepted = answer.json()
        cancelled = await server.client.post(f"{accepted['url']}/cancel")
        await sleeper.ended.wait()
        again = await server.client.post(f"{accepted['url']}/cancel")
        shown = await server.client.get(accepted["url"])

    assert (answer.status_code, answer.headers["location"]) == (202, accepted["url"])
    assert (cancelled.json(), again.status_code) == ({"call_id": accepted["call_id"], "cancelled": True}, 409)
    assert (shown.json()["code"], shown.json()["result"]["success"]) == ("E_CANCELLED", False)


async def test_a_stream_has_the_progress_of_a_call_and_its_result(world: World) -> None:
    async with serving(world.reeve(settings=world.settings(policy=Policy(mode="bypass")))) as server:
        headers = {"accept": "text/event-stream"}
        body = {"args": {"command": "echo one; echo two"}}
        async with server.client.stream("POST", "/api/v1/tools/bash/call", json=body, headers=headers) as answer:
            found = [each async for each in read_events(answer.aiter_lines())]

    assert [found[0]["event"], found[-1]["event"]] == ["started", "result"]
    assert "one" in "".join(each["data"] for each in found if each["event"] == "progress")
    assert json.loads(found[-1]["data"])["data"]["stdout"] == "one\ntwo\n"


async def test_a_client_that_leaves_its_stream_cancels_the_call(world: World) -> None:
    sleeper = Sleeper()
    async with serving(world.reeve(tools=[sleeper.tool()])) as server:
        headers = {"accept": "text/event-stream"}
        async with server.client.stream("POST", "/api/v1/tools/sleep/call", json={}, headers=headers):
            await sleeper.runs.wait()
        await sleeper.ended.wait()
        for _ in range(400):
            if recorded := await server.reeve.audit.recent(last_n=5, filters={}):
                break
            await asyncio.sleep(0.01)

    assert [(each["tool"], each["code"]) for each in recorded] == [("sleep", "E_CANCELLED")]


async def test_a_batch_keeps_the_order_and_a_chain_hands_results_on(world: World) -> None:
    (world.workspace / "name.txt").write_text("6 * 7")
    calls = [{"tool": "calculate", "args": {"expression": "1/0"}}, {"tool": "calculate", "args": {"expression": "2"}}]
    steps = [
        {"tool": "read_file", "args": {"path": "name.txt"}},
        {"tool": "calculate", "args": {"expression": "{{previous.content}}"}},
    ]
    async with serving(world.reeve()) as server:
        batch = (await server.client.post("/api/v1/batch", json={"calls": calls})).json()["results"]
        chain = (await server.client.post("/api/v1/chain", json={"steps": steps})).json()["results"]
        unknown = await server.client.post("/api/v1/batch", json={"calls": [*calls, {"tool": "nope"}]})
        records = await server.reeve.audit.recent(last_n=10, filters={})

    assert [each["success"] for each in batch] == [False, True]
    assert chain[-1]["data"]["result"] == 42
    assert (unknown.status_code, len(records)) == (404, 4)
