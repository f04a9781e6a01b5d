"""Quotas of connections, sessions and buffered bytes: total, per token, per address.

Whoever reaches a quota of their own is refused or cut off; what is left of the total stays free for the others.
"""

import ipaddress
import resource
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from toolreeve.config.sections.serve import Serve
from toolreeve.serve.access import AccessRefused, Header

RETRY: Header = (b"retry-after", b"5")
_OTHER_FILES = 256
"""File descriptors that are left for everything but connections."""
_V6_NETWORK = 64
Key = tuple[str, str]
"""How the name of the setting ends, and whose share it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """`setting` is the key that the total is configured with; the others are named after it."""

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


class Member(Protocol):
    """A connection as the quotas see it: `held` is what was counted last, `buffered` what it is now. `stalled_at` is
    when it stopped to read what it was sent."""

    held: int
    shares: "list[Share]"

    @property
    def stalled_at(self) -> float | None: ...

    def buffered(self) -> int: ...

    def drop(self) -> None: ...


class Share:
    """The connections of one token or one address, or all of them, and the bytes that are kept for these."""

    __slots__ = ("held", "key", "max_bytes", "max_members", "members")

    def __init__(self, key: "Key", max_members: int, max_bytes: int) -> None:
        self.key, self.max_members, self.max_bytes = key, max_members, max_bytes
        self.members: set[Member] = set()
        self.held = 0

    def is_exceeded(self) -> bool:
        """Counted afresh before it is said: what is read in parts is not told of."""
        if self.held <= self.max_bytes:
            return False
        for member in self.members:
            count(member, member.buffered())
        return self.held > self.max_bytes


class Usage:
    """What all connections take up. A connection is known by its address when it comes, by its owner when it shows a
    token; where no tokens are asked for, the owner is a user of this machine."""

    def __init__(self, limits: ServerLimits) -> None:
        self._connections, self._buffered = limits.connections, limits.buffered_bytes
        self._shares: dict[Key, Share] = {}

    def enter(self, member: Member, address: str) -> None:
        """Raises Refused."""
        total = self._share(("", ""), _max_connections(self._connections.total), self._buffered.total)
        per_address = self._share(("_per_address", address), self._connections.per_address, self._buffered.per_address)
        self._check_room(total)
        self._check_room(per_address)
        self._join(member, total)
        self._join(member, per_address)

    def identify(self, member: Member, owner: str) -> None:
        """A connection counts for the owner that it showed last. Raises Refused."""
        share = self._share(("_per_token", owner), self._connections.per_token, self._buffered.per_token)
        if member in share.members:
            return
        self._check_room(share)
        for other in [each for each in member.shares if each.key[0] == share.key[0]]:
            self._part(member, other)
        self._join(member, share)

    def leave(self, member: Member) -> None:
        for share in list(member.shares):
            self._part(member, share)

    def check_bytes(self, member: Member, size: int) -> None:
        """For bytes that arrive. Raises Refused."""
        count(member, size)
        for share in member.shares:
            if share.is_exceeded():
                limit = f"serve.{self._buffered.setting}{share.key[0]} = {share.max_bytes}"
                raise AccessRefused(429, f"too many bytes of requests and unread responses ({limit})", [RETRY])

    def shed(self, member: Member, size: int) -> None:
        """For bytes that are sent: those who have not read theirs for the longest time are cut off."""
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

    def _join(self, member: Member, share: Share) -> None:
        self._shares[share.key] = share
        share.members.add(member)
        share.held += member.held
        member.shares.append(share)

    def _part(self, member: Member, share: Share) -> None:
        share.members.discard(member)
        share.held -= member.held
        member.shares.remove(share)
        if not share.members:
            del self._shares[share.key]


def count(member: Member, size: int) -> None:
    grown = size - member.held
    member.held = size
    for share in member.shares:
        share.held += grown


def peer_address(host: str) -> str:
    """What counts as one address: all of this machine, and a network of IPv6 as it is given to one customer."""
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


def describe(limits: ServerLimits) -> Iterable[str]:
    """One line for each quota, as the settings have it."""
    for what, quota in (
        ("connections", limits.connections),
        ("sessions", limits.sessions),
        ("buffered bytes", limits.buffered_bytes),
    ):
        total = quota.total if quota is not limits.connections else _max_connections(quota.total)
        yield f"{what}: {total} ({quota.per_token} per token, {quota.per_address} per address)"


def _max_connections(connections: int) -> int:
    """As many as there are file descriptors for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return connections
    return max(1, min(connections, max(files - _OTHER_FILES, files // 2)))
