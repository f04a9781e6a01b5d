"""Quotas of connections, sessions and buffered bytes: total, per token, per address.

A client that reaches its own quota is refused or cut off; the rest of the total stays free for the others.
"""

import ctypes
import ipaddress
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from toolreeve.config.sections.serve import Serve
from toolreeve.serve.access import AccessRefused, Header

RETRY: Header = (b"retry-after", b"5")
_OTHER_FILES = 256
"""File descriptors reserved for everything but connections."""
_V6_NETWORK = 64
_M_MMAP_THRESHOLD = -3
_LARGE_BLOCK = 256 * 1024
MEGABYTE = 1024 * 1024
Key = tuple[str, str]
"""The suffix of the setting, and the token or address that the share belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """`setting` is the key of the total; `_per_token` and `_per_address` are appended for the others."""

    setting: str
    total: int
    per_token: int
    per_address: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    connections: Quota
    sessions: Quota
    buffered_bytes: Quota


def read_limits(chosen: Serve) -> ServerLimits:
    settings = ("connections", "sessions", "buffered_bytes")
    return ServerLimits(**{each: _read_quota(chosen, f"max_{each}") for each in settings})


def _read_quota(chosen: Serve, setting: str) -> Quota:
    return Quota(
        setting=setting,
        total=getattr(chosen, setting),
        per_token=getattr(chosen, f"{setting}_per_token"),
        per_address=getattr(chosen, f"{setting}_per_address"),
    )


class QuotaMember(Protocol):
    """A connection as the quotas see it: `held` is the size counted last, `buffered` the current one. `stalled_at` is
    when the client stopped reading."""

    held: int
    shares: "list[Share]"

    @property
    def stalled_at(self) -> float | None: ...

    def buffered(self) -> int: ...

    def drop(self) -> None: ...


class Share:
    """The connections of one token, one address or all, and the bytes buffered for them."""

    __slots__ = ("held", "key", "max_bytes", "max_members", "members")

    def __init__(self, key: "Key", max_members: int, max_bytes: int) -> None:
        self.key = key
        self.max_members = max_members
        self.max_bytes = max_bytes
        self.members: set[QuotaMember] = set()
        self.held = 0

    def is_exceeded(self) -> bool:
        """Recounts before answering: partial reads by clients are not reported."""
        if self.held <= self.max_bytes:
            return False
        for member in self.members:
            count(member, member.buffered())
        return self.held > self.max_bytes


class Usage:
    """The usage of all connections. A connection counts for its address when it is made, and for its owner when it
    shows a token; without tokens, the owner is a local user."""

    def __init__(self, limits: ServerLimits) -> None:
        self._connections = limits.connections
        self._buffered = limits.buffered_bytes
        self._shares: dict[Key, Share] = {}

    def enter(self, member: QuotaMember, address: str) -> None:
        """Raises AccessRefused."""
        total = self._share(("", ""), _max_connections(self._connections.total), self._buffered.total)
        per_address = self._share(("_per_address", address), self._connections.per_address, self._buffered.per_address)
        self._check_room(total)
        self._check_room(per_address)
        self._join(member, total)
        self._join(member, per_address)

    def identify(self, member: QuotaMember, owner: str) -> None:
        """A connection counts for the last owner it identified as. Raises AccessRefused."""
        share = self._share(("_per_token", owner), self._connections.per_token, self._buffered.per_token)
        if member in share.members:
            return
        self._check_room(share)
        for other in [each for each in member.shares if each.key[0] == share.key[0]]:
            self._part(member, other)
        self._join(member, share)

    def leave(self, member: QuotaMember) -> None:
        for share in list(member.shares):
            self._part(member, share)

    def check_bytes(self, member: QuotaMember, size: int) -> None:
        """For received bytes. Raises AccessRefused."""
        count(member, size)
        for share in member.shares:
            if share.is_exceeded():
                limit = f"serve.{self._buffered.setting}{share.key[0]} = {share.max_bytes}"
                raise AccessRefused(429, f"too many buffered bytes of requests and unread responses ({limit})", [RETRY])

    def shed(self, member: QuotaMember, size: int) -> None:
        """For sent bytes: the clients that stalled first are cut off."""
        count(member, size)
        for share in list(member.shares):
            while share.is_exceeded() and (stalled := [each for each in share.members if each.stalled_at is not None]):
                oldest = min(stalled, key=lambda each: each.stalled_at or 0.0)
                self.leave(oldest)
                oldest.drop()

    def _share(self, key: "Key", max_members: int, max_bytes: int) -> Share:
        found = self._shares.get(key)
        return Share(key, max_members, max_bytes) if found is None else found

    def _check_room(self, share: Share) -> None:
        if len(share.members) >= share.max_members:
            limit = f"serve.{self._connections.setting}{share.key[0]} = {share.max_members}"
            raise AccessRefused(429 if share.key[0] else 503, f"too many connections ({limit})", [RETRY])

    def _join(self, member: QuotaMember, share: Share) -> None:
        self._shares[share.key] = share
        share.members.add(member)
        share.held += member.held
        member.shares.append(share)

    def _part(self, member: QuotaMember, share: Share) -> None:
        share.members.discard(member)
        share.held -= member.held
        member.shares.remove(share)
        if not share.members:
            del self._shares[share.key]


def count(member: QuotaMember, size: int) -> None:
    grown = size - member.held
    member.held = size
    for share in member.shares:
        share.held += grown


def peer_address(host: str) -> str:
    """The address for quotas: `loopback` for this machine, and the /64 network of an IPv6 address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        address = address.ipv4_mapped or address
    if address.is_loopback:
        return "loopback"
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _V6_NETWORK), strict=False))
    return str(address)


def describe(limits: ServerLimits, *, shares: bool = False) -> Iterable[str]:
    """Each quota; with `shares`, also what of it a token and an address may take."""
    for what, quota, shown in (
        ("connections", limits.connections, "{:,}".format),
        ("sessions", limits.sessions, "{:,}".format),
        ("buffered", limits.buffered_bytes, _shown_size),
    ):
        total = _max_connections(quota.total) if quota is limits.connections else quota.total
        shared = f" ({shown(quota.per_token)} per token, {shown(quota.per_address)} per address)" if shares else ""
        yield f"{shown(total)} {what}{shared}"


def _shown_size(size: int) -> str:
    return f"{size // MEGABYTE:,} MB" if size >= MEGABYTE else f"{size:,} bytes"


def _max_connections(connections: int) -> int:
    """The configured number, bounded by the available file descriptors."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, max(files - _OTHER_FILES, files // 2)))


def give_back_memory() -> bool:
    """Return large freed blocks of this process to the operating system; False if the C library has no such setting.

    By default glibc raises its mmap threshold with every large block that is freed, and then keeps the memory of a
    burst of large responses for good, because small live blocks lie between the freed ones.
    """
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK))
    except AttributeError:
        return False
