"""A server whose application answers some requests on the fast path."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from tests.serve.raw_http import Header, post
from toolreeve.config.sections.serve import Serve
from toolreeve.serve.app import bind
from toolreeve.serve.exchange import FastHandler, HttpExchange
from toolreeve.serve.limits import Usage, read_limits
from toolreeve.serve.protocol import HttpProtocol, SharedServerState

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

    def find_fast_handler(self, target: bytes, headers: Sequence[Header], _: HttpProtocol) -> FastHandler | None:
        self.asked += 1
        named = dict(headers).get(b"name", b"?")
        return (lambda body, exchange: self._take(named, body, exchange)) if target == b"/quick" else None

    def _take(self, name: bytes, body: bytes, exchange: HttpExchange) -> Coroutine[Any, Any, None] | None:
        return None if body.startswith(b"leave") else self._answer(name, body, exchange)

    async def _answer(self, name: bytes, body: bytes, exchange: HttpExchange) -> None:
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
    protocol: type[HttpProtocol] = HttpProtocol, *, application: Any = None, place: str = "127.0.0.1", **limits: Any
) -> AsyncIterator[tuple[str, Any, uvicorn.Server]]:
    """`limits` are settings of `[serve]`, and `admit` is as the entrance has it."""
    app = application or Application()
    admit = limits.pop("admit", None)
    shared = SharedServerState(
        usage=Usage(read_limits(Serve(**limits))),
        find_fast_handler=getattr(app, "find_fast_handler", lambda *_: None),
        admit=admit,
    )
    config = uvicorn.Config(app, http=partial(protocol, shared), lifespan="off", log_config=None)  # type: ignore[arg-type]
    server = uvicorn.Server(config)
    with bind(place, 0) as near:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve([near]))
            yield f"http://{f'[{place}]' if ':' in place else place}:{near.getsockname()[1]}", app, server
            if isinstance(app, Application):
                app.woken.set()
            server.should_exit = True
