"""What is said to a server, and what does it answer? A session numbers requests and pairs answers with them.

Nothing that a server sends raises here: what does not fit the protocol is passed over, and who waits has a deadline.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.deadline import Deadline
from toolreeve.core.mcp import Era, McpPeer
from toolreeve.core.visible import one_line
from toolreeve.upstream.scrubber import Scrubber
from toolreeve.upstream.session import handshake, request_headers
from toolreeve.upstream.session.request import PendingRequest
from toolreeve.upstream.session.server_requests import INTERNAL_ERROR, ServerRequests
from toolreeve.upstream.transports.transport import Message, RemoteError, RequestRefused, ServerUnavailable, Transport

OnNotice = Callable[[str, Mapping[str, Any]], None]
OnLost = Callable[[str], None]
INVALID_PARAMS = -32602
_PREFIX = "io.modelcontextprotocol/"
_LONGEST_NUMBER = 18
_SHOWN = 500


class UpstreamSession:
    """One conversation over one line; `on_lost` hears when it ends without our doing. `veil` lies over all that comes.

    `tool_schemas` are told by whoever lists the tools: some servers want arguments repeated in headers.
    """

    def __init__(
        self,
        line: Transport,
        *,
        client_info: Mapping[str, Any],
        capabilities: Mapping[str, Any] | None = None,
        on_notice: OnNotice | None = None,
        on_lost: OnLost | None = None,
        roots: Sequence[Mapping[str, Any]] = (),
        veil: Scrubber | None = None,
    ) -> None:
        self.tool_schemas: dict[str, Any] = {}
        self._router = request_headers.Router()
        self.greeting = handshake.Greeting(version="")
        self._line, self._on_notice, self._on_lost = line, on_notice, on_lost
        self._client_info, self._capabilities = dict(client_info), dict(capabilities or {})
        self._veil = veil or Scrubber()
        self._headed = line.kind != "stdio"
        self._flights: dict[int, PendingRequest] = {}
        self._asks = ServerRequests(self._flights, roots, self._reply)
        self._next = 0
        self._gone: str | None = "it was not opened"

    @property
    def alive(self) -> bool:
        return self._gone is None

    @property
    def is_answered(self) -> bool:
        """Whether the line itself answers what the server does not know: HTTP does, by its status."""
        return self._headed

    @property
    def era(self) -> Era:
        return Era.MODERN if self.greeting.version == Era.MODERN else Era.LEGACY

    @property
    def server_info(self) -> Mapping[str, Any]:
        return self.greeting.server_info

    @property
    def server_capabilities(self) -> Mapping[str, Any]:
        return self.greeting.capabilities

    @property
    def instructions(self) -> str | None:
        return self.greeting.instructions

    async def open(self, era: Era | None = None, timeout: float = 30.0) -> None:
        """Connect and agree on how to speak; None finds out. Raises ServerAway."""
        self._loop = asyncio.get_running_loop()
        self._gone = None
        try:
            async with asyncio.timeout(timeout):
                await self._line.open(self._hear, self._lost)
                await handshake.shake(self, era)
        except TimeoutError:
            await self.close()
            raise ServerUnavailable(self._with_words(f"the server did not answer within {timeout:g} s")) from None
        except RemoteError as problem:
            await self.close()
            why = one_line(problem.message[:_SHOWN])
            told = self._with_words(f"the server refused to begin: {why}")
            raise RequestRefused(told, unspoken=self._line.unspoken) from None
        except BaseException:
            await self.close()
            raise

    def introduction(self) -> dict[str, Any]:
        """What `initialize` says of us."""
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
        """The raw result. `deadline` is told when a person is asked. Raises RemoteError, ServerAway, TimeoutError."""
        if self._gone is not None:
            raise ServerUnavailable(self._gone)
        self._next = number = self._next + 1
        flight = self._flights[number] = PendingRequest(method, peer, timeout, self._loop, deadline)
        try:
            self._send(number, method, self._stamped(number, params, peer))
            message = await flight.answer
            if flight.is_telling:
                await flight.told()
            return _result(message)
        except (asyncio.CancelledError, TimeoutError) as problem:
            self._abandon(number, method, "cancelled" if isinstance(problem, asyncio.CancelledError) else "timed out")
            raise
        finally:
            flight.land()
            self._flights.pop(number, None)
            self._asks.landed()

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Raises ServerAway."""
        if self._gone is not None:
            raise ServerUnavailable(self._gone)
        self._send(None, method, params)

    def _send(self, number: int | None, method: str, params: Mapping[str, Any] | None) -> None:
        message: Message = {"jsonrpc": "2.0", "method": method}
        if number is not None:
            message["id"] = number
        if params is not None:
            message["params"] = params
        headers = None
        if self._headed and self.greeting.version:
            headers = self._router.headers(self.greeting.version, method, params, self.tool_schemas)
        try:
            self._line.send(message, headers)
        except ValueError as problem:
            raise RemoteError(INVALID_PARAMS, f"the request cannot be sent as JSON: {problem}") from None

    def _stamped(self, number: int, params: Mapping[str, Any] | None, peer: McpPeer | None) -> Mapping[str, Any] | None:
        """With what this request says of itself: whether progress is wanted and, in the modern era, who asks."""
        modern = self.greeting.version == Era.MODERN
        wants_progress = peer is not None and peer.wants_progress
        given = None if params is None else params.get("_meta")
        if not (modern or wants_progress or given):
            return params
        meta = {name: value for name, value in (given or {}).items() if name != "progressToken"}
        if wants_progress:
            meta["progressToken"] = number
        if modern:
            meta |= self.stamps(peer)
        return {**(params or {}), "_meta": meta}

    def stamps(self, peer: McpPeer | None = None) -> dict[str, Any]:
        """What each request of the modern era carries."""
        said = {
            _PREFIX + "protocolVersion": str(Era.MODERN),
            _PREFIX + "clientInfo": self._client_info,
            _PREFIX + "clientCapabilities": self._capabilities if peer is None else dict(peer.capabilities),
        }
        if peer is not None and peer.log_level is not None:
            said[_PREFIX + "logLevel"] = peer.log_level
        return said

    def _abandon(self, number: int, method: str, why: str) -> None:
        """Tell the server that it need not go on. How a conversation begins cannot be taken back."""
        if self._gone is None and method not in handshake.METHODS:
            with contextlib.suppress(ServerUnavailable):
                self._send(None, "notifications/cancelled", {"requestId": number, "reason": why})

    def _reply(self, message: Message) -> None:
        if self._gone is not None:
            return
        headers = {request_headers.VERSION: self.greeting.version} if self._headed and self.greeting.version else None
        with contextlib.suppress(ServerUnavailable):
            try:
                self._line.send(message, headers)
            except ValueError:
                error = {"code": INTERNAL_ERROR, "message": "the answer cannot be sent as JSON"}
                self._line.send({"jsonrpc": "2.0", "id": message["id"], "error": error}, headers)

    def _hear(self, message: Message) -> None:
        message = self._veil.over(message)
        method = message.get("method")
        if method is None:
            self._answered(message)
            return
        params = message.get("params")
        if not isinstance(method, str):
            return
        if not isinstance(params, dict):
            params = {}
        number = message.get("id")
        if number is None:
            self._noticed(method, params)
        elif type(number) in (int, str):
            self._asks.ask(number, method, params)

    def _answered(self, message: Message) -> None:
        number = message.get("id")
        if type(number) is str and number.isascii() and number.isdigit() and len(number) <= _LONGEST_NUMBER:
            number = int(number)
        flight = self._flights.get(number) if type(number) is int else None
        if flight is not None and not flight.answer.done():
            flight.answer.set_result(message)

    def _noticed(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/progress":
            token = params.pop("progressToken", None)
            flight = self._flights.get(token) if type(token) is int else None
            if flight is not None and flight.peer is not None and flight.peer.wants_progress:
                flight.tell(method, params)
        elif method == "notifications/cancelled":
            self._asks.withdraw(params.get("requestId"))
        elif method == "notifications/message":
            self._logged(params)
        elif self._on_notice is not None:
            self._on_notice(method, params)

    def _logged(self, params: dict[str, Any]) -> None:
        """A log line does not say for whom it was written: it is shown where only one caller can be meant."""
        flights = [flight for flight in self._flights.values() if flight.works]
        if len({None if flight.peer is None else flight.peer.session for flight in flights}) == 1:
            flights[-1].log(params)

    def _lost(self, reason: str) -> None:
        if self._gone is None:
            self._end(self._with_words(reason))
            if self._on_lost is not None:
                self._on_lost(self._veil.text(reason))

    def _with_words(self, reason: str) -> str:
        words = self._line.last_words()
        return self._veil.text(f"{reason}; its last words: {words}" if words else reason)

    def _end(self, reason: str) -> None:
        self._gone = reason
        for flight in list(self._flights.values()):
            flight.fail(ServerUnavailable(reason))
        self._asks.close()

    async def close(self) -> None:
        if self._gone is None:
            self._end("the connection was closed")
        await self._line.close()


def _result(message: Message) -> dict[str, Any]:
    error = message.get("error")
    if error is not None:
        raise _error(error)
    result = message.get("result")
    if not isinstance(result, dict):
        raise RemoteError(INTERNAL_ERROR, "the server's answer holds neither a result nor an error")
    return result


def _error(error: Any) -> RemoteError:
    told = error if isinstance(error, dict) else {}
    code, text = told.get("code"), told.get("message")
    return RemoteError(
        code if type(code) is int else INTERNAL_ERROR,
        text if isinstance(text, str) else "the server failed without saying why",
        told.get("data"),
    )
