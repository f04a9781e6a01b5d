"""MCP over HTTP, with clients of both eras and with attackers."""

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_types import ElicitResult, ToolListChangedNotification

from tests.serve.mcp.http_server import HEADERS, HttpTestServer, Sleeper, request, serving
from tests.world import World
from toolreeve import DangerLevel, tool
from toolreeve.config import Policy
from toolreeve.core.result import Output
from toolreeve.serve.mcp.door import new_view
from toolreeve.serve.mcp.http import MAX_VIEWS, ToolViews
from toolreeve.serve.tokens import ANONYMOUS

ADA = {"token": "ada-comes-in-with-this", "user": "ada", "role": "operator"}
BOB = {"token": "bob-comes-in-with-this", "user": "bob", "role": "viewer"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
LEGACY = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
CAN_ELICIT: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}
ODD = {
    "content": [{"type": "hologram", "data": "?", "nothing": None}],
    "structuredContent": {"large": 2**70, "empty": None},
    "isError": False,
    "unknownField": {"kept": True},
    "_meta": {"upstream/key": 1},
}


@tool(danger=DangerLevel.SAFE)
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(danger=DangerLevel.HIGH)
def erase(text: str) -> str:
    """Do something that must be asked about."""
    return f"erased {text}"


@tool(danger=DangerLevel.SAFE)
def odd() -> Output:
    """Answer in a shape that no model of the protocol knows."""
    return Output(data={}, raw=ODD)


def bearer(token: dict[str, str]) -> dict[str, str]:
    return {"authorization": f"Bearer {token['token']}"}


@asynccontextmanager
async def connected(server: HttpTestServer, mode: Any, **options: Any) -> AsyncIterator[Client]:
    async with Client(server.url, mode=mode, **options) as client:
        yield client


async def open_session(server: HttpTestServer, headers: dict[str, str] | None = None) -> str:
    said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    answer = await server.client.post(server.url, json=said, headers=LEGACY | (headers or {}))
    return str(answer.headers["mcp-session-id"])


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
async def test_the_sdks_client_lists_and_calls_in_every_era(world: World, mode: Any) -> None:
    async with serving(world.reeve(tools=[echo])) as server, connected(server, mode) as client:
        listed = await client.list_tools()
        result = await client.call_tool("echo", {"text": "hello"})

    assert {"echo", "read_file", "bash"} <= {each.name for each in listed.tools}
    assert result.structured_content == {"output": "hello"}


async def test_a_call_takes_the_road_and_is_on_record(world: World) -> None:
    async with serving(world.reeve(tools=[echo])) as server:
        await server.call("echo", text="hello")
        (record,) = await server.reeve.audit.recent(last_n=1, filters={"tool": "echo"})

    assert record["origin"] == "mcp"


async def test_what_no_model_knows_passes_unharmed_the_short_way_and_the_long_way(world: World) -> None:
    async with serving(world.reeve(tools=[odd])) as server:
        short = await server.ask("tools/call", {"name": "odd"})
        long = await server.ask("tools/call", {"name": "odd"}, meta={"progressToken": 1})
        session = await open_session(server)
        said = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "odd"}}
        legacy = await server.client.post(server.url, json=said, headers=LEGACY | {"mcp-session-id": session})

    events = [line for line in legacy.text.splitlines() if line.startswith("data: {")]
    assert json.loads(events[0][6:])["result"] == ODD
    assert short.json() == long.json()
    kept = short.json()["result"]
    assert {key: kept[key] for key in ODD if key != "_meta"} == {key: ODD[key] for key in ODD if key != "_meta"}
    assert kept["_meta"]["upstream/key"] == 1


@pytest.mark.parametrize("meta", [{}, {"progressToken": 1}], ids=["short", "long"])
async def test_an_answer_that_is_nested_too_deeply_is_an_error_and_no_crash(world: World, meta: dict[str, Any]) -> None:
    well: dict[str, Any] = {}
    for _ in range(2000):
        well = {"deeper": well}

    @tool(danger=DangerLevel.SAFE)
    def dig() -> Output:
        """Answer as a hostile server might."""
        return Output(data={}, raw={"content": [], "structuredContent": well})

    async with serving(world.reeve(tools=[dig, echo])) as server:
        deep = await server.ask("tools/call", {"name": "dig"}, meta=meta)
        session = await open_session(server)
        said = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "dig"}}
        legacy = await server.client.post(server.url, json=said, headers=LEGACY | {"mcp-session-id": session})
        after = await server.call("echo", text="still here")

    assert "nested too deeply" in deep.json()["error"]["message"]
    assert "nested too deeply" in legacy.text
    assert after["structuredContent"] == {"output": "still here"}


