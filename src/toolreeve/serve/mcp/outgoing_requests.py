"""What did we ask the client, and what did it say? Questions carry numbers of ours, and answers come back by them.

A question that nobody needs answered any more is taken back; an answer to none is nothing.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.core.peer import PeerError
from toolreeve.serve.mcp.protocol import CONNECTION_CLOSED, INTERNAL_ERROR

THOUGHT = 3600.0
"""How many seconds a client may take to answer; whoever asks may well give up before."""


class OutgoingRequests:
    def __init__(self, post: Callable[[Mapping[str, Any]], None]) -> None:
        self._post = post
        self._open: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    async def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PeerError."""
        number = f"toolreeve-{next(self._numbers)}"
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[number] = waiting
        self._post({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            async with asyncio.timeout(THOUGHT):
                return await waiting
        except TimeoutError:
            self._withdraw(number, "nobody answered")
            raise PeerError(CONNECTION_CLOSED, "the client did not answer") from None
        except asyncio.CancelledError:
            self._withdraw(number, "not needed any more")
            raise
        finally:
            self._open.pop(number, None)

    def answered(self, message: Mapping[str, Any]) -> None:
        number = message.get("id")
        waiting = self._open.pop(number, None) if isinstance(number, str) else None
        if waiting is None or waiting.done():
            return
        result = message.get("result")
        if isinstance(result, dict):
            waiting.set_result(result)
        else:
            waiting.set_exception(_error_in(message.get("error")))

    def end(self) -> None:
        """Nobody is there to answer any more."""
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(PeerError(CONNECTION_CLOSED, "the client is gone"))

    def _withdraw(self, number: str, reason: str) -> None:
        params = {"requestId": number, "reason": reason}
        self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _error_in(error: Any) -> PeerError:
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return PeerError(error["code"], str(error.get("message", "")), error.get("data"))
    return PeerError(INTERNAL_ERROR, "the client's answer is neither a result nor an error")
