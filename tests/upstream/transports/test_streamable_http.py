"""Streamable HTTP: real servers in both eras, and servers that do what no server should."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp.server.lowlevel import Server

from tests.network import Answer, Received, listening, web_server
from tests.upstream.callers import ScriptedCaller
from tests.upstream.http_servers import (
    END,
    GREETING,
    as_json,
    by_hand,
    chunk,
    head,
    listening_on,
    open_session,
    request,
    result,
    served,
    transport_to,
)
from tests.upstream.servers import official
from toolreeve.core import json
from toolreeve.core.mcp import Era
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable

ERAS = [Era.LEGACY, Era.MODERN]
SESSION = {"mcp-session-id": "a-session"}


def official_server() -> Server[Any]:
    return Server("official", version="1.2.3", on_list_tools=official._list, on_call_tool=official._call)


@pytest.fixture(params=[False, True], ids=["events", "json"])
async def origin(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    async with served(official_server().streamable_http_app(json_response=request.param)) as origin:
        yield origin


def raw(got: Received) -> Answer:
    """A server of the legacy era that answers everything with nothing."""
    message = json.loads(got.body or b"{}")
    if got.method != "POST":
        return Answer(status=405)
    if "id" not in message:
        return Answer(status=202, body=b"")
    found = GREETING if message["method"] == "initialize" else {"tools": []}
    return as_json(result(got.body, **found), headers=SESSION)


async def test_a_server_finds_out_who_speaks_which_era(origin: str, tmp_path: Path) -> None:
    async with open_session(transport_to(f"{origin}/mcp", tmp_path)) as modern:
        assert modern.era is Era.MODERN
    async with open_session(transport_to(f"{origin}/mcp", tmp_path), Era.LEGACY) as legacy:
        assert legacy.era is Era.LEGACY
        assert legacy.server_info == {"name": "official", "version": "1.2.3"}


@pytest.mark.parametrize("era", ERAS)
async def test_answers_come_back_as_they_were_sent(origin: str, era: Era, tmp_path: Path) -> None:
    async with open_session(transport_to(f"{origin}/mcp", tmp_path), era) as session:
        listed = await session.request("tools/list", {})
        picture = await session.request("tools/call", {"name": "picture", "arguments": {}})

    assert listed["tools"][0]["inputSchema"]["$defs"] == {"Text": {"type": "string", "minLength": 1}}
    assert picture["content"] == [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    assert picture["structuredContent"] == {"deep": {"er": [1, None, "é"]}}


@pytest.mark.parametrize("era", ERAS)
async def test_many_calls_at_once_each_get_their_own_answer(origin: str, era: Era, tmp_path: Path) -> None:
    async with open_session(transport_to(f"{origin}/mcp", tmp_path), era) as session:
        calls = [session.request("tools/call", {"name": "echo", "arguments": {"text": str(n)}}) for n in range(40)]
        answers = await asyncio.gather(*calls)

    assert [answer["content"][0]["text"] for answer in answers] == [str(n) for n in range(40)]


@pytest.mark.parametrize("era", ERAS)
async def test_progress_comes_while_the_call_runs(era: Era, tmp_path: Path) -> None:
    person = ScriptedCaller(era=era, wants_progress=True)
    async with (
        served(official_server().streamable_http_app()) as origin,
        open_session(transport_to(f"{origin}/mcp", tmp_path), era) as session,
    ):
        await session.request("tools/call", {"name": "steps", "arguments": {}}, peer=person)

    assert [params["message"] for _, params in person.told] == ["step 0", "step 1", "step 2"]


async def test_a_server_of_the_legacy_era_asks_back_in_the_middle_of_a_call(tmp_path: Path) -> None:
    async def blue(_: str, __: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"colour": "blue"}}

    person = ScriptedCaller(capabilities={"elicitation": {"form": {}}}, answer=blue)
    async with (
        served(official_server().streamable_http_app()) as origin,
        open_session(transport_to(f"{origin}/mcp", tmp_path), Era.LEGACY) as session,
    ):
        answer = await session.request("tools/call", {"name": "ask", "arguments": {}}, peer=person)

    assert answer["content"][0]["text"] == "accept {'colour': 'blue'}"


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_nobody_waits_for_is_ended_at_the_server(era: Era, tmp_path: Path) -> None:
    official.stopped.clear()
    async with (
        served(official_server().streamable_http_app()) as origin,
        open_session(transport_to(f"{origin}/mcp", tmp_path), era) as session,
    ):
        with pytest.raises(TimeoutError):
            await session.request("tools/call", {"name": "wait", "arguments": {}}, timeout=0.3)
        told = await session.request("tools/call", {"name": "stopped", "arguments": {}})

    assert told["content"][0]["text"] == "it was told to stop"


async def test_a_session_is_named_with_every_message_and_ended_at_the_end(tmp_path: Path) -> None:
    async with web_server(raw) as server:
        transport = transport_to(server.url("/mcp"), tmp_path, headers={"X-Key": "mine"})
        async with open_session(transport, Era.LEGACY) as session:
            await session.request("tools/list", {})

    first, *rest = server.received
    assert "mcp-session-id" not in first.headers
    assert {got.headers["mcp-session-id"] for got in rest} == {"a-session"}
    assert {got.headers["mcp-protocol-version"] for got in rest} == {"2025-11-25"}
    assert {got.headers["x-key"] for got in server.received} == {"mine"}
    assert [got.method for got in rest] == ["POST", "GET", "POST", "DELETE"]


async def test_a_session_that_the_server_no_longer_knows_is_lost(tmp_path: Path) -> None:
    def forgetful(got: Received) -> Answer:
        return Answer(status=404) if b"tools/call" in got.body else raw(got)

    async with (
        web_server(forgetful) as server,
        open_session(transport_to(server.url(), tmp_path), Era.LEGACY) as session,
    ):
        with pytest.raises(ServerUnavailable, match="the server ended the session"):
            await session.request("tools/call", {"name": "x"})
        assert not session.alive


async def test_a_stream_that_breaks_off_is_taken_up_where_it_ended(tmp_path: Path) -> None:
    resumed: list[Received] = []

    async def answer(got: Received, writer: asyncio.StreamWriter) -> None:
        if got.method == "GET":
            resumed.append(got)
            reply = {"jsonrpc": "2.0", "id": 7, "result": {"late": True}}
            writer.write(head() + chunk(b"id: 2\ndata: " + json.dumps(reply) + b"\n\n") + END)
        else:
            writer.write(head() + chunk(b"id: 1\nretry: 1\ndata: \n\n") + END)

    async with listening(by_hand(answer)) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(7))
            assert await log.next() == {"jsonrpc": "2.0", "id": 7, "result": {"late": True}}
    assert [got.headers["last-event-id"] for got in resumed] == ["1"]


async def test_a_stream_that_always_breaks_off_is_given_up(tmp_path: Path) -> None:
    async def answer(got: Received, writer: asyncio.StreamWriter) -> None:
        event = b"" if got.method == "GET" else chunk(b"id: 1\nretry: 1\ndata: \n\n")
        writer.write(head() + event + END)

    async with listening(by_hand(answer)) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(7))
            assert "does not resume" in (await log.next())["error"]["message"]


async def test_what_goes_wrong_with_one_message_does_not_concern_the_others(tmp_path: Path) -> None:
    broken = asyncio.Event()

    async def answer(got: Received, writer: asyncio.StreamWriter) -> None:
        if b"break" in got.body:
            broken.set()
            writer.transport.abort()
            return
        await broken.wait()
        body = result(got.body, fine=True)
        writer.write(head("application/json") + chunk(body) + END)

    async with listening(by_hand(answer)) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(1, "keep"))
            transport.send(request(2, "break"))
            by_id = {message["id"]: message for message in (await log.next(), await log.next())}
            assert by_id[1]["result"] == {"fine": True}
            assert by_id[2]["error"]["code"] == -32000
            assert not log.lost.done()


async def test_a_server_that_does_not_listen_is_unavailable(tmp_path: Path) -> None:
    async with web_server() as gone:
        url = gone.url()
    with pytest.raises(ServerUnavailable, match="ConnectError"):
        async with open_session(transport_to(url, tmp_path)):
            pass


async def test_a_redirect_within_the_origin_is_followed_with_the_message(tmp_path: Path) -> None:
    def moved(got: Received) -> Answer:
        return raw(got) if got.path == "/mcp/" else Answer(status=307, headers={"location": "/mcp/"})

    async with (
        web_server(moved) as server,
        open_session(transport_to(server.url("/mcp"), tmp_path), Era.LEGACY) as session,
    ):
        assert await session.request("tools/list", {}) == {"tools": []}


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize(
    "place", ["other", "http://169.254.169.254/latest/meta-data/?key=secret", "//evil.example/mcp"]
)
async def test_a_redirect_elsewhere_is_not_followed(status: int, place: str, tmp_path: Path) -> None:
    async with web_server() as other:
        location = other.url() if place == "other" else place
        async with web_server(lambda _: Answer(status=status, headers={"location": location})) as server:
            transport = transport_to(server.url(), tmp_path, headers={"Authorization": "Bearer secret-key"})
            async with listening_on(transport) as log:
                transport.send(request(1))
                message = (await log.next())["error"]["message"]
        assert "another origin" in message
        assert "secret" not in message
        assert other.connections == 0


async def test_redirects_in_a_circle_end(tmp_path: Path) -> None:
    async with web_server(lambda _: Answer(status=307, headers={"location": "/again"})) as server:
        transport = transport_to(server.url(), tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(1))
            assert "redirects more than" in await log.reason()


async def test_a_metadata_address_is_refused_also_where_it_is_configured(tmp_path: Path) -> None:
    transport = transport_to("http://169.254.169.254/mcp", tmp_path)
    async with listening_on(transport) as log:
        transport.send(request(1))
        assert "cloud metadata" in await log.reason()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(body=b"hello", headers={"content-type": "text/html"}), "HTTP 200 and 'text/html'"),
        (Answer(status=202, body=b""), "HTTP 202 and 'no content type'"),
        (as_json(b"{"), "invalid JSON"),
        (as_json(b"[" * 5000), "invalid JSON"),
        (as_json(b'"text"'), "HTTP 200"),
        (as_json(b'{"jsonrpc":"2.0","id":99,"result":{}}'), "HTTP 200"),
        (Answer(status=500, body=b"\x1b[2Jgone", headers={"content-type": "text/html"}), "HTTP 500: ‹U+001B›[2Jgone"),
        (as_json(b'{"error":"no"}', status=503), "HTTP 503"),
        (as_json(gzip.compress(b"{}"), headers={"content-encoding": "gzip"}), "compressed"),
        (Answer(headers={"content-type": "text/event-stream"}, body=b"data: {\n\n"), "invalid JSON"),
        (Answer(headers={"content-type": "text/event-stream"}, body=b": nothing\n\n"), "before it was complete"),
    ],
)
async def test_a_response_that_is_none_of_the_protocol_is_an_error_of_that_message(
    answer: Answer, said: str, tmp_path: Path
) -> None:
    async with web_server(lambda _: answer) as server:
        transport = transport_to(server.url(), tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(1))
            messages = [await log.next()]
            while "error" not in messages[-1]:
                messages.append(await log.next())
            assert said in messages[-1]["error"]["message"]
            assert messages[-1]["id"] == 1
            assert not log.lost.done()


@pytest.mark.parametrize("status", [400, 404])
async def test_an_error_of_the_protocol_is_passed_on_whatever_the_status(status: int, tmp_path: Path) -> None:
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method","data":[1]}}'
    async with web_server(lambda _: as_json(body, status=status)) as server:
        transport = transport_to(server.url(), tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(3))
            error = {"code": -32601, "message": "no such method", "data": [1]}
            assert await log.next() == {"jsonrpc": "2.0", "id": 3, "error": error}


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_an_answer_without_end_is_cut_off(content_type: str, tmp_path: Path) -> None:
    sent = 0

    async def answer(_: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(head(content_type) + chunk(b'data: "'))
        while sent < 4 * MAX_MESSAGE:
            writer.write(chunk(b"x" * (1 << 20)))
            await writer.drain()
            sent += 1 << 20

    async with listening(by_hand(answer)) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        async with listening_on(transport) as log:
            transport.send(request(1))
            assert str(MAX_MESSAGE) in (await log.next())["error"]["message"]
    assert sent < 2 * MAX_MESSAGE


async def test_a_server_that_never_answers_meets_the_deadline_and_is_let_go(tmp_path: Path) -> None:
    let_go = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(4096):
            pass
        let_go.set()

    async with listening(handle) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        with pytest.raises(ServerUnavailable, match="did not respond within"):
            await UpstreamSession(transport, client_info={}).open(None, 0.3)
        await asyncio.wait_for(let_go.wait(), 10)


@pytest.mark.parametrize("session_id", ["", "a b", "x" * 5000, "caf\u00e9"])
async def test_an_invalid_session_id_is_not_repeated(session_id: str, tmp_path: Path) -> None:
    def answer(got: Received) -> Answer:
        return as_json(result(got.body, **GREETING), headers={"mcp-session-id": session_id or " "})

    async with web_server(answer) as server:
        with pytest.raises(ServerUnavailable, match="invalid Mcp-Session-Id"):
            async with open_session(transport_to(server.url(), tmp_path), Era.LEGACY):
                pass


async def test_cookies_do_not_pile_up(tmp_path: Path) -> None:
    count = 0

    def baker(got: Received) -> Answer:
        nonlocal count
        count += 1
        answer = raw(got)
        answer.cookies = [f"c{count}-{number}=x" for number in range(20)]
        return answer

    async with web_server(baker) as server, open_session(transport_to(server.url(), tmp_path), Era.LEGACY) as session:
        for _ in range(20):
            await session.request("tools/list", {})

    assert max(got.headers.get("cookie", "").count("=") for got in server.received) <= 50


async def test_a_closed_transport_leaves_no_connection_behind(tmp_path: Path) -> None:
    open_now = 0
    all_there, all_gone = asyncio.Event(), asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        if open_now == 5:
            all_there.set()
        writer.write(head() + chunk(b"id: 1\ndata: \n\n"))
        try:
            while await reader.read(4096):
                pass
        finally:
            open_now -= 1
            if not open_now:
                all_gone.set()

    async with listening(handle) as port:
        before = len(asyncio.all_tasks())
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        async with listening_on(transport) as log:
            for number in range(5):
                transport.send(request(number))
            await asyncio.wait_for(all_there.wait(), 10)
        await asyncio.wait_for(all_gone.wait(), 10)
        assert not log.lost.done()
        assert len(asyncio.all_tasks()) <= before
        with pytest.raises(ServerUnavailable):
            transport.send(request(9))


async def test_many_transports_opened_and_closed_leave_no_descriptor(tmp_path: Path) -> None:
    async with web_server(raw) as server:
        counts = []
        for _ in range(30):
            async with open_session(transport_to(server.url(), tmp_path), Era.LEGACY) as session:
                await session.request("tools/list", {})
            counts.append(len(list(Path("/proc/self/fd").iterdir())))

    assert max(counts[5:]) <= max(counts[:5]) + 5


async def test_what_a_server_does_not_take_is_bounded(tmp_path: Path) -> None:
    async def handle(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await asyncio.Event().wait()

    async with listening(handle) as port:
        transport = transport_to(f"http://127.0.0.1:{port}/", tmp_path)
        async with listening_on(transport):
            for number in range(63):
                transport.send(request(number, text="x" * (1 << 20)))
            with pytest.raises(ServerUnavailable, match="too many are queued"):
                transport.send(request(99, text="x" * (1 << 20)))


async def test_a_message_that_is_not_json_is_refused(tmp_path: Path) -> None:
    async with web_server() as server:
        transport = transport_to(server.url(), tmp_path)
        async with listening_on(transport):
            with pytest.raises(ValueError, match="JSON"):
                transport.send(request(1, what=object()))
        assert server.connections == 0


@pytest.mark.parametrize("url", ["", "ftp://x/", "http://user:pass@host/", "http://[::", "nonsense"])
async def test_an_invalid_url_makes_a_server_unavailable(url: str, tmp_path: Path) -> None:
    with pytest.raises(ServerUnavailable):
        transport_to(url, tmp_path)


async def test_a_header_that_cannot_be_sent_is_an_error_and_sends_nothing(tmp_path: Path) -> None:
    async with web_server(raw) as server:
        with pytest.raises((ServerUnavailable, RemoteError)):
            async with open_session(
                transport_to(server.url(), tmp_path, headers={"X-Key": "a\r\nEvil: yes"}), Era.LEGACY
            ):
                pass
        assert server.received == []
