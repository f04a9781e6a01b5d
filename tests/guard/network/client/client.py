"""A guarded client, and ways to send with it."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from tests.network import Answer, Received
from toolreeve.core.errors import ToolError
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import HostsResolver, Resolver


@asynccontextmanager
async def http(
    *allow: str, resolver: Resolver | None = None, deny: Sequence[str] = (), max_body: int = 100_000
) -> AsyncIterator[GuardedHttp]:
    given = NetworkSettings(allow=allow, deny=tuple(deny), max_body=max_body)
    client = GuardedHttp(NetworkGuard(given, resolver or HostsResolver({})))
    try:
        yield client
    finally:
        await client.close()


async def send(
    client: GuardedHttp,
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: float = 5.0,
) -> HttpReply:
    request = HttpRequest(method=method, url=url, headers=headers or {}, body=body, timeout=timeout)
    return await client.send(request)


async def failure(client: GuardedHttp, url: str, timeout: float = 5.0) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await send(client, url, timeout=timeout)
    return caught.value


def redirects(to: Callable[[Received], str], status: int = 302) -> Callable[[Received], Answer]:
    return lambda request: Answer(status=status, headers={"location": to(request)})