async def test_a_client_that_goes_away_takes_its_call_with_it(world: World) -> None:
    sleeper = Sleeper()
    async with serving(world.reeve(tools=[sleeper.tool()])) as server:
        waiting = asyncio.create_task(server.ask("tools/call", {"name": "sleep"}))
        await asyncio.wait_for(sleeper.runs.wait(), 10)
        waiting.cancel()
        await asyncio.wait_for(sleeper.ended.wait(), 10)

    async with world.reeve() as later:
        (record,) = await later.audit.recent(last_n=1, filters={"tool": "sleep"})
    assert record["code"] == "E_CANCELLED"


async def test_a_cancelled_request_of_the_legacy_era_ends_its_call(world: World) -> None:
    sleeper = Sleeper()
    async with serving(world.reeve(tools=[sleeper.tool()])) as server, connected(server, "legacy") as client:
        waiting = asyncio.create_task(client.call_tool("sleep", {}))
        await asyncio.wait_for(sleeper.runs.wait(), 10)
        waiting.cancel()

        await asyncio.wait_for(sleeper.ended.wait(), 10)


async def test_a_long_call_is_kept_alive_by_a_stream_and_answered_in_it(world: World) -> None:
    woken = asyncio.Event()

    @tool(danger=DangerLevel.SAFE)
    async def doze() -> str:
        """Wait until woken."""
        await woken.wait()
        return "woken"

    async with serving(world.reeve(tools=[doze]), keepalive=0.05) as server:
        headers = HEADERS | {"mcp-method": "tools/call", "mcp-name": "doze"}
        said = request("tools/call", {"name": "doze"})
        async with server.client.stream("POST", server.url, json=said, headers=headers) as answer:
            lines = answer.aiter_lines()
            assert answer.headers["content-type"] == "text/event-stream"
            assert (await anext(lines)).startswith(":")
            woken.set()
            data = [line async for line in lines if line.startswith("data:")]

    assert json.loads(data[-1][5:])["result"]["structuredContent"] == {"output": "woken"}


@pytest.mark.parametrize("name", ["echo", "nothing-such"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
async def test_a_page_that_rebinds_its_name_to_us_gets_nowhere(
    world: World, name: str, headers: dict[str, str], status: int
) -> None:
    ran: list[str] = []

    @tool(name="echo", danger=DangerLevel.SAFE)
    def watched(text: str) -> str:
        """Say it again."""
        ran.append(text)
        return text

    async with serving(world.reeve(tools=[watched])) as server:
        answer = await server.ask("tools/call", {"name": name, "arguments": {"text": "x"}}, headers=headers)

    assert (answer.status_code, ran) == (status, [])


async def test_without_a_token_a_request_is_refused_with_the_scheme(world: World) -> None:
    async with serving(world.reeve(tools=[echo]), tokens=[ADA]) as server:
        bare = await server.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        wrong = await server.ask("tools/list", headers={"authorization": "Bearer guessed-guessed-guessed"})
        right = await server.ask("tools/call", {"name": "echo", "arguments": {"text": "x"}}, headers=bearer(ADA))

    assert [bare.status_code, wrong.status_code, right.status_code] == [401, 401, 200]
    assert "Bearer" in bare.headers["www-authenticate"]
    assert "invalid_token" in wrong.headers["www-authenticate"]


async def test_each_token_sees_and_calls_only_its_own_tools(world: World) -> None:
    narrow = ADA | {"tools": ["echo", "file", "-delete_file"]}
    settings = world.settings(policy=Policy(allowed_tools=("*",)))
    async with serving(world.reeve(tools=[echo, erase], settings=settings), tokens=[narrow, BOB]) as server:
        mine = (await server.ask("tools/list", headers=bearer(ADA))).json()["result"]["tools"]
        his = (await server.ask("tools/list", meta=CAN_ELICIT, headers=bearer(BOB))).json()["result"]["tools"]
        unseen = [
            await server.ask("tools/call", {"name": name, "arguments": {"text": "x"}}, headers=bearer(who))
            for name, who in (("erase", ADA), ("delete_file", ADA), ("erase", BOB))
        ]

    names = {each["name"] for each in mine}
    assert "echo" in names
    assert "write_file" in names
    assert not names & {"erase", "delete_file", "bash"}
    assert all(each["annotations"]["readOnlyHint"] for each in his)
    assert [each.json()["error"]["message"][:13] for each in unseen] == ["Unknown tool:"] * 3


async def test_a_token_never_widens_what_the_door_shows(world: World) -> None:
    async with serving(world.reeve(tools=[echo, erase]), tokens=[ADA | {"tools": ["*"]}], tools="echo") as server:
        listed = (await server.ask("tools/list", meta=CAN_ELICIT, headers=bearer(ADA))).json()["result"]["tools"]

    assert [each["name"] for each in listed] == ["echo"]


async def test_a_session_is_of_no_use_to_another_token(world: World) -> None:
    said = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    async with serving(world.reeve(), tokens=[ADA, BOB]) as server:
        session = {"mcp-session-id": await open_session(server, bearer(ADA))}
        stolen = [
            await server.client.post(server.url, json=said, headers=LEGACY | session | bearer(BOB)),
            await server.client.get(server.url, headers=LEGACY | session | bearer(BOB)),
            await server.client.delete(server.url, headers=LEGACY | session | bearer(BOB)),
        ]
        own = await server.client.post(server.url, json=said, headers=LEGACY | session | bearer(ADA))

    assert [each.status_code for each in stolen] == [404, 404, 404]
    assert own.status_code == 200


async def test_an_answer_is_fetched_after_its_stream_broke(world: World) -> None:
    go_on = asyncio.Event()

    @tool(danger=DangerLevel.SAFE)
    async def dawdle() -> str:
        """Answer when told to."""
        await go_on.wait()
        return "at last"

    said = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "dawdle"}}
    async with serving(world.reeve(tools=[dawdle])) as server:
        headers = LEGACY | {"mcp-session-id": await open_session(server), "mcp-protocol-version": "2025-11-25"}
        async with server.client.stream("POST", server.url, json=said, headers=headers) as answer:
            first = await anext(line async for line in answer.aiter_lines() if line.startswith("id:"))
        go_on.set()
        again = headers | {"last-event-id": first.partition(":")[2].strip()}
        async with server.client.stream("GET", server.url, headers=again) as answer:
            data = await anext(line async for line in answer.aiter_lines() if line.startswith("data: {"))

    assert json.loads(data[5:])["result"]["structuredContent"] == {"output": "at last"}


