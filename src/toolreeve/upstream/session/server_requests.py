"""Requests from a server to its caller: elicitation, sampling and roots.

A request goes to the caller for whom the server works and to no other: where two callers could be meant, to none.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolreeve.core.deadline import Deadline, await_answer
from toolreeve.core.mcp import Era, McpPeer, PeerError
from toolreeve.rpc.errors import INTERNAL_ERROR, METHOD_NOT_FOUND
from toolreeve.rpc.messages import Message, error_response, response
from toolreeve.upstream.session.request import PendingRequest

_MAX_OPEN = 32
_CAPABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}

Send = Callable[[Message], None]


class ServerRequests:
    """Answers the requests of one session's server. `pending` are our requests that it works on."""

    def __init__(self, pending: Iterable[PendingRequest], roots: Sequence[Mapping[str, Any]], send: Send) -> None:
        self._pending = pending
        self._roots = roots
        self._send = send
        self._open: dict[str | int, tuple[asyncio.Task[None], str]] = {}

    def handle(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> None:
        """Answered at once where no caller has to be asked."""
        if method == "ping":
            self._respond(request_id, {})
        elif method not in _CAPABILITY:
            self._respond_error(request_id, PeerError(METHOD_NOT_FOUND, f"this client does not know {method!r}"))
        else:
            self._forward(request_id, method, params)

    def _forward(self, request_id: str | int, method: str, params: Mapping[str, Any]) -> None:
        callers = self._callers()
        if len({None if peer is None else peer.session for peer in callers}) > 1:
            problem = "several callers share this connection, and the request does not say which one it is for"
            self._respond_error(request_id, PeerError(INTERNAL_ERROR, problem))
            return
        peer = callers[-1] if callers else None
        if peer is None or not _can_be_asked(peer, method):
            self._respond_without_caller(request_id, method)
        elif len(self._open) >= _MAX_OPEN or request_id in self._open:
            self._respond_error(request_id, PeerError(INTERNAL_ERROR, "too many requests are open"))
        else:
            task = asyncio.create_task(self._ask_caller(request_id, method, params, peer))
            self._open[request_id] = (task, peer.session)

    def _callers(self) -> list[McpPeer | None]:
        return [request.peer for request in self._pending if request.serves_caller]

    def _respond_without_caller(self, request_id: str | int, method: str) -> None:
        if method == "elicitation/create":
            self._respond(request_id, {"action": "cancel"})
        elif method == "roots/list":
            self._respond(request_id, {"roots": [dict(root) for root in self._roots]})
        else:
            self._respond_error(request_id, PeerError(METHOD_NOT_FOUND, "the caller does not support sampling"))

    async def _ask_caller(self, request_id: str | int, method: str, params: Mapping[str, Any], peer: McpPeer) -> None:
        request = peer.request(method, params)
        try:
            if method == "elicitation/create":
                result = await await_answer(request, self._deadlines(peer))
            else:
                result = await request
            self._respond(request_id, result)
        except PeerError as problem:
            self._respond_error(request_id, problem)
        except TimeoutError:
            self._respond_without_caller(request_id, method)
        finally:
            self._open.pop(request_id, None)

    def _deadlines(self, peer: McpPeer) -> list[Deadline]:
        """Of all requests for this caller: the question does not say which of them waits for the answer."""
        found = []
        for request in self._pending:
            is_for_peer = request.peer is not None and request.peer.session == peer.session
            if is_for_peer and request.deadline is not None:
                found.append(request.deadline)
        return found

    def cancel(self, request_id: Any) -> None:
        """The server has cancelled its request."""
        if isinstance(request_id, (str, int)) and request_id in self._open:
            self._open[request_id][0].cancel()

    def cancel_orphaned(self) -> None:
        """Cancel the requests to callers that the server no longer works for."""
        if self._open:
            served = {peer.session for peer in self._callers() if peer is not None}
            for task, session in self._open.values():
                if session not in served:
                    task.cancel()

    def close(self) -> None:
        for task, _ in self._open.values():
            task.cancel()

    def _respond(self, request_id: str | int, result: Mapping[str, Any]) -> None:
        self._send(response(request_id, result))

    def _respond_error(self, request_id: str | int, problem: PeerError) -> None:
        self._send(error_response(request_id, problem))


def _can_be_asked(peer: McpPeer, method: str) -> bool:
    return peer.era is Era.LEGACY and _CAPABILITY[method] in peer.capabilities
