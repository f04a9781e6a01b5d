"""A server whose application answers some requests the short way and others as usual."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from tests.serve.raw import Header, post
from toolreeve.serve.app import bind
from toolreeve.serve.quick import Exchange, QuickProtocol, Take

HOST = (b"host", b"here")
MUCH = 4 * 1024 * 1024


def quick(body: bytes, *headers: Header) -> bytes:
    return post([HOST, *headers], body, target=b"/quick")


DOZE = quick(b"doze")


class Application:
    """Recognises what is posted to /quick, unless its body begins with `leave`. What is sent to /early is answered
    before its body has come; what is sent to /told hears which headers it had."""

    def __init__(self) -> None:
        self.asked = 0
        self.dozes, self.woken, self.left, self.answered = (asyncio.Event() for _ in range(4))

    def recognise(self, target: bytes, headers: Sequence[Header]) -> Take | None:
        self.asked += 1
        named = dict(headers).get(b"name", b"?")
        return (lambda body, exchange: self._take(named, body, exchange)) if target == b"/quick" else None

    def _take(self, name: bytes, body: bytes, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        return None if body.startswith(b"leave") else self._answer(name, body, exchange)

    async def _answer(self, name: bytes, body: bytes, exchange: Exchange) -> None:
        if body == b"crash":
            raise ZeroDivisionError
        exchange.left = self.left.set
        exchange.answer(200, b"text/plain", b"quick %s %s" % (name, await self._say(body)))
        self.answered.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = b"early" if scope["path"] == "/early" else await Request(scope, receive).body()
        if scope["path"] == "/told":
            body = b" ".join(name for name, _ in scope["headers"])
        if body == b"linger":
            self.dozes.set()
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
        await PlainTextResponse(b"usual " + await self._say(body))(scope, receive, send)
        self.answered.set()

    async def _say(self, body: bytes) -> bytes:
        """`doze` waits to be woken, `much` gets a long answer, and `think 3` one after so many turns of the loop."""
        if body == b"doze":
            self.dozes.set()
            await self.woken.wait()
        if body.startswith((b"think ", b"leave ")):
            for _ in range(int(body.split()[1])):
                await asyncio.sleep(0)
        return body * MUCH if body == b"much" else body


@asynccontextmanager
async def served(
    limit: int | None = None, protocol: type[QuickProtocol] = QuickProtocol
) -> AsyncIterator[tuple[str, Application, uvicorn.Server]]:
    application = Application()
    usual: dict[str, Any] = {"lifespan": "off", "log_config": None, "proxy_headers": False}
    server = uvicorn.Server(uvicorn.Config(application, http=protocol, limit_concurrency=limit, **usual))
    with bind("127.0.0.1", 0) as place:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([place]))
            host, port = place.getsockname()
            yield f"http://{host}:{port}", application, server
            application.woken.set()
            server.should_exit = True
