"""MCP client session: requests, notifications and server requests over one transport.

Nothing that a server sends raises here: messages that do not fit the protocol are ignored, and each waiting caller has
a deadline.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.deadline import Deadline
from toolreeve.core.mcp import Era, McpPeer
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.visible import one_line
from toolreeve.rpc import messages
from toolreeve.rpc.errors import INTERNAL_ERROR, INVALID_PARAMS
from toolreeve.rpc.messages import Message
from toolreeve.rpc.pending import OutstandingRequests
from toolreeve.upstream.session import handshake, request_headers
from toolreeve.upstream.session.request import PendingRequest
from toolreeve.upstream.session.server_requests import ServerRequests
from toolreeve.upstream.transports.transport import OnLost, RemoteError, RequestRefused, ServerUnavailable, Transport

OnNotification = Callable[[str, Mapping[str, Any]], None]
_META_PREFIX = "io.modelcontextprotocol/"
_MAX_SHOWN = 500


class UpstreamSession:
    """One session over one transport; `on_lost` is called when it ends without our doing, and `scrubber` redacts all
    that comes.

    `tool_schemas` are set when the tools are listed: some servers want arguments repeated in headers.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any] | None = None,
        on_notification: OnNotification | None = None,
        on_lost: OnLost | None = None,
        roots: Sequence[Mapping[str, Any]] = (),
        scrubber: Scrubber | None = None,
    ) -> None:
        self.tool_schemas: dict[str, Any] = {}
        self.handshake = handshake.HandshakeResult(version="")
        self._transport = transport
        self._on_notification = on_notification
        self._on_lost = on_lost
        self._client_info = dict(client_info)
        self._capabilities = dict(capabilities or {})
        self._scrubber = scrubber or Scrubber()
        self._headers = request_headers.RequestHeaders()
        self._uses_headers = transport.kind != "stdio"
        self._pending: OutstandingRequests[PendingRequest] = OutstandingRequests()
        self._server_requests = ServerRequests(self._pending, roots, self._send_response)
        self._closed_reason: str | None = "it was not opened"

    @property
    def alive(self) -> bool:
        return self._closed_reason is None

    @property
    def rejects_unknown_methods(self) -> bool:
        """Whether a request that the server does not know is always answered: HTTP does that by its status."""
        return self._uses_headers

    @property
    def era(self) -> Era:
        return Era.MODERN if self.handshake.version == Era.MODERN else Era.LEGACY

    @property
    def server_info(self) -> Mapping[str, Any]:
        return self.handshake.server_info

    @property
    def server_capabilities(self) -> Mapping[str, Any]:
        return self.handshake.capabilities

    @property
    def instructions(self) -> str | None:
        return self.handshake.instructions

    async def open(self, era: Era | None = None, timeout: float = 30.0) -> None:
        """Connect and negotiate the protocol; without an era, detects it. Raises ServerUnavailable."""
        self._loop = asyncio.get_running_loop()
        self._closed_reason = None
        try:
            async with asyncio.timeout(timeout):
                await self._transport.open(self._on_message, self._on_transport_lost)
                await handshake.negotiate(self, era)
        except TimeoutError:
            await self.close()
            raise ServerUnavailable(self._with_output(f"the server did not respond within {timeout:g} s")) from None
        except RemoteError as problem:
            await self.close()
            reason = f"the server refused the handshake: {one_line(problem.message[:_MAX_SHOWN])}"
            raise RequestRefused(self._with_output(reason), not_mcp=self._transport.not_mcp) from None
        except BaseException:
            await self.close()
            raise

    def introduction(self) -> dict[str, Any]:
        """What `initialize` says about us."""
        return {"capabilities": self._capabilities, "clientInfo": self._client_info}

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        peer: McpPeer | None = None,
        timeout: float | None = None,
        deadline: Deadline | None = None,
    ) -> dict[str, Any]:
        """The raw result. `deadline` pauses while a person is asked. Raises RemoteError, ServerUnavailable,
        TimeoutError."""
        if self._closed_reason is not None:
            raise ServerUnavailable(self._closed_reason)
        request = PendingRequest(method, peer, timeout, self._loop, deadline)
        request_id = self._pending.add(request)
        try:
            params = self._with_meta(request_id, params, peer)
            self._send(messages.request(request_id, method, params), method, params)
            message = await request.response
            if request.is_forwarding:
                await request.flush()
            return _result(message)
        except asyncio.CancelledError:
            self._cancel(request_id, method, "cancelled")
            raise
        except TimeoutError:
            self._cancel(request_id, method, "timed out")
            raise
        finally:
            self._pending.remove(request_id)
            self._server_requests.cancel_orphaned()

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Raises ServerUnavailable."""
        if self._closed_reason is not None:
            raise ServerUnavailable(self._closed_reason)
        self._send(messages.notification(method, params), method, params)

    def _send(self, message: Message, method: str, params: Mapping[str, Any] | None) -> None:
        headers = None
        if self._uses_headers and self.handshake.version:
            headers = self._headers.build(self.handshake.version, method, params, self.tool_schemas)
        try:
            self._transport.send(message, headers)
        except ValueError as problem:
            raise RemoteError(INVALID_PARAMS, f"the request cannot be sent as JSON: {problem}") from None

    def _with_meta(
        self, request_id: int, params: Mapping[str, Any] | None, peer: McpPeer | None
    ) -> Mapping[str, Any] | None:
        """With a progress token where the caller wants progress and, in the modern era, the client's identity."""
        is_modern = self.handshake.version == Era.MODERN
        wants_progress = peer is not None and peer.wants_progress
        given = None if params is None else params.get("_meta")
        if not (is_modern or wants_progress or given):
            return params
        meta = {name: value for name, value in (given or {}).items() if name != "progressToken"}
        if wants_progress:
            meta["progressToken"] = request_id
        if is_modern:
            meta |= self.modern_meta(peer)
        return {**(params or {}), "_meta": meta}

    def modern_meta(self, peer: McpPeer | None = None) -> dict[str, Any]:
        """The `_meta` of every request of the modern era."""
        meta = {
            _META_PREFIX + "protocolVersion": str(Era.MODERN),
            _META_PREFIX + "clientInfo": self._client_info,
            _META_PREFIX + "clientCapabilities": self._capabilities if peer is None else dict(peer.capabilities),
        }
        if peer is not None and peer.log_level is not None:
            meta[_META_PREFIX + "logLevel"] = peer.log_level
        return meta

    def _cancel(self, request_id: int, method: str, reason: str) -> None:
        """Tell the server to stop working on a request. The handshake cannot be cancelled."""
        if self._closed_reason is None and method not in handshake.METHODS:
            with contextlib.suppress(ServerUnavailable):
                self.notify("notifications/cancelled", {"requestId": request_id, "reason": reason})

    def _send_response(self, message: Message) -> None:
        if self._closed_reason is not None:
            return
        headers = None
        if self._uses_headers and self.handshake.version:
            headers = {request_headers.VERSION: self.handshake.version}
        with contextlib.suppress(ServerUnavailable):
            try:
                self._transport.send(message, headers)
            except ValueError:
                problem = RemoteError(INTERNAL_ERROR, "the response cannot be sent as JSON")
                self._transport.send(messages.error_response(message["id"], problem), headers)

    def _on_message(self, message: Message) -> None:
        message = self._scrubber.message(message)
        method = message.get("method")
        if method is None:
            self._pending.settle(message)
            return
        params = message.get("params")
        if not isinstance(method, str):
            return
        if not isinstance(params, dict):
            params = {}
        request_id = message.get("id")
        if request_id is None:
            self._notified(method, params)
        elif type(request_id) in (int, str):
            self._server_requests.handle(request_id, method, params)

    def _notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/progress":
            token = params.pop("progressToken", None)
            request = self._pending.get(token)
            if request is not None and request.peer is not None and request.peer.wants_progress:
                request.forward(method, params)
        elif method == "notifications/cancelled":
            self._server_requests.cancel(params.get("requestId"))
        elif method == "notifications/message":
            self._forward_log(params)
        elif self._on_notification is not None:
            self._on_notification(method, params)

    def _forward_log(self, params: dict[str, Any]) -> None:
        """A log message does not say which request it belongs to: it is forwarded where only one caller is possible."""
        requests = [request for request in self._pending if request.serves_caller]
        callers = {None if request.peer is None else request.peer.session for request in requests}
        if len(callers) == 1:
            requests[-1].forward_log(params)

    def _on_transport_lost(self, reason: str) -> None:
        if self._closed_reason is None:
            self._end(self._with_output(reason))
            if self._on_lost is not None:
                self._on_lost(self._scrubber.text(reason))

    def last_output(self) -> str:
        """The last that the server said outside of the protocol, redacted."""
        return Redactor().text(self._scrubber.text(self._transport.last_output()))

    def _with_output(self, reason: str) -> str:
        output = self._transport.last_output()
        said = self._scrubber.text(f"{reason}; its last output: {output}" if output else reason)
        return Redactor().text(said)

    def _end(self, reason: str) -> None:
        self._closed_reason = reason
        self._pending.fail_all(lambda: ServerUnavailable(reason))
        self._server_requests.close()

    async def close(self) -> None:
        if self._closed_reason is None:
            self._end("the connection was closed")
        await self._transport.close()


def _result(message: Message) -> dict[str, Any]:
    error = message.get("error")
    if error is not None:
        raise RemoteError(*messages.read_error(error, "the server failed without giving a reason"))
    result = message.get("result")
    if not isinstance(result, dict):
        raise RemoteError(INTERNAL_ERROR, "the server's response has neither a result nor an error")
    return result
