"""Name resolution: one lookup for each connection.

No answer is a failure, never an empty list. The guard judges these addresses and connects to exactly them; nothing
resolves a second time.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, Protocol

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.urls import Address, parse_host

MAX_LOOKUPS = 16


class Resolver(Protocol):
    async def resolve(self, host: str) -> Sequence[Address]:
        """At least one address. Raises ToolError(HTTP_ERROR) if the name has none."""
        ...


def unresolved(host: str, why: str) -> ToolError:
    return ToolError(ErrorCode.HTTP_ERROR, f"the host {host!r} cannot be resolved: {why}")


class SystemResolver:
    """The machine's resolver, with its hosts file and search domains.

    It has its own threads: a name that is slow to resolve must not hold up other blocking work.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="toolreeve-dns")

    async def resolve(self, host: str) -> Sequence[Address]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, _look_up, host)
        except (OSError, UnicodeError) as problem:
            raise unresolved(host, getattr(problem, "strerror", None) or str(problem)) from None
        return _distinct(str(row[4][0]) for row in found)


class HostsResolver:
    """Resolves only the names of a hosts-style file, without any network."""

    def __init__(self, addresses: Mapping[str, Sequence[Address]]) -> None:
        self._addresses = addresses

    async def resolve(self, host: str) -> Sequence[Address]:
        found = self._addresses.get(host)
        if not found:
            raise unresolved(host, "it is not in the given hosts")
        return found


def parse_hosts(text: str) -> dict[str, list[Address]]:
    """Lines of an address and its names; a name on several lines has several addresses. Raises ValueError."""
    hosts: dict[str, list[Address]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        address, *names = line.partition("#")[0].split() or [""]
        if not address:
            continue
        try:
            read = ip_address(address)
            keys = [parse_host(name)[0] for name in names]
        except (ValueError, ToolError):
            raise ValueError(f"line {number} is not an address followed by names: {line.strip()!r}") from None
        for key in keys:
            hosts.setdefault(key, []).append(read)
    return hosts


def _look_up(host: str) -> list[Any]:
    return socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)


def _distinct(texts: Iterable[str]) -> Sequence[Address]:
    return [ip_address(text) for text in dict.fromkeys(texts)]
