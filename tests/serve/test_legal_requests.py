"""Every legal request is answered, and as a stock uvicorn answers it."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from tests.serve.sample_server import served
from toolreeve.serve.app import bind

HOST = b"127.0.0.1"
METHODS = (b"GET", b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"PROPFIND")
UPGRADES = (b"h2c", b"websocket", b"TLS/1.0, HTTP/2.0")
EXTRA: Sequence[tuple[bytes, bytes]] = (
    (b"TE", b"trailers, deflate;q=0.5"),
    (b"x-long", b"a" * 20_000),
    (b"X-Empty", b""),
    (b"x-latin", b"caf\xe9"),
    (b"accept-ENCODING", b"gzip"),
    (b"Keep-Alive", b"timeout=5"),
)


@dataclass(frozen=True, slots=True)
class Said:
    request: bytes
    status: int
    last: bool


async def answer(scope: Any, receive: Any, send: Any) -> None:
    """A status that tells whether the whole body has come."""
    body = await Request(scope, receive).body()
    status = 404 if scope["path"] == "/nothing" else 200 + len(body) % 3
    await PlainTextResponse("." * len(body), status)(scope, receive, send)


def legal(chance: random.Random, *, last: bool) -> Said:
    method, version = chance.choice(METHODS), chance.choice([b"1.1", b"1.1", b"1.1", b"1.0"])
    path = chance.choice([b"/here", b"/here?a=b&c", b"/nothing", b"/he%20re/..;x"])
    headers = [(chance.choice([b"host", b"Host", b"HOST"]), HOST), *chance.sample(EXTRA, chance.randint(0, 3))]
    headers += [(b"x-%d" % number, b"y") for number in range(chance.choice([0, 0, 5, 200]))]
    body = b"b" * chance.choice([0, 0, 1, 2, 500, 70_000]) if method in (b"POST", b"PUT", b"PATCH") else b""
    closing = last or version == b"1.0"
    wishes = [b"close"] if last else [b"keep-alive"] if chance.random() < 0.3 else []
    if chance.random() < 0.3:
        wishes.append(b"Upgrade")
        headers.append((b"Upgrade", chance.choice(UPGRADES)))
    if wishes:
        headers.append((b"Connection", b", ".join(wishes)))
    if body and version == b"1.1" and chance.random() < 0.2:
        headers.append((b"Expect", b"100-continue"))
    status = 404 if path == b"/nothing" else 200 + len(body) % 3
    sent, framed = framing(chance, body, chunks=version == b"1.1")
    headers += framed
    chance.shuffle(headers)
    target = b"http://" + HOST + path if chance.random() < 0.2 else path
    lines = b"".join(b"%s:%s%s\r\n" % (name, chance.choice([b" ", b"", b"\t"]), value) for name, value in headers)
    before = b"\r\n" * chance.choice([0, 0, 1, 2])
    return Said(before + b"%s %s HTTP/%s\r\n%s\r\n%s" % (method, target, version, lines, sent), status, closing)


def framing(chance: random.Random, body: bytes, *, chunks: bool) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    if not body:
        return b"", []
    if not chunks or chance.random() < 0.5:
        return body, [(b"Content-Length", b"%d" % len(body))]
    half = chance.randint(0, len(body))
    parts = [part for part in (body[:half], body[half:]) if part]
    extension = chance.choice([b"", b";name=value"])
    trailer = chance.choice([b"", b"x-trailer: y\r\n"])
    sent = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts)
    return sent + b"0\r\n" + trailer + b"\r\n", [(b"Transfer-Encoding", b"chunked")]


@asynccontextmanager
async def stock() -> AsyncIterator[int]:
    server = uvicorn.Server(uvicorn.Config(answer, http="httptools", ws="none", lifespan="off", log_config=None))
    with bind("127.0.0.1", 0) as place:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([place]))
            yield place.getsockname()[1]
            server.should_exit = True


async def heard(port: int, said: Sequence[Said], chance: random.Random, *, half_close: bool) -> list[int]:
    """The status of each final response until the server closes; none if it breaks off or does not answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = b"".join(each.request for each in said)
    try:
        async with asyncio.timeout(15):
            reading = asyncio.ensure_future(reader.read())
            while data:
                size = chance.choice([1, 7, 100, 5000, len(data)])
                writer.write(data[:size])
                await asyncio.sleep(0)
                data = data[size:]
            if half_close:
                writer.write_eof()
            answered = await reading
    except (ConnectionError, TimeoutError):
        answered = b""
    finally:
        writer.close()
    return [status for status in map(int, re.findall(rb"HTTP/1\.1 (\d{3})", answered)) if status != 100]


