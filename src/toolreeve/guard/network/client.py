"""Guarded HTTP client: checks every request and every redirect.

The whole exchange has one deadline. A redirect that would carry a body to another origin is not followed: the response
is returned as it is, and going there is a new call with its own decision.
"""

import asyncio
from typing import TYPE_CHECKING

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.core.urls import Target, join_url, parse_url
from toolreeve.guard.network.body import read_body
from toolreeve.guard.network.guard import NetworkGuard
from toolreeve.guard.network.headers import for_another_origin, incoming, outgoing, without_body

if TYPE_CHECKING:
    import ssl

    import httpcore2
    import httpx2

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class _Hop:
    """One request of a redirect chain."""

    __slots__ = ("body", "headers", "method", "target")

    def __init__(self, method: str, target: Target, headers: dict[str, str], body: bytes | None) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body


class GuardedHttp:
    """The capability `Context.http`. Nothing of the HTTP library is loaded before the first request."""

    def __init__(self, guard: NetworkGuard) -> None:
        self._guard = guard
        self._pools: dict[str, httpcore2.AsyncConnectionPool] = {}
        self._trust: ssl.SSLContext | None = None

    def screen(self, url: str, method: str) -> None:
        target = parse_url(url)
        if target.address is None:
            self._guard.screen(target.host, target.port, method.upper())
        else:
            self._guard.judge(target.host, target.port, method.upper(), [target.address])

    async def send(self, request: HttpRequest) -> HttpReply:
        hop = _Hop(request.method.upper(), parse_url(request.url), outgoing(request.headers), request.body)
        timeout = request.timeout or self._guard.settings.timeout
        try:
            async with asyncio.timeout(timeout):
                return await self._follow_redirects(hop, request.max_body or self._guard.settings.max_body)
        except TimeoutError:
            raise ToolError(
                ErrorCode.HTTP_TIMEOUT, f"{hop.target.url} did not respond in full within {timeout:g} s"
            ) from None

    async def _follow_redirects(self, hop: _Hop, cap: int) -> HttpReply:
        for _ in range(self._guard.settings.max_redirects + 1):
            reply = await self._exchange(hop, cap)
            following = _next_hop(hop, reply)
            if following is None:
                return reply
            hop = following
        raise ToolError(
            ErrorCode.HTTP_ERROR,
            f"more than {self._guard.settings.max_redirects} redirects, the last to {hop.target.url}",
        )

    async def _exchange(self, hop: _Hop, cap: int) -> HttpReply:
        import httpcore2

        target = hop.target
        await self._guard.check(target.host, target.port, hop.method)
        try:
            response = await self._pool_for(hop.method).handle_async_request(self._wire_request(hop))
            try:
                headers = incoming(response.headers)
                body = bytearray()
                truncated = False
                if hop.method != "HEAD":
                    body, truncated = await read_body(response.aiter_stream(), headers, cap=cap)
            finally:
                await response.aclose()
        except httpcore2.TimeoutException:
            raise ToolError(ErrorCode.HTTP_TIMEOUT, f"connecting to {target.origin} timed out") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as problem:
            raise ToolError(ErrorCode.HTTP_ERROR, f"{target.origin}: {problem or type(problem).__name__}") from None
        return HttpReply(status=response.status, headers=headers, body=body, url=target.url, truncated=truncated)

    def _wire_request(self, hop: _Hop) -> "httpcore2.Request":
        import httpcore2

        target = hop.target
        headers = {"host": target.authority} | hop.headers
        if hop.body is not None or hop.method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(hop.body or b""))
        url = httpcore2.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        wire = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        extensions = {"timeout": {"connect": self._guard.settings.connect_timeout}}
        return httpcore2.Request(hop.method, url, headers=wire, content=hop.body, extensions=extensions)

    def _pool_for(self, method: str) -> "httpcore2.AsyncConnectionPool":
        """One pool, or one for each method where rules distinguish methods: a connection that was allowed for a GET
        must not carry a POST."""
        key = method if self._guard.methods_matter else ""
        pool = self._pools.get(key)
        if pool is None:
            from toolreeve.guard.network.transport import make_pool

            pool = self._pools[key] = make_pool(self._guard, method=method, trust=self._trusted())
        return pool

    def _trusted(self) -> "ssl.SSLContext":
        if self._trust is None:
            from toolreeve.guard.network.transport import make_trust

            self._trust = make_trust(self._guard.settings.ca_file)
        return self._trust

    def library_client(self, *, timeout: float = 30.0) -> "httpx2.AsyncClient":
        """A guarded client for a library that needs an httpx client; the caller closes it."""
        import httpx2

        transport = self.library_transport()
        return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout)

    def library_transport(self, *, configured: str | None = None) -> "httpx2.AsyncBaseTransport":
        """The transport of such a client. `configured` is a URL from the configuration: its host and port are reachable
        through this transport only. Raises ToolError(URL_FORBIDDEN) if it is not a valid URL."""
        from toolreeve.guard.network.transport import GuardedTransport

        guard = self._guard if configured is None else self._guard.opened(parse_url(configured))
        return GuardedTransport(guard, trust=self._trusted())

    async def close(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()


def _next_hop(hop: _Hop, reply: HttpReply) -> _Hop | None:
    """The request that a redirect leads to, or None if the response is final. Raises ToolError(URL_FORBIDDEN)."""
    location = reply.headers.get("location")
    if reply.status not in REDIRECTS or not location:
        return None
    target = parse_url(_absolute(hop.target, location))
    keeps_method = hop.method in ("GET", "HEAD") or reply.status in (307, 308)
    if keeps_method and hop.method not in ("GET", "HEAD") and target.origin != hop.target.origin:
        return None
    headers = hop.headers if target.origin == hop.target.origin else for_another_origin(hop.headers)
    if keeps_method:
        return _Hop(hop.method, target, headers, hop.body)
    return _Hop("GET", target, without_body(headers), None)


def _absolute(base: Target, location: str) -> str:
    """A header is bytes: non-ASCII text was UTF-8 before it was decoded as Latin-1."""
    try:
        text = location.encode("latin-1").decode()
    except UnicodeError:
        text = location
    return join_url(base.url, text.strip())