async def test_events_of_one_session_cannot_be_replayed_into_another(world: World) -> None:
    async with serving(world.reeve(tools=[echo])) as server:
        victim, thief = await open_session(server), await open_session(server)
        said = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "s3"}},
        }
        await server.client.post(server.url, json=said, headers=LEGACY | {"mcp-session-id": victim})
        heard = []
        for number in range(1, 8):
            headers = LEGACY | {"mcp-session-id": thief, "last-event-id": str(number)}
            try:
                async with asyncio.timeout(0.2), server.client.stream("GET", server.url, headers=headers) as answer:
                    heard += [line async for line in answer.aiter_lines()]
            except TimeoutError:
                continue

    assert not [line for line in heard if "s3" in line]


async def test_a_body_beyond_the_limit_is_refused_whichever_way_it_takes(world: World) -> None:
    async with serving(world.reeve(tools=[echo])) as server:
        long = {"name": "echo", "arguments": {"text": "x" * (5 * 1024 * 1024)}}
        short_way = await server.ask("tools/call", long)
        long_way = await server.ask("tools/call", long, meta={"progressToken": 1})

    assert [short_way.status_code, long_way.status_code] == [413, 413]


async def test_sessions_that_end_leave_nothing_behind(world: World) -> None:
    async with serving(world.reeve(tools=[echo])) as server:
        await server.client.delete(server.url, headers=LEGACY | {"mcp-session-id": await open_session(server)})
        before = len(asyncio.all_tasks())
        for _ in range(20):
            session = {"mcp-session-id": await open_session(server)}
            said = {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "tools/call",
                "params": {"name": "echo", "arguments": {"text": "x"}},
            }
            await server.client.post(server.url, json=said, headers=LEGACY | session)
            await server.client.delete(server.url, headers=LEGACY | session)
        async with asyncio.timeout(10):
            while len(asyncio.all_tasks()) > before:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def test_a_session_must_begin_with_initialize(world: World) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with serving(world.reeve()) as server:
        answer = await server.client.post(server.url, json=said, headers=LEGACY)

    assert answer.status_code == 400


