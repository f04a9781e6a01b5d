"""How does a request reach a server on the web? Through the guard, to the place the user configured, read to a cap.

A redirect is followed only within the origin: the headers and the body were meant for that origin alone. This module
loads the HTTP library: import it only when a server on the web is to be reached.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from toolreeve.core.errors import ToolError
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.urls import parse_url
from toolreeve.core.visible import one_line
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.transports.transport import MAX_MESSAGE, Kind, ServerUnavailable, Transport

if TYPE_CHECKING:
    from toolreeve.upstream.oauth.authorization import Authorization, Authorize

MAX_REDIRECTS = 5
MAX_SHOWN = 300
MAX_COOKIES = 50
CONNECT_SECONDS = 10.0
WRITE_SECONDS = 30.0
_PLAIN = frozenset({"", "identity"})


def new_line(
    spec: ServerSpec,
    *,
    http: GuardedHttp,
    state: Path,
    authorize: "Authorize | None" = None,
    veil: Scrubber | None = None,
) -> Transport:
    """The line to a server of the kinds http and sse; `veil` learns what a login grants. Raises ServerAway where its
    configuration leads nowhere."""
    from toolreeve.upstream.oauth.authorization import new_authorization

    web = HttpClient(spec.url or "", spec.headers, http=http)
    web.authorize(new_authorization(spec, web, veil or Scrubber(), state=state, authorize=authorize))
    return line_over(web, spec.kind)


def line_over(web: "HttpClient", kind: Kind) -> Transport:
    from toolreeve.upstream.transports.sse import SseTransport
    from toolreeve.upstream.transports.streamable_http import StreamableHttpTransport

    return SseTransport(web) if kind == "sse" else StreamableHttpTransport(web)


class HttpClient:
    """One server's place on the web and what reaches it. `headers` are the user's own; they go nowhere else."""

    def __init__(self, url: str, headers: Mapping[str, str], *, http: GuardedHttp) -> None:
        self._http = http
        self._configured = url
        self._authorization: Authorization | None = None
        try:
            self.url = parse_url(url).url
            self._client = self.new_client()
            self._client.headers.update(headers)
        except (ToolError, ValueError) as problem:
            raise ServerUnavailable(explain(problem)) from None

    def new_client(self) -> httpx2.AsyncClient:
        """A client that reaches what this server's own does, and says nothing of the user."""
        return httpx2.AsyncClient(
            transport=_Bounded(self._http.library_transport(configured=self._configured)),
            headers={"user-agent": "toolreeve", "accept-encoding": "identity"},
            timeout=httpx2.Timeout(WRITE_SECONDS, connect=CONNECT_SECONDS, read=None),
            follow_redirects=False,
            trust_env=False,
        )

    def authorize(self, authorization: "Authorization | None") -> None:
        self._authorization = authorization
        if authorization is not None:
            self._client.auth = authorization

    def screen(self, url: str) -> None:
        """Whether a browser may be sent there: it must be in our own reach. Raises ToolError(URL_FORBIDDEN)."""
        if parse_url(url).origin != parse_url(self.url).origin:
            self._http.screen(url, "GET")

    async def close(self) -> None:
        await self._client.aclose()
        if self._authorization is not None:
            await self._authorization.close()

    @asynccontextmanager
    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send, and follow redirects that stay on the origin and keep the method; any other is handed out."""
        request = self._client.build_request(method, url, headers=dict(headers), content=body)
        for _ in range(MAX_REDIRECTS):
            response = await self._client.send(request, stream=True)
            if len(self._client.cookies.jar) > MAX_COOKIES:
                self._client.cookies.clear()
            onward = _onward(response)
            if onward is None:
                break
            await response.aclose()
            request = onward
        else:
            raise ServerUnavailable(f"the server redirects more than {MAX_REDIRECTS} times")
        try:
            yield response
        finally:
            await response.aclose()


class _Bounded(httpx2.AsyncBaseTransport):
    """No body is longer than a message may be, and none unpacks to more than it weighs. A stream of events has no end,
    so there the events are measured, by whoever reads them."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "").strip().lower() not in _PLAIN:
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, which was not asked for", request=request)
        if media_type(response) != "text/event-stream" and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Counted(response.stream, request)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._inner, self._request = inner, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.DecodingError(f"the answer is longer than {MAX_MESSAGE} bytes", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def media_type(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def explain(problem: BaseException) -> str:
    """What went wrong, in one line that is fit to be shown."""
    said = one_line(str(problem))[:MAX_SHOWN]
    if isinstance(problem, ToolError | ServerUnavailable | ValueError):
        return said or type(problem).__name__
    return f"{said} ({type(problem).__name__})" if said else type(problem).__name__


def unfollowed(response: httpx2.Response) -> str | None:
    """What is said of a redirect that is not followed, without the parts of its place that may hold a secret."""
    onward = response.next_request
    if onward is None:
        return None
    place = one_line(str(onward.url.copy_with(userinfo=b"", query=None, fragment=None)))[:MAX_SHOWN]
    return f"the server redirects to {place}, which is not followed; configure that URL if it is the server's own"


def _onward(response: httpx2.Response) -> httpx2.Request | None:
    onward, sent = response.next_request, response.request
    if onward is None or onward.method != sent.method or onward.url.userinfo:
        return None
    return onward if _origin(onward.url) == _origin(sent.url) else None


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port
