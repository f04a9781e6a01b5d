"""JSON-RPC with an ACP peer: requests both ways, notifications in order.

A peer can neither fill our memory nor end the connection by what it sends: its running requests are counted, an id that
is still in use is refused, and whatever is no message of the protocol is ignored.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolreeve.core.errors import ToolError, describe_crash
from toolreeve.core.mcp import RpcError
from toolreeve.rpc.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, REQUEST_CANCELLED
from toolreeve.rpc.messages import Id, Message, error_response, notification, read_error, request, response
from toolreeve.rpc.pending import OutstandingRequest, OutstandingRequests

PROTOCOL_VERSION = 1
MAX_RUNNING = 64
"""Requests of the peer that are worked on at once."""
_LONGEST_ID = 200
Handle = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
Notified = Callable[[str, Mapping[str, Any]], None]
_logger = logging.getLogger(__name__)


class AcpError(RpcError):
    """The peer answered with an error, or is gone."""


class AcpConnection:
    """`handle` answers requests of the peer, each in its own task; `notified` is called in the order of arrival."""

    def __init__(self, send: Callable[[Message], None], handle: Handle, notified: Notified) -> None:
        self._send = send
        self._handle = handle
        self._notified = notified
        self._outgoing: OutstandingRequests[OutstandingRequest] = OutstandingRequests()
        self._running: dict[Id, asyncio.Task[None]] = {}
        self._lost = ""

    def receive(self, message: Message) -> None:
        method = message.get("method")
        params = message.get("params")
        if not isinstance(method, str):
            self._outgoing.settle(message)
        elif "id" in message:
            self._start(message["id"], method, {} if params is None else params)
        elif method == "$/cancel_request" and isinstance(params, dict):
            self._cancel(params.get("requestId"))
        elif isinstance(params, dict):
            self._notified(method, params)

    def _start(self, number: Any, method: str, params: Any) -> None:
        if type(number) not in (int, str) or len(str(number)) > _LONGEST_ID:
            self._refuse(None, INVALID_REQUEST, "the id must be a whole number or a short text")
        elif number in self._running:
            self._refuse(number, INVALID_REQUEST, f"the id {number!r} belongs to a request that is still running")
        elif len(self._running) >= MAX_RUNNING:
            self._refuse(number, INTERNAL_ERROR, f"{MAX_RUNNING} requests are running: wait for one of them")
        elif not isinstance(params, dict):
            self._refuse(number, INVALID_PARAMS, "params must be an object")
        else:
            task = asyncio.create_task(self._answer(number, method, params))
            self._running[number] = task
            task.add_done_callback(lambda ended: self._end(number, ended))

    def _end(self, number: Id, ended: "asyncio.Task[None]") -> None:
        """A request that is cancelled before it has begun is answered as well."""
        self._running.pop(number, None)
        if ended.cancelled():
            self._refuse(number, REQUEST_CANCELLED, "the request was cancelled")

    def _refuse(self, number: Id | None, code: int, message: str) -> None:
        self._reply(error_response(number, RpcError(code, message)))

    def _cancel(self, number: Any) -> None:
        task = self._running.get(number) if type(number) in (int, str) else None
        if task is not None:
            task.cancel()

    async def _answer(self, number: Id, method: str, params: Mapping[str, Any]) -> None:
        try:
            answer = response(number, await self._handle(method, params))
        except RpcError as refusal:
            answer = error_response(number, refusal)
        except ToolError as refusal:
            answer = error_response(number, RpcError(INTERNAL_ERROR, refusal.message))
        except Exception as crash:
            _logger.exception("the request %s failed", method)
            answer = error_response(number, RpcError(INTERNAL_ERROR, describe_crash(crash)))
        self._reply(answer)

    def _reply(self, message: Message) -> None:
        try:
            self._send(message)
        except Exception as problem:  # the peer is gone, or does not read
            _logger.debug("an answer was not sent: %s", problem)

    async def request(
        self, method: str, params: Mapping[str, Any], timeout: float | None = None, *, withdraws: bool = False
    ) -> dict[str, Any]:
        """With `withdraws`, the peer is told when nobody waits any longer. Raises AcpError, and TimeoutError."""
        if self._lost:
            raise AcpError(INTERNAL_ERROR, self._lost)
        outstanding = OutstandingRequest(asyncio.get_running_loop(), timeout)
        number = self._outgoing.add(outstanding)
        try:
            self._send(request(number, method, params))
            answer = await outstanding.response
        except asyncio.CancelledError:
            if withdraws and not self._lost:
                self._reply(notification("$/cancel_request", {"requestId": number}))
            raise
        finally:
            self._outgoing.remove(number)
        if "error" in answer:
            raise AcpError(*read_error(answer["error"], f"{method} failed"))
        result = answer.get("result")
        return result if isinstance(result, dict) else {}

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self._send(notification(method, params))

    def lose(self, reason: str) -> None:
        """The peer is gone: nothing that waits for it waits any longer."""
        self._lost = reason
        self._outgoing.fail_all(lambda: AcpError(INTERNAL_ERROR, reason))

    async def cancel_requests(self) -> None:
        """Those of the peer that are worked on."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
