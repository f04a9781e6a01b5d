"""JSON-RPC messages: which are answered, and that no line ends the connection."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.serve.mcp.connection.tools import TOOLS
from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.serve.mcp.stdio_client import envelope
from tests.world import World
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.protocol import WireError
from toolreeve.system_info import SystemInfoHandlers


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'"\\ud800"', -32700, None),
        (b"[" * 5000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"7", -32600, None),
        (b'{"id":4,"method":"ping"}', -32600, 4),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":3,"method":5}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3}', -32600, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', -32602, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":"initialize","params":{}}', -32602, 3),
    ],
)
async def test_what_is_no_request_is_answered_as_json_rpc_says(
    world: World, line: bytes, code: int, number: Any
) -> None:
    async with connect(world.reeve()) as client:
        client.connection.receive(line)
        answer = await client.next()

        assert (answer["error"]["code"], answer["id"]) == (code, number)
        assert (await client.ask("ping"))["result"] == {}


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "no/such", "params": 7},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {"a": 1}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "id": "nobody-asked", "result": {}},
        {"jsonrpc": "2.0", "id": {}, "error": {"code": 1}},
    ],
)
async def test_notifications_and_answers_to_nothing_are_never_answered(world: World, message: Any) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        client.say(message)

        assert (await client.ask("ping"))["result"] == {}
        assert client.heard == []


async def test_an_id_cannot_be_used_while_its_request_runs(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        number = client.begin("tools/call", {"name": "wait", "arguments": {}})
        client.say({"jsonrpc": "2.0", "id": number, "method": "ping"})

        assert (await client.next())["error"]["code"] == -32600


def test_an_error_carries_its_data_only_where_there_is_some() -> None:
    assert WireError(1, "a").to_dict() == {"code": 1, "message": "a"}
    assert WireError(1, "a", {"b": 2}).to_dict() == {"code": 1, "message": "a", "data": {"b": 2}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
METHODS = st.sampled_from(
    (
        *("initialize", "ping", "tools/list", "tools/call", "server/discover", "subscriptions/listen"),
        *("logging/setLevel", "notifications/cancelled", "notifications/initialized"),
        *("resources/read", "prompts/get", "completion/complete"),
    )
)
META = st.one_of(JSON, st.just(envelope()), st.just({"progressToken": 1}))
PARAMS = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {},
        optional={
            "_meta": META,
            "name": st.one_of(JSON, st.sampled_from(["calculate", "bash", "call_tool", "search_tools"])),
            "arguments": JSON,
            "cursor": JSON,
            "uri": JSON,
            "requestId": JSON,
            "requestState": JSON,
            "inputResponses": JSON,
            "notifications": JSON,
            "level": JSON,
        },
    ),
)
MESSAGES = st.fixed_dictionaries(
    {}, optional={"jsonrpc": st.just("2.0"), "id": JSON, "method": METHODS | JSON, "params": PARAMS, "result": JSON}
)
LINES = st.one_of(
    st.binary(max_size=60).filter(lambda line: b"\n" not in line and line.strip()),
    st.one_of(MESSAGES, JSON).map(lambda message: json.dumps(message).encode()),
)


@given(lines=st.lists(LINES, max_size=8), handshake=st.booleans())
def test_no_line_ends_the_connection_and_every_response_is_json_rpc(lines: list[bytes], handshake: bool) -> None:
    asyncio.run(_hostile(lines, handshake))


async def _hostile(lines: list[bytes], handshake: bool) -> None:
    client = InMemoryClient()
    client.connection = McpConnection(SystemInfoHandlers(), client, session="one")
    if handshake:
        await client.initialize()
    for line in lines:
        client.connection.receive(line)
    await client.connection.finish(1)
    while not client.lines.empty():
        answer = json.loads(client.lines.get_nowait())
        assert answer["jsonrpc"] == "2.0"
        assert ("result" in answer) != ("error" in answer)
        assert isinstance(answer["id"], str | int | None)
        if "error" in answer:
            assert isinstance(answer["error"]["code"], int)
            assert isinstance(answer["error"]["message"], str)


@given(lines=st.lists(LINES, max_size=20))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_ends_a_connection_to_a_runtime(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    async def connection() -> None:
        async with connect(World(tmp_path_factory.mktemp("world")).reeve()) as client:
            await client.initialize()
            for line in lines:
                client.connection.receive(line)

            client.say({"jsonrpc": "2.0", "id": "still there", "method": "ping"})
            assert (await client.answer_to("still there"))["result"] == {}

    asyncio.run(connection())
