"""What did we ask the client, and what did it say? Questions carry numbers of ours, and answers come back by them.

A question that nobody needs answered any more is taken back; an answer to none is nothing.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.core.peer import PeerError
from toolreeve.serve.mcp.protocol import CONNECTION_CLOSED, INTERNAL_ERROR

ANSWER_TIMEOUT = 3600.0
"""How many seconds a client may take to answer; whoever asks may well give up before."""


class OutgoingRequests:
    def __init__(self, post: Callable[[Mapping[str, Any]], None]) -> None:
        self._post = post
        self._open: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._ids = itertools.count(1)

    async def send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PeerError."""
        request_id = f"toolreeve-{next(self._ids)}"
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._open[request_id] = waiting
        self._post({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                return await waiting
        except TimeoutError:
            self._withdraw(request_id, "nobody answered")
            raise PeerError(CONNECTION_CLOSED, "the client did not answer") from None
        except asyncio.CancelledError:
            self._withdraw(request_id, "not needed any more")
            raise
        finally:
            self._open.pop(request_id, None)

    def resolve(self, message: Mapping[str, Any]) -> None:
        request_id = message.get("id")
        waiting = self._open.pop(request_id, None) if isinstance(request_id, str) else None
        if waiting is None or waiting.done():
            return
        result = message.get("result")
        if isinstance(result, dict):
            waiting.set_result(result)
        else:
            waiting.set_exception(_error_in(message.get("error")))

    def close(self) -> None:
        """Nobody is there to answer any more."""
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(PeerError(CONNECTION_CLOSED, "the client is gone"))

    def _withdraw(self, request_id: str, reason: str) -> None:
        params = {"requestId": request_id, "reason": reason}
        self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _error_in(error: Any) -> PeerError:
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return PeerError(error["code"], str(error.get("message", "")), error.get("data"))
    return PeerError(INTERNAL_ERROR, "the client's answer is neither a result nor an error")
