"""The fast path answers exactly as the SDK does, or leaves the request alone."""

import asyncio
import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.serve.mcp.http_server import HEADERS, VERSION, HttpTestServer, request, serving
from tests.serve.raw_http import Answer, Header, connection, post
from tests.world import World
from toolreeve import DangerLevel, tool
from toolreeve.serve.exchange import CONNECTION
from toolreeve.serve.mcp.protocol import CAPABILITIES_KEY, CLIENT_KEY, LOG_LEVEL_KEY, VERSION_KEY
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.tokens import ANONYMOUS

HEADER = {"type": "object", "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}}
CALL = {"name": "echo", "arguments": {"text": "x"}}


@tool(danger=DangerLevel.SAFE, inline=True)
def echo(text: str) -> str:
    """Say it again."""
    return text


@tool(danger=DangerLevel.SAFE, input_schema=HEADER, inline=True)
def mirrored(place: str = "") -> str:
    """Take an argument that is repeated in a header."""
    return place


class Stage:
    """A door in a loop of its own: Hypothesis calls without one."""

    def __init__(self, portal: BlockingPortal, server: HttpTestServer) -> None:
        self._portal, self._server = portal, server

    def both(self, headers: list[Header], body: bytes) -> tuple[Answer, Answer]:
        """What the short way and the long way answer."""
        return self._portal.call(self._both, headers, body)

    def recognises(self, headers: list[Header]) -> bool:
        return self._server.door.find_fast_handler(headers, ANONYMOUS) is not None

    async def _both(self, headers: list[Header], body: bytes) -> tuple[Answer, Answer]:
        async with connection(self._server.url) as line:
            await line.send(post(headers, body))
            return await line.answer(), await told(self._server.door, headers, body)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    reeve = World(tmp_path_factory.mktemp("fast")).reeve(tools=[echo, mirrored])
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serving(reeve)) as server:
        yield Stage(portal, server)


async def told(application: Any, headers: list[Header], body: bytes) -> Answer:
    """The long way: what stands behind the gate, asked by itself."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    never = asyncio.Event()

    async def receive() -> Any:
        if not messages:
            await never.wait()
        return messages.pop(0)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
        CREDENTIAL: ANONYMOUS,
        CONNECTION: SimpleNamespace(owner="user 1", address="loopback", session_key=b"k"),
    }
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async with asyncio.timeout(10):
        await application(scope, receive, send)
    start, *parts = sent
    shown = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], shown, b"".join(each.get("body", b"") for each in parts))


def shown(**changes: str | None) -> list[Header]:
    headers: dict[str, str | None] = {
        "host": "127.0.0.1",
        **HEADERS,
        "mcp-method": "tools/call",
        "mcp-name": "echo",
        **{name.replace("_", "-"): value for name, value in changes.items()},
    }
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items() if value is not None]


def alike(pair: tuple[Answer, Answer]) -> None:
    short, long = pair
    assert short.status == long.status
    assert short.headers.get("content-type") == long.headers.get("content-type")
    if long.headers.get("content-type") == "application/json":
        assert json.loads(short.body) == json.loads(long.body)


SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)
META: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        VERSION_KEY: st.sampled_from([VERSION, "2025-11-25", "1"]) | VALUES,
        CAPABILITIES_KEY: st.just({}) | st.just({"elicitation": {}}) | VALUES,
        CLIENT_KEY: st.just({"name": "n", "version": "1"}) | VALUES,
        LOG_LEVEL_KEY: st.just("debug") | VALUES,
        "progressToken": st.just(1) | VALUES,
        "traceparent": st.text(max_size=4),
    },
)
USUAL = st.just({VERSION_KEY: VERSION, CAPABILITIES_KEY: {}})
PARAMS = st.fixed_dictionaries(
    {"_meta": USUAL | META | VALUES},
    optional={
        "name": st.sampled_from(["echo", "mirrored", "missing", "search_tools", "wait_for_approval"]) | VALUES,
        "arguments": st.just({"text": "x"}) | st.just({"place": "here"}) | VALUES,
        "inputResponses": VALUES,
        "requestState": VALUES,
        "other": VALUES,
    },
)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | VALUES,
        "id": st.integers(0, 5) | VALUES,
        "method": st.just("tools/call") | st.sampled_from(["tools/list", "nothing"]) | VALUES,
        "params": PARAMS | PARAMS | VALUES,
        "other": VALUES,
    },
)


def test_a_plain_call_is_recognised_and_one_that_is_not_plain_is_left_alone(stage: Stage) -> None:
    assert stage.recognises(shown())
    assert not stage.recognises(shown(accept="application/json"))


@settings(max_examples=150)
@given(said=REQUESTS, name=st.sampled_from(["echo", "mirrored", "missing"]))
def test_whatever_a_body_says_both_ways_answer_the_same(stage: Stage, said: Any, name: str) -> None:
    alike(stage.both(shown(mcp_name=name), json.dumps(said).encode()))


@settings(max_examples=60)
@given(body=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_whatever_is_no_request_at_all_both_ways_answer_the_same(stage: Stage, body: bytes) -> None:
    alike(stage.both(shown(), body))


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp_name": "mirrored"},
        {"mcp_name": "=?base64?ZWNobw==?="},
        {"mcp_name": "=?base64?broken"},
        {"mcp_name": None},
        {"mcp_name": "Echo"},
        {"mcp_method": "tools/list"},
        {"mcp_method": None},
        {"mcp_protocol_version": "2025-11-25"},
        {"mcp_protocol_version": "2099-01-01"},
        {"mcp_protocol_version": None},
        {"accept": "application/json"},
        {"accept": "text/event-stream"},
        {"accept": "*/*"},
        {"accept": None},
        {"content_type": "text/plain"},
        {"content_type": "application/json; charset=utf-8"},
        {"content_type": "application/jsonx"},
        {"content_type": None},
        {"mcp_param_place": "elsewhere"},
        {"mcp_session_id": "made-up"},
    ],
)
def test_whatever_the_headers_say_both_ways_answer_the_same(stage: Stage, headers: dict[str, str | None]) -> None:
    alike(stage.both(shown(**headers), json.dumps(request("tools/call", CALL)).encode()))


@pytest.mark.parametrize("name", [b"mcp-name", b"mcp-method", b"mcp-protocol-version"])
def test_a_routing_header_that_appears_twice_is_refused_both_ways(stage: Stage, name: bytes) -> None:
    twice = [*shown(), (name, b"other")]

    short, long = stage.both(twice, json.dumps(request("tools/call", CALL)).encode())

    assert short.status == long.status == 400


def test_an_argument_that_its_header_contradicts_is_refused_both_ways(stage: Stage) -> None:
    call = {"name": "mirrored", "arguments": {"place": "here"}}

    alike(
        stage.both(
            shown(mcp_name="mirrored", mcp_param_place="there"), json.dumps(request("tools/call", call)).encode()
        )
    )
    alike(
        stage.both(shown(mcp_name="mirrored", mcp_param_place="here"), json.dumps(request("tools/call", call)).encode())
    )


def test_a_number_that_would_be_rounded_arrives_as_it_was_written(stage: Stage) -> None:
    call = {"name": "calculate", "arguments": {"expression": "1"}}
    body = json.dumps(request("tools/call", call)).encode().replace(b'"1"', b"123456789012345678901234567890")

    short, _ = stage.both(shown(mcp_name="calculate"), body)

    assert b"123456789012345678901234567890" in short.body
