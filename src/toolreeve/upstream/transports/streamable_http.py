"""Streamable HTTP transport: each message is a POST.

The response is JSON or an event stream. In the legacy era a session id ties the messages together, and one more stream
carries what belongs to none of them. A session that the server no longer knows is a lost connection: none of its state
still holds.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import httpx2

from toolreeve.core.errors import ToolError
from toolreeve.core.visible import one_line
from toolreeve.rpc.errors import CONNECTION_CLOSED, METHOD_NOT_FOUND
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.rpc.messages import Message
from toolreeve.upstream.transports.http_base import (
    EVENT_STREAM,
    JSON_BODY,
    HttpTransport,
    MessageExchange,
)
from toolreeve.upstream.transports.http_client import MAX_SHOWN, HttpClient, explain, media_type
from toolreeve.upstream.transports.transport import Kind, RemoteError, ServerUnavailable

MAX_RESUMES = 5
MIN_RETRY_SECONDS = 0.05
MAX_RETRY_SECONDS = 60.0
DELETE_SECONDS = 3.0
ATTACH_SECONDS = 2.0
MAX_HEADER_VALUE = 1024


class StreamableHttpTransport(HttpTransport):
    """Holds the session id and the protocol revision, because requests that carry no message need them too."""

    def __init__(self, client: HttpClient) -> None:
        super().__init__(client)
        self._session_id: str | None = None
        self._version: str | None = None
        self._is_legacy = False
        self._initialized = asyncio.Event()
        self._initialized.set()
        self._attached = asyncio.Event()
        self._was_attached = False
        self._listener: asyncio.Task[None] | None = None

    @property
    def kind(self) -> Kind:
        return "http"

    async def _connect(self) -> None:
        """Nothing is sent before the first message."""

    async def _end_session(self) -> None:
        if self._session_id is None:
            return
        with suppress(TimeoutError):
            async with (
                asyncio.timeout(DELETE_SECONDS),
                self._client.exchange("DELETE", self._client.url, self._headers(None)),
            ):
                pass

    def _handle_locally(self, exchange: MessageExchange, message: Message) -> bool:
        """In the modern era a request is cancelled by closing its stream."""
        match exchange.method:
            case "initialize":
                self._is_legacy = True
                self._session_id = None
                self._version = None
            case "notifications/initialized":
                self._initialized.clear()
            case "notifications/cancelled":
                exchange.cancels = self._exchanges.get(_cancelled_id(message))
                if not self._is_legacy:
                    if exchange.cancels is not None:
                        exchange.cancels.cancel()
                    return True
        return False

    async def _post(self, exchange: MessageExchange) -> None:
        if exchange.method == "notifications/initialized":
            await self._send_initialized(exchange)
            return
        await self._initialized.wait()
        if exchange.id is None:
            await self._send_notification(exchange)
        elif not await self._send_request(exchange):
            await self._resume(exchange)

    async def _send_initialized(self, exchange: MessageExchange) -> None:
        """Later messages arrive after this one, when the server's own stream is already read."""
        try:
            await self._send_notification(exchange)
            if self._session_id is not None:
                self._listener = self._group.create_task(self._listen())
                await asyncio.wait_for(self._attached.wait(), ATTACH_SECONDS)
        except TimeoutError:
            pass
        finally:
            self._initialized.set()

    async def _send_notification(self, exchange: MessageExchange) -> None:
        headers = self._headers(exchange)
        async with self._client.exchange("POST", self._client.url, headers, exchange.body) as response:
            if not response.is_success:
                await self._check_refusal(response)

    async def _send_request(self, exchange: MessageExchange) -> bool:
        """False where the stream broke off before the response and can be resumed."""
        headers = self._headers(exchange)
        async with self._client.exchange("POST", self._client.url, headers, exchange.body) as response:
            if not response.is_success:
                await self._check_refusal(response)
            if exchange.method == "initialize":
                self._keep_session_id(response)
            match media_type(response):
                case "text/event-stream":
                    return await self._read_events(response, exchange)
                case "application/json":
                    if self._receive(await response.aread(), exchange):
                        return True
            raise RemoteError(CONNECTION_CLOSED, _no_response(response))

    async def _read_events(self, response: httpx2.Response, exchange: MessageExchange) -> bool:
        """True once the exchange is answered, False where the stream ended before and can be resumed."""
        try:
            async for event in httpx2.EventSource(response, max_event_size=MAX_MESSAGE):
                exchange.note(event)
                if event.event == "message" and event.data and self._receive(event.data, exchange):
                    return True
        except httpx2.SSEError:
            raise
        except httpx2.TransportError:
            if not exchange.last_event_id:
                raise
        if exchange.id is not None and not exchange.last_event_id:
            raise RemoteError(CONNECTION_CLOSED, "the server ended its response before it was complete")
        return False

    async def _resume(self, exchange: MessageExchange) -> None:
        """Resume a stream where it broke off, for as long as it makes progress."""
        failures = 0
        while failures < MAX_RESUMES:
            await asyncio.sleep(max(exchange.retry, MIN_RETRY_SECONDS))
            reached = exchange.last_event_id
            failures += 1
            headers = self._headers(exchange) | {"accept": EVENT_STREAM, "last-event-id": reached}
            try:
                async with self._client.exchange("GET", self._client.url, headers) as response:
                    if not response.is_success:
                        await self._check_refusal(response)
                    if await self._read_events(response, exchange):
                        return
            except (httpx2.ReadError, httpx2.RemoteProtocolError):
                continue
            if exchange.last_event_id != reached:
                failures = 0
        raise RemoteError(CONNECTION_CLOSED, "the server broke off its response and does not resume it")

    async def _listen(self) -> None:
        """Read the server's own stream, for as long as it offers one."""
        stream = MessageExchange({}, None)
        idle = 0
        while await self._listen_once(stream) and self._closed_reason is None:
            idle = idle + 1 if stream.last_event_id == "" else 0
            delay = max(stream.retry, MIN_RETRY_SECONDS) * 2 ** min(idle, 6)
            await asyncio.sleep(min(delay, MAX_RETRY_SECONDS))

    async def _listen_once(self, stream: MessageExchange) -> bool:
        headers = self._headers(stream) | {"accept": EVENT_STREAM}
        if stream.last_event_id:
            headers["last-event-id"] = stream.last_event_id
        stream.last_event_id = ""
        try:
            async with self._client.exchange("GET", self._client.url, headers) as response:
                self._attached.set()
                if not response.is_success or media_type(response) != EVENT_STREAM:
                    if self._was_attached and response.status_code == httpx2.codes.NOT_FOUND:
                        self._lose("the server ended the session")
                    return False
                self._was_attached = True
                await self._read_events(response, stream)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, ToolError, ServerUnavailable) as problem:
            self._lose(explain(problem))
            return False
        except (httpx2.HTTPError, RemoteError) as problem:
            self._last_problem = explain(problem)
        finally:
            self._attached.set()
        return True

    def _cancel_streams(self) -> None:
        if self._listener is not None:
            self._listener.cancel()

    async def _check_refusal(self, response: httpx2.Response) -> None:
        """Raises RemoteError, and ServerUnavailable where the server no longer knows the session."""
        may_be_unknown = response.status_code == httpx2.codes.NOT_FOUND and self._session_id is not None
        try:
            await self._raise_for_status(response)
        except RemoteError as problem:
            if may_be_unknown and problem.code != METHOD_NOT_FOUND:
                raise ServerUnavailable("the server ended the session") from None
            raise

    def _keep_session_id(self, response: httpx2.Response) -> None:
        session_id = response.headers.get("mcp-session-id")
        if session_id is None:
            return
        if not _is_header_safe(session_id):
            raise ServerUnavailable("the server sent an invalid Mcp-Session-Id")
        self._session_id = session_id

    def _on_response(self, message: Message, exchange: MessageExchange) -> None:
        result = message.get("result")
        if exchange.method == "initialize" and isinstance(result, dict):
            version = result.get("protocolVersion")
            self._version = version if isinstance(version, str) and _is_header_safe(version) else None

    def _headers(self, exchange: MessageExchange | None) -> dict[str, str]:
        headers: dict[str, str] = {"accept": f"application/json, {EVENT_STREAM}", **JSON_BODY}
        if self._session_id is not None:
            headers["mcp-session-id"] = self._session_id
        version = self._version
        if exchange is not None and exchange.version:
            version = exchange.version
        if version:
            headers["mcp-protocol-version"] = version
        return headers | exchange.headers if exchange is not None else headers


def _cancelled_id(message: Message) -> int | str | None:
    params = message.get("params")
    id_ = params.get("requestId") if isinstance(params, Mapping) else None
    return id_ if isinstance(id_, int | str) else None


def _no_response(response: httpx2.Response) -> str:
    content = one_line(media_type(response))[:MAX_SHOWN] or "no content type"
    return f"the server answered a request with HTTP {response.status_code} and {content!r}, not with a response"


def _is_header_safe(value: str) -> bool:
    """Whether a value from the server may be sent back in a header."""
    return 0 < len(value) <= MAX_HEADER_VALUE and all("!" <= character <= "~" for character in value)
