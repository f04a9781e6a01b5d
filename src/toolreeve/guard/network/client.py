"""How is an HTTP request sent under guard? Judged, dialled, read to the cap, and judged again at every redirect.

The whole exchange has one deadline. A redirect that would carry a body to another origin is not followed: the reply
is handed back as it is, and going there is a new call with a decision of its own.
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


class _Leg:
    """One request on the way to the answer."""

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
        leg = _Leg(request.method.upper(), parse_url(request.url), outgoing(request.headers), request.body)
        patience = request.timeout or self._guard.settings.timeout
        try:
            async with asyncio.timeout(patience):
                return await self._travel(leg)
        except TimeoutError:
            raise ToolError(
                ErrorCode.HTTP_TIMEOUT, f"{leg.target.url} did not answer in full within {patience:g} s"
            ) from None

    async def _travel(self, leg: _Leg) -> HttpReply:
        for _ in range(self._guard.settings.max_redirects + 1):
            reply = await self._exchange(leg)
            onward = _next_leg(leg, reply)
            if onward is None:
                return reply
            leg = onward
        raise ToolError(
            ErrorCode.HTTP_ERROR,
            f"more than {self._guard.settings.max_redirects} redirects, the last to {leg.target.url}",
        )

    async def _exchange(self, leg: _Leg) -> HttpReply:
        import httpcore2

        target = leg.target
        await self._guard.check(target.host, target.port, leg.method)
        try:
            response = await self._pool_for(leg.method).handle_async_request(self._wire_request(leg))
            try:
                headers = incoming(response.headers)
                body, truncated = await self._read(response, headers, leg)
            finally:
                await response.aclose()
        except httpcore2.TimeoutException:
            raise ToolError(ErrorCode.HTTP_TIMEOUT, f"connecting to {target.origin} took too long") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as problem:
            raise ToolError(ErrorCode.HTTP_ERROR, f"{target.origin}: {problem or type(problem).__name__}") from None
        return HttpReply(status=response.status, headers=headers, body=body, url=target.url, truncated=truncated)

    async def _read(self, response: "httpcore2.Response", headers: dict[str, str], leg: _Leg) -> tuple[bytearray, bool]:
        if leg.method == "HEAD":
            return bytearray(), False
        return await read_body(response.aiter_stream(), headers, cap=self._guard.settings.max_body)

    def _wire_request(self, leg: _Leg) -> "httpcore2.Request":
        import httpcore2

        target, headers = leg.target, {"host": leg.target.authority} | leg.headers
        if leg.body is not None or leg.method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(leg.body or b""))
        url = httpcore2.URL(
            scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
        )
        wire = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        patience = {"timeout": {"connect": self._guard.settings.connect_timeout}}
        return httpcore2.Request(leg.method, url, headers=wire, content=leg.body, extensions=patience)

    def _pool_for(self, method: str) -> "httpcore2.AsyncConnectionPool":
        """One pool, or one for each method where rules tell methods apart: a connection that was let through for a GET
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
        """A client under the same guard for a library that wants its own; the caller closes it."""
        import httpx2

        transport = self.library_transport()
        return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout)

    def library_transport(self, *, configured: str | None = None) -> "httpx2.AsyncBaseTransport":
        """What such a client sends through. `configured` is a URL of the user's own: its host and port are in reach of
        this transport, and of no other. Raises ToolError(URL_FORBIDDEN) where it is none."""
        from toolreeve.guard.network.transport import GuardedTransport

        guard = self._guard if configured is None else self._guard.opened(parse_url(configured))
        return GuardedTransport(guard, trust=self._trusted())

    async def close(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.aclose()


def _next_leg(leg: _Leg, reply: HttpReply) -> _Leg | None:
    """Where a redirect leads, or None where the reply is the answer. Raises ToolError(URL_FORBIDDEN)."""
    location = reply.headers.get("location")
    if reply.status not in REDIRECTS or not location:
        return None
    target = parse_url(_absolute(leg.target, location))
    keeps_method = leg.method in ("GET", "HEAD") or reply.status in (307, 308)
    if keeps_method and leg.method not in ("GET", "HEAD") and target.origin != leg.target.origin:
        return None
    headers = leg.headers if target.origin == leg.target.origin else for_another_origin(leg.headers)
    if keeps_method:
        return _Leg(leg.method, target, headers, leg.body)
    return _Leg("GET", target, without_body(headers), None)


def _absolute(base: Target, location: str) -> str:
    """A header is bytes: what is not ASCII in it was UTF-8 before it was read as Latin-1."""
    try:
        text = location.encode("latin-1").decode()
    except UnicodeError:
        text = location
    return join_url(base.url, text.strip())
