"""Base of the HTTP transports: one exchange per message.

One task owns every exchange and ends them all. A failure of one exchange is the response to that message alone; only
what concerns every message loses the connection.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import httpx2

from toolreeve.core import json
from toolreeve.core.errors import ToolError
from toolreeve.core.visible import one_line
from toolreeve.rpc.errors import CONNECTION_CLOSED, INTERNAL_ERROR, PARSE_ERROR
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.rpc.messages import Message, encode, error_response
from toolreeve.upstream.transports.http_client import MAX_SHOWN, HttpClient, explain, media_type, redirect_problem
from toolreeve.upstream.transports.transport import Kind, OnLost, OnMessage, RemoteError, ServerUnavailable

VERSION = "io.modelcontextprotocol/protocolVersion"
NOTIFICATION_SECONDS = 30.0
MAX_EXCHANGES = 1000
NOT_MCP = frozenset({httpx2.codes.BAD_REQUEST, httpx2.codes.NOT_FOUND, httpx2.codes.METHOD_NOT_ALLOWED})
"""The statuses with which a URL that is not an MCP endpoint responds."""
JSON_BODY: Mapping[str, str] = {"content-type": "application/json"}
EVENT_STREAM = "text/event-stream"


class MessageExchange:
    """One message on its way. `id` is None where no response is due; `cancels` is another exchange that is over once
    this one was sent. `last_event_id` and `retry` say where and when a broken event stream may be resumed."""

    __slots__ = ("body", "cancels", "headers", "id", "last_event_id", "method", "retry", "task", "version")

    def __init__(self, message: Message, headers: Mapping[str, str] | None) -> None:
        self.body = encode(message)
        self.method = str(message.get("method", ""))
        self.id = message.get("id") if "method" in message else None
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.version = _version(message)
        self.task: asyncio.Task[None] | None = None
        self.cancels: MessageExchange | None = None
        self.last_event_id = ""
        self.retry = 1.0

    @property
    def key(self) -> Any:
        return self if self.id is None else self.id

    def note(self, event: httpx2.ServerSentEvent) -> None:
        self.last_event_id = event.id or self.last_event_id
        if event.retry is not None:
            self.retry = min(max(event.retry, 0), 3_600_000) / 1000

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class HttpTransport(ABC):
    """What the HTTP transports have in common. One task owns the client and every exchange."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client
        self._exchanges: dict[Any, MessageExchange] = {}
        self._queued_bytes = 0
        self._closing = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._is_connected = False
        self._closed_reason: str | None = None
        self._is_lost = False
        self._last_problem = ""
        self.not_mcp = False

    @property
    @abstractmethod
    def kind(self) -> Kind: ...

    @abstractmethod
    async def _connect(self) -> None:
        """What must happen before the first message. Raises ServerUnavailable and what the HTTP library raises."""

    @abstractmethod
    async def _post(self, exchange: MessageExchange) -> None:
        """Send one message and receive what comes back. Raises RemoteError where the response is an error of that
        message alone, ServerUnavailable where the connection is lost, and what the HTTP library raises."""

    @abstractmethod
    def _handle_locally(self, exchange: MessageExchange, message: Message) -> bool:
        """Whether a message need not be sent, because its effect is achieved here."""

    @abstractmethod
    def _on_response(self, message: Message, exchange: MessageExchange) -> None:
        """Learn from a response what later exchanges need."""

    @abstractmethod
    def _cancel_streams(self) -> None:
        """Cancel the streams that belong to no exchange."""

    @abstractmethod
    async def _end_session(self) -> None:
        """Tell the server that the session is over, where the protocol has a message for it."""

    async def open(self, on_message: OnMessage, on_lost: OnLost) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._run(ready))
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        if self._closed_reason is not None or self._owner is None:
            raise ServerUnavailable(self._closed_reason or "the connection is not open")
        exchange = MessageExchange(message, headers)
        if self._handle_locally(exchange, message):
            return
        if len(self._exchanges) >= MAX_EXCHANGES or self._queued_bytes + len(exchange.body) > MAX_MESSAGE:
            raise ServerUnavailable("the server does not read its requests: too many are queued")
        self._queued_bytes += len(exchange.body)
        self._exchanges[exchange.key] = exchange
        exchange.task = self._group.create_task(self._run_exchange(exchange))
        exchange.task.add_done_callback(lambda _: self._done(exchange))

    async def close(self) -> None:
        self._closed_reason = self._closed_reason or "the connection is closed"
        self._closing.set()
        if self._owner is not None:
            if not self._is_connected:
                self._owner.cancel()
            await asyncio.wait([self._owner])

    def last_output(self) -> str:
        return self._last_problem

    async def _run(self, ready: "asyncio.Future[None]") -> None:
        try:
            async with asyncio.TaskGroup() as self._group:
                await self._start(ready)
                await self._closing.wait()
                for exchange in self._exchanges.values():
                    exchange.cancel()
                self._cancel_streams()
            if not self._is_lost:
                with suppress(httpx2.HTTPError, ToolError, ServerUnavailable):
                    await self._end_session()
        except* Exception as problems:
            self._lose(f"the connection failed: {explain(problems.exceptions[0])}")
        finally:
            if not ready.done():
                ready.set_exception(ServerUnavailable(self._closed_reason or "the connection failed"))
            await self._client.close()

    async def _start(self, ready: "asyncio.Future[None]") -> None:
        try:
            await self._connect()
        except (httpx2.HTTPError, ToolError, ServerUnavailable) as problem:
            self._closing.set()
            if not ready.done():
                ready.set_exception(ServerUnavailable(explain(problem)))
        else:
            self._is_connected = True
            if not ready.done():
                ready.set_result(None)

    async def _run_exchange(self, exchange: MessageExchange) -> None:
        try:
            async with asyncio.timeout(NOTIFICATION_SECONDS if exchange.id is None else None):
                await self._post(exchange)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, ToolError, ServerUnavailable) as problem:
            self._lose(explain(problem))
        except RemoteError as problem:
            self._fail(exchange, problem)
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as problem:
            self._fail(exchange, RemoteError(CONNECTION_CLOSED, explain(problem)))

    def _done(self, exchange: MessageExchange) -> None:
        self._queued_bytes -= len(exchange.body)
        if self._exchanges.get(exchange.key) is exchange:
            del self._exchanges[exchange.key]
        if exchange.cancels is not None:
            exchange.cancels.cancel()

    def _fail(self, exchange: MessageExchange, problem: RemoteError) -> None:
        if exchange.id is None:
            self._last_problem = f"{exchange.method or 'a response'} was refused: {problem.message}"
        else:
            self._deliver(error_response(exchange.id, problem))

    def _receive(self, data: bytes | str, exchange: MessageExchange | None) -> bool:
        """Deliver the messages of one body or event; True where one of them answers the exchange."""
        try:
            found = json.loads(data)
        except ValueError as problem:
            raise RemoteError(PARSE_ERROR, f"the server sent invalid JSON: {explain(problem)}") from None
        messages = found if isinstance(found, list) else [found]
        answers = [self._receive_one(message, exchange) for message in messages if isinstance(message, dict)]
        return any(answers)

    def _receive_one(self, message: Message, exchange: MessageExchange | None) -> bool:
        if "method" in message:
            self._deliver(message)
            return False
        if exchange is not None and message.get("id") is None and "error" in message:
            message["id"] = exchange.id
        answers = exchange is not None and exchange.id is not None and str(message.get("id")) == str(exchange.id)
        if answers and exchange is not None:
            message["id"] = exchange.id
            self._on_response(message, exchange)
        elif other := self._exchanges.get(_key(message.get("id"))):
            other.cancel()
        self._deliver(message)
        return answers

    def _deliver(self, message: Message) -> None:
        if self._closed_reason is None:
            self._on_message(message)

    def _lose(self, reason: str) -> None:
        if self._closed_reason is None:
            self._closed_reason = reason
            self._is_lost = True
            self._closing.set()
            self._on_lost(reason)

    async def _raise_for_status(self, response: httpx2.Response) -> None:
        """For a response without success. Raises RemoteError, ServerUnavailable."""
        status = response.status_code
        body = await response.aread()
        if status == httpx2.codes.UNAUTHORIZED:
            raise ServerUnavailable(f"the server rejects our authorization (HTTP {status}){_excerpt(body)}")
        self.not_mcp = False
        if media_type(response) == "application/json" and (error := _error(body)):
            raise RemoteError(*error)
        self.not_mcp = status in NOT_MCP
        problem = redirect_problem(response) or f"the server responded with HTTP {status}{_excerpt(body)}"
        raise RemoteError(INTERNAL_ERROR, problem)


def _version(message: Message) -> str | None:
    """The revision that a message of the modern era names."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    version = meta.get(VERSION) if isinstance(meta, Mapping) else None
    return version if isinstance(version, str) else None


def _key(id_: Any) -> Any:
    return id_ if isinstance(id_, int | str) else None


def _error(body: bytes) -> tuple[int, str, Any] | None:
    """The JSON-RPC error in a body, if there is one."""
    with suppress(ValueError):
        found = json.loads(body)
        error = found.get("error") if isinstance(found, dict) else None
        if isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
            return error["code"], error["message"], error.get("data")
    return None


def _excerpt(body: bytes) -> str:
    text = one_line(body[: 4 * MAX_SHOWN].decode("utf-8", "replace")).strip()[:MAX_SHOWN]
    return f": {text}" if text else ""
