"""Each transport against a real other side: a pipe, an HTTP server, a terminal."""

import asyncio
import json
import os
import pty
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.agent.conftest import NewAgent
from tests.world import World
from toolreeve.agent.control.protocol import ControlProtocol
from toolreeve.agent.control.transports import CLITransport, HTTPTransport, InMemoryTransport, StdioTransport
from toolreeve.testing import call, say


@asynccontextmanager
async def started(transport: object) -> AsyncIterator[ControlProtocol]:
    protocol = ControlProtocol(transport)  # type: ignore[arg-type]
    await protocol.start()
    try:
        yield protocol
    finally:
        await protocol.stop()


async def test_stdio_speaks_a_line_for_each_message() -> None:
    from_agent, to_person = os.pipe()
    from_person, to_agent = os.pipe()
    async with started(StdioTransport(stdin=from_person, stdout=to_person)) as protocol:
        asking = asyncio.create_task(protocol.ask("Which?"))
        line = await asyncio.to_thread(os.read, from_agent, 65536)
        request = json.loads(line)
        os.write(to_agent, b"\n" + json.dumps({"request_id": request["request_id"], "data": {"answer": "a"}}).encode())
        os.write(to_agent, b"\n")

        assert await asking == "a"
    for descriptor in (from_agent, to_person, from_person, to_agent):
        os.close(descriptor)


class HttpPerson:
    """Answers approvals over /control and /stream, with comments in between."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[str] = asyncio.Queue()

    async def control(self, request: Request) -> Response:
        sent = await request.json()
        answer = {"request_id": sent["request_id"], "data": {"approved": True}}
        self.answers.put_nowait(f": comment\nevent: response\ndata: {json.dumps(answer)}\n\n")
        return JSONResponse({})

    async def stream(self, _: Request) -> Response:
        async def events() -> AsyncIterator[str]:
            while True:
                yield await self.answers.get()

        return StreamingResponse(events(), media_type="text/event-stream")


@asynccontextmanager
async def serving(person: HttpPerson) -> AsyncIterator[str]:
    app = Starlette(routes=[Route("/control", person.control, methods=["POST"]), Route("/stream", person.stream)])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


async def test_http_posts_requests_and_reads_events() -> None:
    async with serving(HttpPerson()) as url, started(HTTPTransport(url)) as protocol:
        assert await protocol.approve("deploy") is True


async def test_http_names_what_does_not_answer() -> None:
    with pytest.raises(ValueError, match="http://"):
        HTTPTransport("localhost:1")
    async with started(HTTPTransport("http://127.0.0.1:9")) as protocol:
        with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9"):
            await protocol.approve("deploy")


@pytest.mark.parametrize(("typed", "approved"), [(b"y\n", True), (b"n\n", False), (b"maybe\nno\n", False)])
async def test_a_person_at_the_terminal_decides(typed: bytes, approved: bool) -> None:
    controller, terminal = pty.openpty()
    async with started(CLITransport(os.ttyname(terminal))) as protocol:
        asking = asyncio.create_task(protocol.approve("deploy", {"to": "production"}))
        for line in typed.splitlines(keepends=True):
            await read_until(controller, b"[n] no: ")
            os.write(controller, line)

        assert await asking is approved
    os.close(controller)
    os.close(terminal)


async def test_an_option_is_chosen_by_number() -> None:
    controller, terminal = pty.openpty()
    async with started(CLITransport(os.ttyname(terminal))) as protocol:
        asking = asyncio.create_task(protocol.ask("Which colour?", ["red", "blue"]))
        await read_until(controller, b"> ")
        os.write(controller, b"7\n")
        await read_until(controller, b"> ")
        os.write(controller, b"2\n")

        assert await asking == "blue"
    os.close(controller)
    os.close(terminal)


async def read_until(descriptor: int, wanted: bytes) -> bytes:
    seen = b""
    while not seen.endswith(wanted):
        seen += await asyncio.to_thread(os.read, descriptor, 4096)
    return seen


async def test_a_transport_connects_once_and_closes_twice() -> None:
    transport = InMemoryTransport()
    with pytest.raises(ConnectionError):
        await transport.write("x")
    await transport.connect()
    assert transport.is_ready()
    with pytest.raises(RuntimeError):
        await transport.connect()
    await transport.close()
    await transport.close()
    assert not transport.is_ready()


async def test_a_person_elsewhere_approves_the_calls_of_an_agent_over_http(
    new_agent: NewAgent, world: World, provider: str
) -> None:
    async with serving(HttpPerson()) as url, started(HTTPTransport(url)) as protocol:
        write = call("write_file", path="a.txt", content="hello")
        agent, model = new_agent(write, say("written"), provider=provider, control_protocol=protocol)

        result = await agent.run_async(task="Write it")

    assert result.completed
    assert model.rejections == []
    assert (world.workspace / "a.txt").read_text() == "hello"
