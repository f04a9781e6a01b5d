"""Client of a JSON API over `Context.http`: credentials, one renewal, polite retries.

A request that changes something is never repeated, unless the service refused it for its token before looking at it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from toolreeve.core import json
from toolreeve.core.context import Context
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.core.labels import Confidentiality, Integrity
from toolreeve.core.urls import encode_form

T = TypeVar("T")
PRIVATE = (Integrity.UNTRUSTED.value, Confidentiality.PRIVATE.value)
"""Labels of what a service returns from the user's own account: others wrote it, and it is nobody else's business."""
CONCURRENCY = 8
ATTEMPTS = 3
LONGEST_WAIT = 10.0
"""A service that asks for a longer pause gets it: the call fails and says how long."""
UNAUTHORIZED = 401
TOO_MANY = 429
_TRANSIENT = frozenset((TOO_MANY, 500, 502, 503, 504))
_BLOCKED = 999
"""LinkedIn's own status for a client that it blocks."""
_EXCERPT = 300


class ApiCredential(Protocol):
    """Authorizes requests to one service."""

    async def headers(self, ctx: Context) -> Mapping[str, str]:
        """Raises ToolError if the account is not connected."""
        ...

    async def renew(self, ctx: Context, rejected: Mapping[str, str]) -> bool:
        """Whether there is now another credential than the rejected one."""
        ...


@dataclass(frozen=True, slots=True)
class SecretHeader:
    """A key from the secret store, sent as a header."""

    header: str
    secret: str
    prefix: str = ""

    async def headers(self, ctx: Context) -> Mapping[str, str]:
        key = await ctx.secrets.find(self.secret)
        if key is None:
            raise missing_secret(self.secret)
        return {self.header: f"{self.prefix}{key}"}

    async def renew(self, ctx: Context, rejected: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False


class NoCredential:
    """For public pages."""

    async def headers(self, ctx: Context) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    async def renew(self, ctx: Context, rejected: Mapping[str, str]) -> bool:  # noqa: ARG002
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """`title` names the service in messages; `remedy` is what helps if it rejects the credential."""

    title: str
    base: str
    credential: ApiCredential
    remedy: str
    extra_headers: Mapping[str, str] | None = None

    async def get(self, ctx: Context, path: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        return self.parse(await self.fetch(ctx, path, params, **options))

    async def get_object(self, ctx: Context, path: str, params: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        return self._object(await self.get(ctx, path, params))

    async def post(
        self, ctx: Context, path: str, body: Any, params: Mapping[str, Any] | None = None
    ) -> Mapping[str, Any]:
        headers = {"content-type": "application/json"}
        reply = await self._authorized(ctx, "POST", self._url(path, params), headers, json.dumps(body))
        return self._object(self.parse(self.check(reply)))

    def _object(self, found: Any) -> Mapping[str, Any]:
        if not isinstance(found, Mapping):
            raise ToolError(ErrorCode.UPSTREAM, f"{self.title} did not answer with an object", retryable=False)
        return found

    async def fetch(
        self, ctx: Context, path: str, params: Mapping[str, Any] | None = None, *, max_body: int | None = None
    ) -> HttpReply:
        """A response of 2xx. Transient failures are repeated as the service asks. Raises ToolError(UPSTREAM)."""
        url = self._url(path, params)
        for attempt in range(1, ATTEMPTS):
            reply = await self._authorized(ctx, "GET", url, {}, None, max_body)
            wait = retry_wait(reply, attempt)
            if wait is None or wait > LONGEST_WAIT:
                return self.check(reply)
            await asyncio.sleep(wait)
        return self.check(await self._authorized(ctx, "GET", url, {}, None, max_body))

    def check(self, reply: HttpReply) -> HttpReply:
        if reply.status < 300:
            return reply
        why = _reason(reply)
        if reply.status == UNAUTHORIZED:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"{self.title} does not accept the credential ({why}): {self.remedy}",
                retryable=False,
            )
        hint = ""
        if reply.status in _TRANSIENT or reply.status == _BLOCKED:
            after = reply.headers.get("retry-after", "")
            hint = f"; try again after {after} s" if after.isdigit() else "; try again later"
        message = f"{self.title} answered {reply.status}: {why}{hint}"
        raise ToolError(ErrorCode.UPSTREAM, message, retryable=reply.status in _TRANSIENT)

    def parse(self, reply: HttpReply) -> Any:
        return self.parse_text(self.check_whole(reply).body)

    def check_whole(self, reply: HttpReply) -> HttpReply:
        if reply.truncated:
            size = len(reply.body) >> 20
            raise ToolError(ErrorCode.LIMIT, f"the response of {self.title} is larger than {size} MB", retryable=False)
        return reply

    def parse_text(self, text: bytes | bytearray) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise ToolError(ErrorCode.UPSTREAM, f"{self.title} did not answer in JSON") from None

    async def _authorized(
        self,
        ctx: Context,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        max_body: int | None = None,
    ) -> HttpReply:
        given = await self.credential.headers(ctx)
        reply = await self._send(ctx, method, url, {**headers, **given}, body, max_body)
        if reply.status == UNAUTHORIZED and await self.credential.renew(ctx, given):
            renewed = await self.credential.headers(ctx)
            reply = await self._send(ctx, method, url, {**headers, **renewed}, body, max_body)
        return reply

    async def _send(
        self, ctx: Context, method: str, url: str, headers: Mapping[str, str], body: bytes | None, max_body: int | None
    ) -> HttpReply:
        sent = {"accept": "application/json", **(self.extra_headers or {}), **headers}
        return await ctx.http.send(HttpRequest(method=method, url=url, headers=sent, body=body, max_body=max_body))

    def _url(self, path: str, params: Mapping[str, Any] | None) -> str:
        given = {name: value for name, value in (params or {}).items() if value is not None}
        query = f"?{encode_form(given).decode()}" if given else ""
        return f"{self.base.rstrip('/')}{path}{query}"


def invalid_parameter(name: str, problem: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PARAMS, f"/{name}: {problem}")


def missing_secret(name: str) -> ToolError:
    command = f"toolreeve secrets set {name}"
    return ToolError(ErrorCode.PERMISSION, f"the secret {name} is missing: run `{command}`", suggestions=(command,))


def objects(found: Any, key: str) -> list[Mapping[str, Any]]:
    """The objects in the list under this key; none if it is not a list."""
    listed = found.get(key) if isinstance(found, Mapping) else None
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


async def gather(work: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
    """All results in order, at most `CONCURRENCY` at once; the first failure ends the others. Raises ToolError."""
    slots = asyncio.Semaphore(CONCURRENCY)

    async def run(each: Callable[[], Awaitable[T]]) -> T:
        async with slots:
            return await each()

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(each)) for each in work]
    except* ToolError as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def retry_wait(reply: HttpReply, attempt: int) -> float | None:
    """Seconds until a transient failure is worth another attempt; None if it is not transient."""
    if reply.status not in _TRANSIENT:
        return None
    asked = reply.headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 0.5 * attempt


def _reason(reply: HttpReply) -> str:
    """What the service says went wrong, short; its body may be anything."""
    try:
        found = json.loads(reply.body)
    except ValueError:
        return "no reason given"
    error = found.get("error", found) if isinstance(found, dict) else found
    text = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(text or "no reason given").split())[:_EXCERPT]
