"""How are messages sent that each travel as a request of their own? As errands of one owner, which ends them all.

What goes wrong with one errand is the answer to that message alone; only what concerns every message loses the line.
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
from toolreeve.upstream.transports.http_client import MAX_SHOWN, HttpClient, explain, media_type, unfollowed
from toolreeve.upstream.transports.transport import (
    MAX_MESSAGE,
    Hear,
    Kind,
    Lost,
    Message,
    RemoteError,
    ServerUnavailable,
)

PARSE_ERROR, METHOD_NOT_FOUND, INTERNAL_ERROR, CONNECTION_CLOSED = -32700, -32601, -32603, -32000
VERSION = "io.modelcontextprotocol/protocolVersion"
NOTICE_SECONDS = 30.0
MAX_ERRANDS = 1000
UNKNOWN_HERE = frozenset({httpx2.codes.BAD_REQUEST, httpx2.codes.NOT_FOUND, httpx2.codes.METHOD_NOT_ALLOWED})
JSON_BODY: Mapping[str, str] = {"content-type": "application/json"}


class Errand:
    """One message on its way. `id` is None where no answer is due; `ends` is another that is over once this has gone
    out. `cursor` and `retry` say where and when a broken stream of events may be taken up again."""

    __slots__ = ("body", "cursor", "ends", "headers", "id", "method", "retry", "task", "version")

    def __init__(self, message: Message, headers: Mapping[str, str] | None) -> None:
        self.body = _encode(message)
        self.method = str(message.get("method", ""))
        self.id = message.get("id") if "method" in message else None
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.version = _version(message)
        self.task: asyncio.Task[None] | None = None
        self.ends: Errand | None = None
        self.cursor, self.retry = "", 1.0

    def follow(self, event: httpx2.ServerSentEvent) -> None:
        self.cursor = event.id or self.cursor
        if event.retry is not None:
            self.retry = min(max(event.retry, 0), 3_600_000) / 1000

    def give_up(self) -> None:
        if self.task is not None:
            self.task.cancel()


class HttpTransport(ABC):
    """What the lines over HTTP have in common. One task owns the client and every errand."""

    def __init__(self, web: HttpClient) -> None:
        self._web = web
        self._errands: dict[Any, Errand] = {}
        self._held = 0
        self._over = asyncio.Event()
        self._home: asyncio.Task[None] | None = None
        self._has_arrived = False
        self._gone: str | None = None
        self._is_lost = False
        self._words = ""
        self.unspoken = False

    @property
    @abstractmethod
    def kind(self) -> Kind: ...

    @abstractmethod
    async def _arrive(self) -> None:
        """What must have happened before the first message. Raises ServerAway and what the HTTP library raises."""

    @abstractmethod
    async def _post(self, errand: Errand) -> None:
        """Carry one message and hear what comes back. Raises RemoteError where the answer is an error of that message
        alone, ServerAway where the line is of no more use, and what the HTTP library raises."""

    @abstractmethod
    def _forgo(self, errand: Errand, message: Message) -> bool:
        """Whether a message need not be sent, because what it asks for can be done here."""

    @abstractmethod
    def _answered(self, message: Message, errand: Errand) -> None:
        """Learn from the answer to an errand what later ones need."""

    @abstractmethod
    def _end_streams(self) -> None:
        """End what listens without having been sent."""

    @abstractmethod
    async def _leave(self) -> None:
        """Say goodbye, where there is somebody who waits for it."""

    async def open(self, hear: Hear, lost: Lost) -> None:
        self._hear, self._lost = hear, lost
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._home = asyncio.create_task(self._live(ready))
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    def send(self, message: Message, headers: Mapping[str, str] | None = None) -> None:
        if self._gone is not None or self._home is None:
            raise ServerUnavailable(self._gone or "the line is not open")
        errand = Errand(message, headers)
        if self._forgo(errand, message):
            return
        if len(self._errands) >= MAX_ERRANDS or self._held + len(errand.body) > MAX_MESSAGE:
            raise ServerUnavailable("the server does not take what is sent to it: too many messages wait")
        self._held += len(errand.body)
        self._errands[errand if errand.id is None else errand.id] = errand
        errand.task = self._group.create_task(self._run(errand))
        errand.task.add_done_callback(lambda _: self._done(errand))

    async def close(self) -> None:
        self._gone = self._gone or "the line is closed"
        self._over.set()
        if self._home is not None:
            if not self._has_arrived:
                self._home.cancel()
            await asyncio.wait([self._home])

    def last_words(self) -> str:
        return self._words

    async def _live(self, ready: "asyncio.Future[None]") -> None:
        try:
            async with asyncio.TaskGroup() as self._group:
                await self._begin(ready)
                await self._over.wait()
                for errand in self._errands.values():
                    errand.give_up()
                self._end_streams()
            if not self._is_lost:
                with suppress(httpx2.HTTPError, ToolError, ServerUnavailable):
                    await self._leave()
        except* Exception as problems:
            self._lose(f"the line broke: {explain(problems.exceptions[0])}")
        finally:
            if not ready.done():
                ready.set_exception(ServerUnavailable(self._gone or "the line broke"))
            await self._web.close()

    async def _begin(self, ready: "asyncio.Future[None]") -> None:
        try:
            await self._arrive()
        except (httpx2.HTTPError, ToolError, ServerUnavailable) as problem:
            self._over.set()
            if not ready.done():
                ready.set_exception(ServerUnavailable(explain(problem)))
        else:
            self._has_arrived = True
            if not ready.done():
                ready.set_result(None)

    async def _run(self, errand: Errand) -> None:
        try:
            async with asyncio.timeout(NOTICE_SECONDS if errand.id is None else None):
                await self._post(errand)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, ToolError, ServerUnavailable) as problem:
            self._lose(explain(problem))
        except RemoteError as problem:
            self._answer_for(errand, problem)
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError) as problem:
            self._answer_for(errand, RemoteError(CONNECTION_CLOSED, explain(problem)))

    def _done(self, errand: Errand) -> None:
        self._held -= len(errand.body)
        key = errand if errand.id is None else errand.id
        if self._errands.get(key) is errand:
            del self._errands[key]
        if errand.ends is not None:
            errand.ends.give_up()

    def _answer_for(self, errand: Errand, problem: RemoteError) -> None:
        if errand.id is None:
            self._words = f"{errand.method or 'an answer'} was not taken: {problem.message}"
        else:
            self._pass_on({"jsonrpc": "2.0", "id": errand.id, "error": problem.to_dict()})

    def _take(self, data: bytes | str, errand: Errand | None) -> bool:
        """Hear what one body or event holds; True where it answers the errand."""
        try:
            found = json.loads(data)
        except ValueError as problem:
            raise RemoteError(PARSE_ERROR, f"the server sent what is not JSON: {explain(problem)}") from None
        messages = found if isinstance(found, list) else [found]
        answers = [self._take_one(message, errand) for message in messages if isinstance(message, dict)]
        return any(answers)

    def _take_one(self, message: Message, errand: Errand | None) -> bool:
        if "method" in message:
            self._pass_on(message)
            return False
        if errand is not None and message.get("id") is None and "error" in message:
            message["id"] = errand.id
        answers = errand is not None and errand.id is not None and str(message.get("id")) == str(errand.id)
        if answers and errand is not None:
            message["id"] = errand.id
            self._answered(message, errand)
        elif other := self._errands.get(_key(message.get("id"))):
            other.give_up()
        self._pass_on(message)
        return answers

    def _pass_on(self, message: Message) -> None:
        if self._gone is None:
            self._hear(message)

    def _lose(self, reason: str) -> None:
        if self._gone is None:
            self._gone, self._is_lost = reason, True
            self._over.set()
            self._lost(reason)

    async def _refuse(self, response: httpx2.Response) -> None:
        """Make the error of a status that is none of success. Raises RemoteError, ServerAway."""
        status = response.status_code
        body = await response.aread()
        if status == httpx2.codes.UNAUTHORIZED:
            raise ServerUnavailable(
                f"the server refuses what it was given to authorize us (HTTP {status}){_said(body)}"
            )
        self.unspoken = False
        if media_type(response) == "application/json" and (error := _error(body)):
            raise RemoteError(*error)
        self.unspoken = status in UNKNOWN_HERE
        raise RemoteError(
            INTERNAL_ERROR, unfollowed(response) or f"the server answered with HTTP {status}{_said(body)}"
        )


def _encode(message: Message) -> bytes:
    try:
        return json.dumps(message)
    except TypeError as problem:
        raise ValueError(str(problem)) from None


def _version(message: Message) -> str | None:
    """The revision that a message of the modern era names."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, Mapping) else None
    version = meta.get(VERSION) if isinstance(meta, Mapping) else None
    return version if isinstance(version, str) else None


def _key(id_: Any) -> Any:
    return id_ if isinstance(id_, int | str) else None


def _error(body: bytes) -> tuple[int, str, Any] | None:
    """The JSON-RPC error that a body holds, if it does."""
    with suppress(ValueError):
        found = json.loads(body)
        error = found.get("error") if isinstance(found, dict) else None
        if isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
            return error["code"], error["message"], error.get("data")
    return None


def _said(body: bytes) -> str:
    text = one_line(body[: 4 * MAX_SHOWN].decode("utf-8", "replace")).strip()[:MAX_SHOWN]
    return f": {text}" if text else ""
