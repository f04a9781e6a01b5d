"""HTTP servers on loopback: made with the official library, or written by hand."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import uvicorn

from tests.network import Answer, Received, read_request
from toolreeve.core import json
from toolreeve.core.mcp import Era
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.rpc.messages import Message
from toolreeve.upstream.server_spec import Kind, ServerSpec
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.http_client import new_http_transport
from toolreeve.upstream.transports.transport import OnLost, OnMessage, Transport

PATIENCE = 20.0
INFO = {"name": "toolreeve", "version": "0"}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "roots": {}}
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


@asynccontextmanager
async def served(app: Any) -> AsyncIterator[str]:
    """An application on a free port of loopback; gives its origin."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        running = asyncio.create_task(server.serve(sockets=[door]))
        while not server.started:
            await asyncio.sleep(0)
            if running.done():
                running.result()
        try:
            yield f"http://127.0.0.1:{door.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await running


def guarded(*allow: str) -> GuardedHttp:
    return GuardedHttp(NetworkGuard(NetworkSettings(allow=allow or ("*",))))


def spec_of(url: str, kind: Kind = "http", **more: Any) -> ServerSpec:
    return ServerSpec(name=more.pop("name", "web"), kind=kind, place=url, source="test", url=url, **more)


def transport_to(url: str, state: Path, kind: Kind = "http", **more: Any) -> Transport:
    authorize = more.pop("authorize", None)
    http = more.pop("http", None) or guarded()
    return new_http_transport(spec_of(url, kind, **more), http=http, state=state, authorize=authorize)


@asynccontextmanager
async def open_session(transport: Transport, era: Era | None = None) -> AsyncIterator[UpstreamSession]:
    session = UpstreamSession(transport, client_info=INFO, capabilities=CAPABILITIES)
    await session.open(era, PATIENCE)
    try:
        yield session
    finally:
        await session.close()


class MessageLog:
    """Records what comes over a transport."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Message] = asyncio.Queue()
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    @property
    def ends(self) -> tuple[OnMessage, OnLost]:
        return self.heard.put_nowait, self.lost.set_result

    async def next(self) -> Message:
        return await asyncio.wait_for(self.heard.get(), PATIENCE)

    async def reason(self) -> str:
        return await asyncio.wait_for(self.lost, PATIENCE)


@asynccontextmanager
async def listening_on(transport: Transport) -> AsyncIterator[MessageLog]:
    log = MessageLog()
    await transport.open(*log.ends)
    try:
        yield log
    finally:
        await transport.close()


def request(number: int, method: str = "tools/list", **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def result(body: bytes, **found: Any) -> bytes:
    """The answer to the request in a body."""
    return json.dumps({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": found})


def as_json(body: bytes, status: int = 200, headers: Mapping[str, str] = MappingProxyType({})) -> Answer:
    return Answer(status=status, body=body, headers={"content-type": "application/json", **headers})


Answering = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def by_hand(answer: Answering) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    """A handler that reads requests and leaves every byte of what is written to `answer`."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (got := await read_request(reader)) is not None:
            await answer(got, writer)

    return handle


def head(content_type: str = "text/event-stream", **more: str) -> bytes:
    fields = "".join(f"{name}: {value}\r\n" for name, value in more.items())
    return f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{fields}transfer-encoding: chunked\r\n\r\n".encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


END = b"0\r\n\r\n"