@pytest.mark.parametrize("seed", range(4))
async def test_every_legal_request_is_answered_as_a_stock_uvicorn_answers_it(seed: int) -> None:
    chance = random.Random(seed)
    async with served(application=answer) as (url, _, _), stock() as theirs:
        for _ in range(40):
            count = chance.randint(1, 4)
            said = [legal(chance, last=number == count - 1) for number in range(count)]
            half_close = chance.random() < 0.3
            pieces, again = random.Random(seed), random.Random(seed)
            ours = await heard(int(url.rpartition(":")[2]), said, pieces, half_close=half_close)
            ending = next(number for number, each in enumerate(said) if each.last)
            assert ours == [each.status for each in said[: ending + 1]]
            if not any(b"\r\nUpgrade:" in each.request for each in said):  # it takes the body behind one for another
                answered = await heard(theirs, said, again, half_close=half_close)
                assert answered == ours[: len(answered)]


@pytest.mark.parametrize("ending", [b"HTTP/1.0\r\nconnection: upgrade", b"HTTP/1.1\r\nconnection: close, upgrade"])
async def test_a_wish_for_another_protocol_is_answered_on_a_connection_that_ends(ending: bytes) -> None:
    async with served(application=answer) as (url, _, _):
        said = Said(b"GET /here " + ending + b"\r\nupgrade: h2c\r\nhost: 127.0.0.1\r\n\r\n", 200, last=True)

        assert await heard(int(url.rpartition(":")[2]), [said], random.Random(0), half_close=False) == [200]


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize("started", [False, True])
async def test_a_half_closed_client_gets_a_response_that_takes_long(version: bytes, started: bool) -> None:
    async def slow(_: Any, __: Any, send: Any) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}
        if started:
            await send(start)
        await asyncio.sleep(1)
        if not started:
            await send(start)
        await send({"type": "http.response.body", "body": b"slow"})

    async with served(application=slow) as (url, _, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(b"GET / HTTP/%s\r\nhost: 127.0.0.1\r\n\r\n" % version)
        writer.write_eof()
        said = await asyncio.wait_for(reader.read(), 15)
        writer.close()

    assert said.endswith(b"\r\n\r\nslow")


@pytest.mark.parametrize(
    ("target", "host", "status"),
    [
        (b"http://127.0.0.1/here", b"127.0.0.1", 200),
        (b"HTTP://LOCALHOST:80/here", b"localhost:80", 200),
        (b"http://127.0.0.1", b"127.0.0.1", 200),
        (b"http://evil.example/here", b"127.0.0.1", 421),
        (b"http://127.0.0.1@evil.example/here", b"127.0.0.1", 421),
        (b"http://evil.example@127.0.0.1/here", b"127.0.0.1", 421),
        (b"http://evil.example?127.0.0.1/here", b"127.0.0.1", 421),
        (b"https://evil.example/here", b"127.0.0.1", 421),
        (b"http://127.0.0.1:1/here", b"127.0.0.1", 421),
    ],
)
async def test_a_target_that_names_another_host_is_refused(target: bytes, host: bytes, status: int) -> None:
    async with served(application=answer) as (url, _, _):
        request = b"GET %s HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n\r\n" % (target, host)
        said = Said(request, status, last=True)

        assert await heard(int(url.rpartition(":")[2]), [said], random.Random(0), half_close=False) == [status]
