"""How is a server reached over streamable HTTP? A message is a POST; back comes one answer, or a stream of events.

In the legacy era a session id ties the messages together, and one more stream brings what belongs to none of them. A
session that the server no longer knows is a lost line: nothing that was said in it still holds.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import httpx2

from toolreeve.core.errors import ToolError
from toolreeve.core.visible import one_line
from toolreeve.upstream.transports.http_base import (
    CONNECTION_CLOSED,
    JSON_BODY,
    METHOD_NOT_FOUND,
    Errand,
    HttpTransport,
)
from toolreeve.upstream.transports.http_client import MAX_SHOWN, HttpClient, explain, media_type
from toolreeve.upstream.transports.transport import MAX_MESSAGE, Kind, Message, RemoteError, ServerUnavailable

RESUMES = 5
SLOWEST_RETRY = 60.0
LEAVE_SECONDS = 3.0
ATTACH_SECONDS = 2.0
MAX_SESSION_ID = 1024
EVENTS = "text/event-stream"


class StreamableHttpTransport(HttpTransport):
    """The session's id and revision are kept here, so that also what no message asks for carries them."""

    def __init__(self, web: HttpClient) -> None:
        super().__init__(web)
        self._session: str | None = None
        self._version: str | None = None
        self._is_legacy = False
        self._greeted = asyncio.Event()
        self._greeted.set()
        self._attached = asyncio.Event()
        self._was_attached = False
        self._overhearing: asyncio.Task[None] | None = None

    @property
    def kind(self) -> Kind:
        return "http"

    async def _arrive(self) -> None:
        """Nothing is sent before the first message."""

    async def _leave(self) -> None:
        if self._session is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS), self._web.exchange("DELETE", self._web.url, self._headers(None)):
                pass

    def _forgo(self, errand: Errand, message: Message) -> bool:
        """In the modern era closing a request's stream is what cancels it."""
        match errand.method:
            case "initialize":
                self._is_legacy, self._session, self._version = True, None, None
            case "notifications/initialized":
                self._greeted.clear()
            case "notifications/cancelled":
                errand.ends = self._errands.get(_cancelled(message))
                if not self._is_legacy:
                    if errand.ends is not None:
                        errand.ends.give_up()
                    return True
        return False

    async def _post(self, errand: Errand) -> None:
        if errand.method == "notifications/initialized":
            await self._greet(errand)
            return
        await self._greeted.wait()
        if errand.id is None:
            await self._tell(errand)
        elif not await self._ask(errand):
            await self._resume(errand)

    async def _greet(self, errand: Errand) -> None:
        """What is sent after the greeting arrives after it, and finds the server's own stream already heard."""
        try:
            await self._tell(errand)
            if self._session is not None:
                self._overhearing = self._group.create_task(self._overhear())
                await asyncio.wait_for(self._attached.wait(), ATTACH_SECONDS)
        except TimeoutError:
            pass
        finally:
            self._greeted.set()

    async def _tell(self, errand: Errand) -> None:
        headers = self._headers(errand)
        async with self._web.exchange("POST", self._web.url, headers, errand.body) as response:
            if not response.is_success:
                await self._judge(response)

    async def _ask(self, errand: Errand) -> bool:
        """Send a request; False where the stream broke off before its answer and can be taken up again."""
        async with self._web.exchange("POST", self._web.url, self._headers(errand), errand.body) as response:
            if not response.is_success:
                await self._judge(response)
            if errand.method == "initialize":
                self._join(response)
            match media_type(response):
                case "text/event-stream":
                    return await self._hear_out(response, errand)
                case "application/json":
                    if self._take(await response.aread(), errand):
                        return True
            raise RemoteError(CONNECTION_CLOSED, _no_answer(response))

    async def _hear_out(self, response: httpx2.Response, errand: Errand) -> bool:
        try:
            async for event in httpx2.EventSource(response, max_event_size=MAX_MESSAGE):
                errand.follow(event)
                if event.event == "message" and event.data and self._take(event.data, errand):
                    return True
        except httpx2.SSEError:
            raise
        except httpx2.TransportError:
            if not errand.cursor:
                raise
        if errand.id is not None and not errand.cursor:
            raise RemoteError(CONNECTION_CLOSED, "the server ended its answer before it was complete")
        return False

    async def _resume(self, errand: Errand) -> None:
        """Take up a stream where it broke off, as often as it gets any further."""
        failures = 0
        while failures < RESUMES:
            await asyncio.sleep(max(errand.retry, 0.05))
            reached, failures = errand.cursor, failures + 1
            headers = self._headers(errand) | {"accept": EVENTS, "last-event-id": errand.cursor}
            try:
                async with self._web.exchange("GET", self._web.url, headers) as response:
                    if not response.is_success:
                        await self._judge(response)
                    if await self._hear_out(response, errand):
                        return
            except (httpx2.ReadError, httpx2.RemoteProtocolError):
                continue
            failures = failures if errand.cursor == reached else 0
        raise RemoteError(CONNECTION_CLOSED, "the server broke off its answer and does not continue it")

    async def _overhear(self) -> None:
        """Listen to what the server says of its own accord, for as long as it has such a stream."""
        errand = Errand({}, None)
        idle = 0
        while await self._overhear_once(errand) and self._gone is None:
            idle = idle + 1 if errand.cursor == "" else 0
            await asyncio.sleep(min(max(errand.retry, 0.05) * 2 ** min(idle, 6), SLOWEST_RETRY))

    async def _overhear_once(self, errand: Errand) -> bool:
        cursor = {"last-event-id": errand.cursor} if errand.cursor else {}
        headers = self._headers(errand) | {"accept": EVENTS} | cursor
        errand.cursor = ""
        try:
            async with self._web.exchange("GET", self._web.url, headers) as response:
                self._attached.set()
                if not response.is_success or media_type(response) != EVENTS:
                    if self._was_attached and response.status_code == httpx2.codes.NOT_FOUND:
                        self._lose("the server has ended the session")
                    return False
                self._was_attached = True
                await self._hear_out(response, errand)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, ToolError, ServerUnavailable) as problem:
            self._lose(explain(problem))
            return False
        except (httpx2.HTTPError, RemoteError) as problem:
            self._words = explain(problem)
        finally:
            self._attached.set()
        return True

    def _end_streams(self) -> None:
        if self._overhearing is not None:
            self._overhearing.cancel()

    async def _judge(self, response: httpx2.Response) -> None:
        lost = response.status_code == httpx2.codes.NOT_FOUND and self._session is not None
        try:
            await self._refuse(response)
        except RemoteError as problem:
            if lost and problem.code != METHOD_NOT_FOUND:
                raise ServerUnavailable("the server has ended the session") from None
            raise

    def _join(self, response: httpx2.Response) -> None:
        session = response.headers.get("mcp-session-id")
        if session is None:
            return
        if not _is_plain(session):
            raise ServerUnavailable("the server gave a session id that is none")
        self._session = session

    def _answered(self, message: Message, errand: Errand) -> None:
        if errand.method == "initialize" and isinstance(result := message.get("result"), dict):
            version = result.get("protocolVersion")
            self._version = version if isinstance(version, str) and _is_plain(version) else None

    def _headers(self, errand: Errand | None) -> dict[str, str]:
        headers: dict[str, str] = {"accept": f"application/json, {EVENTS}", **JSON_BODY}
        if self._session is not None:
            headers["mcp-session-id"] = self._session
        if version := (errand.version if errand is not None else None) or self._version:
            headers["mcp-protocol-version"] = version
        return headers | errand.headers if errand is not None else headers


def _cancelled(message: Message) -> int | str | None:
    params = message.get("params")
    id_ = params.get("requestId") if isinstance(params, Mapping) else None
    return id_ if isinstance(id_, int | str) else None


def _no_answer(response: httpx2.Response) -> str:
    content = one_line(media_type(response))[:MAX_SHOWN] or "nothing"
    return f"the server answered a request with HTTP {response.status_code} and {content!r}"


def _is_plain(value: str) -> bool:
    """Whether a value of the server's may stand in a header of ours."""
    return 0 < len(value) <= MAX_SESSION_ID and all("!" <= character <= "~" for character in value)
