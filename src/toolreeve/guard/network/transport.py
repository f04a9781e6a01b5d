"""Guarded transports: connections for HTTP clients, dialled through the guard.

httpcore keeps the name for SNI, the certificate and the Host header; only the dialled address comes from here. This
module loads the HTTP library: import it only to send something.
"""

import ssl
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

import httpcore2
import httpx2

from toolreeve.core.urls import DEFAULT_PORTS, forbidden
from toolreeve.guard.network.guard import NetworkGuard

HAS_HTTP2 = find_spec("h2") is not None
MAX_CONNECTIONS = 100
MAX_IDLE = 20
IDLE_SECONDS = 30.0


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """`method` is what the connections are used for, where rules distinguish methods; `exempt` is the only address that
    is dialled unchecked: the configured proxy."""

    def __init__(self, guard: NetworkGuard, *, method: str, exempt: tuple[str, int] | None = None) -> None:
        self._guard = guard
        self._method = method
        self._exempt = exempt
        self._dialler = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        if (host, port) == self._exempt:
            return await self._dialler.connect_tcp(host, port, timeout, local_address, socket_options)
        admission = await self._guard.admit(host, port, self._method)
        failure: Exception | None = None
        for address in admission.addresses:
            try:
                return await self._dialler.connect_tcp(str(address), port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as problem:
                failure = problem
        raise failure or httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        raise forbidden(f"the unix socket {path!r} is not a network address")

    async def sleep(self, seconds: float) -> None:
        await self._dialler.sleep(seconds)


def make_pool(guard: NetworkGuard, *, method: str, trust: ssl.SSLContext) -> httpcore2.AsyncConnectionPool:
    proxy = _proxy(guard.settings.proxy)
    return httpcore2.AsyncConnectionPool(
        ssl_context=trust,
        proxy=proxy,
        max_connections=MAX_CONNECTIONS,
        max_keepalive_connections=MAX_IDLE,
        keepalive_expiry=IDLE_SECONDS,
        http2=HAS_HTTP2,
        network_backend=GuardedBackend(guard, method=method, exempt=_place(proxy)),
    )


def make_trust(ca_file: str | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file) if ca_file else httpx2.create_ssl_context(trust_env=False)


def _proxy(url: str | None) -> httpcore2.Proxy | None:
    if url is None:
        return None
    parsed = httpx2.Proxy(url)
    return httpcore2.Proxy(str(parsed.url), auth=parsed.raw_auth)


def _place(proxy: httpcore2.Proxy | None) -> tuple[str, int] | None:
    return None if proxy is None else (proxy.url.origin.host.decode(), proxy.url.origin.port)


class _PoolTransport(httpx2.AsyncHTTPTransport):
    """httpx2's transport over a guarded pool."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool) -> None:
        self._pool = pool


class GuardedTransport(httpx2.AsyncBaseTransport):
    """For libraries with their own httpx2 client: each request, and each redirect, is checked before it is sent."""

    def __init__(self, guard: NetworkGuard, *, trust: ssl.SSLContext) -> None:
        self._guard = guard
        self._trust = trust
        self._transports: dict[str, _PoolTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        method = request.method
        if url.scheme not in DEFAULT_PORTS:
            raise forbidden(f"only http:// and https:// URLs are allowed, got {str(url)[:200]!r}")
        host = url.raw_host.decode("ascii")
        await self._guard.check(host, url.port or DEFAULT_PORTS[url.scheme], method)
        return await self._transport_for(method).handle_async_request(request)

    def _transport_for(self, method: str) -> _PoolTransport:
        key = method if self._guard.methods_matter else ""
        if key not in self._transports:
            self._transports[key] = _PoolTransport(make_pool(self._guard, method=method, trust=self._trust))
        return self._transports[key]

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()
