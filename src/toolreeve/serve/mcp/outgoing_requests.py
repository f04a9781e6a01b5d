"""Requests from the server to the client, matched to their responses by id.

A request that is no longer needed is cancelled at the client; a response without a request is ignored.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.core.mcp import PeerError
from toolreeve.serve.mcp.protocol import CONNECTION_CLOSED, INTERNAL_ERROR

ANSWER_TIMEOUT = 3600.0
"""Seconds until a request is given up; callers usually have shorter timeouts."""


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
            self._withdraw(request_id, "timed out")
            raise PeerError(CONNECTION_CLOSED, "the client did not answer") from None
        except asyncio.CancelledError:
            self._withdraw(request_id, "no longer needed")
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
        """The client has disconnected."""
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(PeerError(CONNECTION_CLOSED, "the client has disconnected"))

    def _withdraw(self, request_id: str, reason: str) -> None:
        params = {"requestId": request_id, "reason": reason}
        self._post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _error_in(error: Any) -> PeerError:
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return PeerError(error["code"], str(error.get("message", "")), error.get("data"))
    return PeerError(INTERNAL_ERROR, "the client's response has neither a result nor an error")
