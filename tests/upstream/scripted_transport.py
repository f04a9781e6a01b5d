"""A transport whose server is the test itself."""

import asyncio
from collections.abc import Mapping
from typing import Any

from toolreeve.core.mcp import Era
from toolreeve.rpc.messages import Message
from toolreeve.upstream.session.session import UpstreamSession
from toolreeve.upstream.transports.transport import Kind, OnLost, OnMessage

INFO = {"name": "toolreeve", "version": "0"}


class ScriptedTransport:
    """`say` and `lose` are the server's doing; `sent` waits for what it gets, with the headers beside it."""

    def __init__(self, kind: Kind = "stdio") -> None:
        self._kind: Kind = kind
        self.sent: asyncio.Queue[tuple[Message, Mapping[str, str] | None]] = asyncio.Queue()
        self.closed = False
        self.words = ""
        self.not_mcp = False

    @property
    def kind(self) -> Kind:
        return self._kind

    async def open(self, hear: OnMessage, lost: OnLost) -> None:
        self.say, self.lose = hear, lost

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        self.sent.put_nowait((message, headers))

    async def close(self) -> None:
        self.closed = True

    def last_output(self) -> str:
        return self.words

    async def next(self) -> Message:
        return (await asyncio.wait_for(self.sent.get(), 5))[0]

    async def answer(self, result: Any) -> Message:
        """To the next request, which is returned."""
        asked = await self.next()
        self.say({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        return asked

    async def refuse(self, code: int, message: str = "no", data: Any = None) -> Message:
        asked = await self.next()
        self.say({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": message, "data": data}})
        return asked


def initialized(version: str = "2025-11-25") -> dict[str, Any]:
    return {"protocolVersion": version, "capabilities": {}, "serverInfo": {"name": "scripted", "version": "1"}}


def discovered(*versions: str) -> dict[str, Any]:
    return {"supportedVersions": list(versions or ["2026-07-28"]), "capabilities": {}, "resultType": "complete"}


async def opened(transport: ScriptedTransport, era: Era = Era.LEGACY, **options: Any) -> UpstreamSession:
    """A session that has begun."""
    session = UpstreamSession(transport, client_info=INFO, **options)
    opening = asyncio.ensure_future(session.open(era, 5))
    if era is Era.LEGACY:
        await transport.answer(initialized())
        await transport.next()
    else:
        await transport.answer(discovered())
    await opening
    return session
