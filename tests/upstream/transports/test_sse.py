"""HTTP with one stream for everything: a real server of the first revision, and some that are none."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from tests.network import Answer, Received, listening, web_server
from tests.upstream.callers import ScriptedCaller
from tests.upstream.http_servers import by_hand, chunk, head, listening_on, open_session, request, served, transport_to
from tests.upstream.servers import official
from tests.world import World
from toolreeve.core.mcp import Era
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import ServerUnavailable


def application() -> Starlette:
    server: Server[Any] = Server("old", version="1", on_list_tools=official._list, on_call_tool=official._call)
    transport = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        async with transport.connect_sse(request.scope, request.receive, request._send) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        return Response()

    return Starlette(routes=[Route("/sse", stream), Mount("/messages/", app=transport.handle_post_message)])


@pytest.fixture
async def origin() -> AsyncIterator[str]:
    async with served(application()) as origin:
        yield origin


async def test_a_server_is_called_and_asks_back(origin: str, tmp_path: Path) -> None:
    async def blue(_: str, __: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"colour": "blue"}}

    person = ScriptedCaller(capabilities={"elicitation": {"form": {}}}, answer=blue, wants_progress=True)
    async with open_session(transport_to(f"{origin}/sse", tmp_path, "sse"), Era.LEGACY) as session:
        picture = await session.request("tools/call", {"name": "picture", "arguments": {}})
        await session.request("tools/call", {"name": "steps", "arguments": {}}, peer=person)
        asked = await session.request("tools/call", {"name": "ask", "arguments": {}}, peer=person)

    assert picture["content"] == [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    assert len(person.told) == 3
    assert asked["content"][0]["text"] == "accept {'colour': 'blue'}"


async def test_many_calls_at_once_each_get_their_own_answer(origin: str, tmp_path: Path) -> None:
    async with open_session(transport_to(f"{origin}/sse", tmp_path, "sse"), Era.LEGACY) as session:
        calls = [session.request("tools/call", {"name": "echo", "arguments": {"text": str(n)}}) for n in range(30)]
        answers = await asyncio.gather(*calls)

    assert [answer["content"][0]["text"] for answer in answers] == [str(n) for n in range(30)]


async def test_a_url_that_is_not_streamable_http_falls_back_to_sse(origin: str, world: World) -> None:
    async with world.reeve(mcp_servers={"old": {"url": f"{origin}/sse", "danger": "safe"}}) as reeve:
        answer = await reeve.call("old__echo", text="hello")
        [status] = reeve.fleet.status()

    assert (status.state, answer.output) == ("up", "hello")


async def test_a_url_with_neither_transport_reports_one_problem(world: World) -> None:
    nothing = Answer(status=404, body=b"nothing here", headers={"content-type": "text/plain"})
    async with (
        web_server(lambda _: nothing) as server,
        world.reeve(mcp_servers={"gone": {"url": server.url()}}) as reeve,
    ):
        [status] = reeve.fleet.status()

    assert status.problem == "the server refused the handshake: the server responded with HTTP 404: nothing here"


async def test_an_error_of_the_protocol_is_no_reason_to_try_sse(world: World) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"not today"}}'
    refusal = Answer(status=400, body=body, headers={"content-type": "application/json"})
    async with web_server(lambda _: refusal) as server, world.reeve(mcp_servers={"no": {"url": server.url()}}) as reeve:
        [status] = reeve.fleet.status()

    assert status.problem == "the server refused the handshake: not today"
    assert {got.method for got in server.received} == {"POST"}


async def test_a_stream_that_ends_loses_the_connection(tmp_path: Path) -> None:
    finish = asyncio.Event()

    async def answer(got: Received, writer: asyncio.StreamWriter) -> None:
        if got.method == "GET":
            writer.write(head() + chunk(b"event: endpoint\ndata: /messages?session=1\n\n"))
            await finish.wait()
            writer.close()
        else:
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")

    async with listening(by_hand(answer)) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/sse", tmp_path, "sse")
        async with listening_on(transport) as log:
            transport.send(request(1))
            finish.set()
            assert await log.reason()
            with pytest.raises(ServerUnavailable):
                transport.send(request(2))


@pytest.mark.parametrize("place", ["other", "http://169.254.169.254/", "//evil.example/x", "ftp://127.0.0.1/"])
async def test_messages_are_sent_to_no_other_origin_than_the_streams(place: str, tmp_path: Path) -> None:
    async with web_server() as other:
        named = other.url() if place == "other" else place
        event = f"event: endpoint\ndata: {named}\n\n".encode()
        answer = Answer(body=event, headers={"content-type": "text/event-stream"})
        async with web_server(lambda _: answer) as server:
            transport = transport_to(server.url(), tmp_path, "sse", headers={"Authorization": "Bearer key"})
            with pytest.raises(ServerUnavailable, match=r"another origin|only http"):
                async with listening_on(transport):
                    pass
        assert other.connections == 0


@pytest.mark.parametrize(
    "answer",
    [
        Answer(status=404),
        Answer(headers={"content-type": "text/html"}),
        Answer(status=307, headers={"location": "http://127.0.0.1:1/"}),
        Answer(body=b": nothing\n\n", headers={"content-type": "text/event-stream"}),
    ],
)
async def test_a_server_without_a_stream_is_unavailable(answer: Answer, tmp_path: Path) -> None:
    async with web_server(lambda _: answer) as server:
        with pytest.raises(ServerUnavailable):
            async with listening_on(transport_to(server.url(), tmp_path, "sse")):
                pass


async def test_a_stream_that_never_says_where_to_send_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    let_go = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head() + chunk(b": wait\n\n"))
        try:
            while await reader.read(4096):
                pass
        finally:
            let_go.set()

    async with listening(handle) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/sse", tmp_path, "sse")
        with pytest.raises(ServerUnavailable, match="did not respond within"):
            await UpstreamSession(transport, client_info={}).open(Era.LEGACY, 0.3)
        await asyncio.wait_for(let_go.wait(), 10)


async def test_a_message_that_is_refused_is_an_error_of_that_message(tmp_path: Path) -> None:
    async def answer(got: Received, writer: asyncio.StreamWriter) -> None:
        if got.method == "GET":
            writer.write(head() + chunk(b"event: endpoint\ndata: /messages\n\n" + b"data: no json\n\n"))
        else:
            writer.write(b"HTTP/1.1 400 No\r\ncontent-length: 4\r\n\r\nnope")

    async with listening(by_hand(answer)) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/sse", tmp_path, "sse")
        async with listening_on(transport) as log:
            transport.send(request(1))
            message = await log.next()
            assert (message["id"], message["error"]["message"]) == (1, "the server responded with HTTP 400: nope")
            assert not log.lost.done()


async def test_an_event_without_end_loses_the_connection(tmp_path: Path) -> None:
    sent = 0

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(head() + chunk(b"event: endpoint\ndata: /messages\n\ndata: "))
        while sent < 4 * MAX_MESSAGE:
            writer.write(chunk(b"x" * (1 << 20)))
            await writer.drain()
            sent += 1 << 20

    async with (
        listening(by_hand(answer)) as port,
        listening_on(transport_to(f"http://127.0.0.1:{port}/sse", tmp_path, "sse")) as log,
    ):
        assert str(MAX_MESSAGE) in await log.reason()
    assert sent < 2 * MAX_MESSAGE
