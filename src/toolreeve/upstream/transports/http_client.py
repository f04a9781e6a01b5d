"""HTTP client of one server: guarded, bounded, bound to its origin.

A redirect is followed only within the origin: the headers and the body were meant for that origin alone. This module
loads the HTTP library: import it only when a server is reached over HTTP.
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
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.transports.transport import Kind, ServerUnavailable, Transport

if TYPE_CHECKING:
    from toolreeve.upstream.oauth.authorization import Authorization
    from toolreeve.upstream.transports.connect import Authorize

MAX_REDIRECTS = 5
MAX_SHOWN = 300
MAX_COOKIES = 50
CONNECT_SECONDS = 10.0
WRITE_SECONDS = 30.0
_UNCOMPRESSED = frozenset({"", "identity"})


def new_http_transport(
    spec: ServerSpec,
    *,
    http: GuardedHttp,
    state: Path,
    authorize: "Authorize | None" = None,
    scrubber: Scrubber | None = None,
) -> Transport:
    """The transport of an http, sse or a2a server; `scrubber` learns the tokens of a login. Raises ServerUnavailable
    for a configuration that cannot work."""
    from toolreeve.upstream.oauth.authorization import new_authorization

    client = HttpClient(spec.url or "", spec.headers, http=http, streams=spec.kind != "a2a")
    client.authorize(new_authorization(spec, client, scrubber or Scrubber(), state=state, authorize=authorize))
    return transport_over(client, spec.kind)


def transport_over(client: "HttpClient", kind: Kind) -> Transport:
    from toolreeve.upstream.transports.a2a import A2aTransport
    from toolreeve.upstream.transports.sse import SseTransport
    from toolreeve.upstream.transports.streamable_http import StreamableHttpTransport

    if kind == "a2a":
        return A2aTransport(client)
    return SseTransport(client) if kind == "sse" else StreamableHttpTransport(client)


class HttpClient:
    """Sends requests to one server. `headers` are the user's own; they are sent nowhere else. `streams`: its responses
    may be event streams."""

    def __init__(self, url: str, headers: Mapping[str, str], *, http: GuardedHttp, streams: bool = True) -> None:
        self._http = http
        self._streams = streams
        self._configured = url
        self._authorization: Authorization | None = None
        try:
            self.url = parse_url(url).url
            self._client = self.new_client()
            self._client.headers.update(headers)
        except (ToolError, ValueError) as problem:
            raise ServerUnavailable(explain(problem)) from None

    def new_client(self) -> httpx2.AsyncClient:
        """A client with the same network access, without the user's headers."""
        return httpx2.AsyncClient(
            transport=_BoundedTransport(
                self._http.library_transport(configured=self._configured), streams=self._streams
            ),
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
        """Refuse to send a browser where we may not go ourselves. Raises ToolError(URL_FORBIDDEN)."""
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
        """Send, and follow redirects that stay on the origin and keep the method; any other is the response."""
        request = self._client.build_request(method, url, headers=dict(headers), content=body)
        for _ in range(MAX_REDIRECTS):
            response = await self._client.send(request, stream=True)
            if len(self._client.cookies.jar) > MAX_COOKIES:
                self._client.cookies.clear()
            redirected = _redirected(response)
            if redirected is None:
                break
            await response.aclose()
            request = redirected
        else:
            raise ServerUnavailable(f"the server redirects more than {MAX_REDIRECTS} times")
        try:
            yield response
        finally:
            await response.aclose()


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """No body is longer than a message may be, and none is compressed. An event stream has no end, so there the reader
    bounds each event, where `streams`; the body of a failure is never one."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, *, streams: bool) -> None:
        self._inner = inner
        self._streams = streams

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "").strip().lower() not in _UNCOMPRESSED:
            await response.aclose()
            raise httpx2.DecodingError("the response is compressed, against accept-encoding", request=request)
        is_stream = self._streams and response.is_success and media_type(response) == "text/event-stream"
        if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _BoundedStream(response.stream, request)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._inner = inner
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_MESSAGE:
                raise httpx2.DecodingError(f"the response is longer than {MAX_MESSAGE} bytes", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


def media_type(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def explain(problem: BaseException) -> str:
    """The problem in one line that is safe to show."""
    text = one_line(str(problem))[:MAX_SHOWN]
    kind = type(problem).__name__
    if not text:
        return kind
    if isinstance(problem, ToolError | ServerUnavailable | ValueError):
        return text
    return f"{text} ({kind})"


def redirect_problem(response: httpx2.Response) -> str | None:
    """Describes a redirect that is not followed, without the parts of its URL that may hold a secret."""
    redirected = response.next_request
    if redirected is None:
        return None
    place = one_line(str(redirected.url.copy_with(userinfo=b"", query=None, fragment=None)))[:MAX_SHOWN]
    return f"the server redirects to {place}, another origin; set url to that if it is the server's own"


def _redirected(response: httpx2.Response) -> httpx2.Request | None:
    redirected = response.next_request
    sent = response.request
    if redirected is None or redirected.method != sent.method or redirected.url.userinfo:
        return None
    return redirected if _origin(redirected.url) == _origin(sent.url) else None


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port