async def test_a_session_hears_that_the_tools_have_changed(world: World) -> None:
    heard = asyncio.Event()

    async def listen(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            heard.set()

    reeve = world.reeve()
    async with serving(reeve) as server, connected(server, "legacy", message_handler=listen) as client:
        await client.list_tools()
        while not heard.is_set():
            reeve.tools.register(echo)
            reeve.tools.unregister("echo")
            await asyncio.sleep(0.01)


async def test_a_listener_of_the_modern_era_hears_what_it_asked_for_and_nothing_else(world: World) -> None:
    reeve = world.reeve()
    headers = HEADERS | {"mcp-method": "subscriptions/listen"}
    said = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, number=9)
    async with (
        serving(reeve) as server,
        server.client.stream("POST", server.url, json=said, headers=headers) as answer,
    ):
        events = (json.loads(line[5:]) async for line in answer.aiter_lines() if line.startswith("data:"))
        first = await anext(events)
        reeve.tools.register(echo)
        second = await anext(events)

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert first["params"]["notifications"] == {"toolsListChanged": True}
    assert second["method"] == "notifications/tools/list_changed"
    assert second["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 9}


async def test_what_must_be_asked_is_asked_and_runs_once_after_the_answer(world: World) -> None:
    call = {"name": "erase", "arguments": {"text": "it"}}
    async with serving(world.reeve(tools=[erase])) as server:
        asked = (await server.ask("tools/call", call, meta=CAN_ELICIT)).json()["result"]
        schema = asked["inputRequests"]["approval"]["params"]["requestedSchema"]["properties"]["decision"]
        accepted = {"approval": {"action": "accept", "content": {"decision": _allowing(schema)}}}
        again = call | {"inputResponses": accepted, "requestState": asked["requestState"]}
        granted = (await server.ask("tools/call", again, meta=CAN_ELICIT)).json()
        replayed = (await server.ask("tools/call", again, meta=CAN_ELICIT)).json()
        records = await server.reeve.audit.recent(last_n=10, filters={"tool": "erase"})

    assert asked["resultType"] == "input_required"
    assert granted["result"]["structuredContent"] == {"output": "erased it"}
    assert replayed["error"]["message"] == "Invalid or expired requestState"
    assert [each["success"] for each in records].count(True) == 1


def _allowing(schema: dict[str, Any]) -> str:
    values = schema.get("enum") or [each["const"] for each in schema["oneOf"]]
    return next(str(value) for value in values if "allow" in str(value).lower())


ASKING = {"access-control-request-method": "POST", "access-control-request-headers": "authorization, mcp-name"}
PAGE = "https://app.example"


async def test_a_configured_page_is_let_through_by_the_browser_and_still_needs_its_token(world: World) -> None:
    async with serving(world.reeve(tools=[echo]), tokens=[ADA], origins=[PAGE]) as server:
        asked = await server.client.options(server.url, headers={"origin": PAGE, **ASKING})
        bare = await server.ask("tools/list", headers={"origin": PAGE})
        call = {"name": "echo", "arguments": {"text": "x"}}
        full = await server.ask("tools/call", call, headers={"origin": PAGE, **bearer(ADA)})

    assert [asked.status_code, bare.status_code, full.status_code] == [204, 401, 200]
    assert {each.headers["access-control-allow-origin"] for each in (asked, bare, full)} == {PAGE}
    assert "authorization" in asked.headers["access-control-allow-headers"]


async def test_other_origins_get_no_cors_headers(world: World) -> None:
    async with serving(world.reeve(tools=[echo]), origins=[PAGE]) as server:
        asked = await server.client.options(server.url, headers={"origin": "https://evil.example", **ASKING})
        said = await server.ask("tools/list", headers={"origin": "https://evil.example"})
        unnamed = await server.ask("tools/list")

    assert [asked.status_code, said.status_code, unnamed.status_code] == [403, 403, 200]
    assert not [each for each in (asked, said, unnamed) if "access-control-allow-origin" in each.headers]


@pytest.mark.parametrize(("action", "ran"), [("accept", True), ("decline", False), ("cancel", False)])
async def test_a_person_is_asked_through_the_session_that_called(world: World, action: Any, ran: bool) -> None:
    async def decide(context: Any, params: Any) -> ElicitResult:
        schema = params.requested_schema["properties"]["decision"]
        return ElicitResult(action=action, content={"decision": _allowing(schema)} if action == "accept" else None)

    async with (
        serving(world.reeve(tools=[erase])) as server,
        Client(server.url, mode="legacy", elicitation_callback=decide) as client,
    ):
        result = await client.call_tool("erase", {"text": "it"})

    assert (result.structured_content == {"output": "erased it"}) is ran


async def test_the_views_of_past_credentials_do_not_pile_up(world: World) -> None:
    async with world.reeve(tools=[echo]) as reeve:
        views = ToolViews(new_view(reeve))
        seen = [weakref.ref(views.of(replace(ANONYMOUS, id=str(number)))) for number in range(MAX_VIEWS + 50)]
        gc.collect()

    assert sum(each() is not None for each in seen) == MAX_VIEWS
