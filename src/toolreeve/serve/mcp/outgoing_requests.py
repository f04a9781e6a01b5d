"""Requests to the client, matched to their responses by id.

A request that is no longer needed is cancelled at the client; a response without a request is ignored.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.core.mcp import PeerError
from toolreeve.rpc.errors import CONNECTION_CLOSED
from toolreeve.rpc.messages import Message, notification, read_error, request
from toolreeve.rpc.pending import OutstandingRequest, OutstandingRequests

ANSWER_TIMEOUT = 3600.0
"""Seconds until a request is given up; callers usually have shorter timeouts."""
_PREFIX = "toolreeve-"


class OutgoingRequests:
    """`post` sends a message."""

    def __init__(self, post: Callable[[Mapping[str, Any]], None]) -> None:
        self._post = post
        self._requests: OutstandingRequests[OutstandingRequest] = OutstandingRequests()

    async def send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PeerError."""
        outstanding = OutstandingRequest(asyncio.get_running_loop(), ANSWER_TIMEOUT)
        number = self._requests.add(outstanding)
        request_id = f"{_PREFIX}{number}"
        self._post(request(request_id, method, params))
        try:
            message = await outstanding.response
        except TimeoutError:
            self._withdraw(request_id, "timed out")
            raise PeerError(CONNECTION_CLOSED, "the client did not answer") from None
        except asyncio.CancelledError:
            self._withdraw(request_id, "no longer needed")
            raise
        finally:
            self._requests.remove(number)
        result = message.get("result")
        if not isinstance(result, dict):
            default = "the client's response has neither a result nor an error"
            raise PeerError(*read_error(message.get("error"), default))
        return result

    def resolve(self, message: Message) -> None:
        request_id = message.get("id")
        if isinstance(request_id, str) and request_id.startswith(_PREFIX):
            self._requests.settle({**message, "id": request_id.removeprefix(_PREFIX)})

    def close(self) -> None:
        """The client has disconnected."""
        self._requests.fail_all(lambda: PeerError(CONNECTION_CLOSED, "the client has disconnected"))

    def _withdraw(self, request_id: str, reason: str) -> None:
        self._post(notification("notifications/cancelled", {"requestId": request_id, "reason": reason}))
