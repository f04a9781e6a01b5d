"""Peer credentials of loopback TCP connections: the uid of the connecting process.

Every local user can reach loopback. Without tokens, only processes of the serving user and root are accepted. Linux is
queried by netlink for one connection, or else through its table of all connections. A connection of unknown uid is
refused; platforms other than Linux cannot tell, and there every local process is accepted.
"""

import os
import socket
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

TABLES: Mapping[int, Path] = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_ESTABLISHED = 1
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_ANY = 0xFFFFFFFF

ALLOWED_UIDS = frozenset({0, os.getuid()})
"""Root can do everything that this process can."""

Address = tuple[str, int]


def find_allowed_uid(
    near: socket.socket,
    *,
    allowed: Collection[int] = ALLOWED_UIDS,
    find: "Callable[[int, Address, Address], int | None] | None" = None,
    supported: bool = sys.platform == "linux",
) -> int | None:
    """The uid of the peer process; None if it is not allowed. `supported` says whether the platform can tell."""
    try:
        user = (find or find_uid)(near.family, near.getpeername()[:2], near.getsockname()[:2])
    except FileNotFoundError:
        return None if supported else os.getuid()
    except OSError:
        return None
    return user if user in allowed else None


def find_uid(family: int, far: Address, near: Address) -> int | None:
    """The uid of the peer process; None if the connection is gone. Raises FileNotFoundError if the platform cannot
    tell."""
    try:
        return query_netlink(family, far, near)
    except (AttributeError, OSError):
        return search_proc(family, far, near)


def query_netlink(family: int, far: Address, near: Address) -> int | None:
    """Raises OSError if the kernel does not answer, as for a connection that is gone."""
    ends = struct.pack("!HH16s16s", far[1], near[1], _packed(family, far), _packed(family, near))
    about = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY) + ends + struct.pack("=III", 0, _ANY, _ANY)
    head = struct.pack("=IHHII", 16 + len(about), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(head + about)
        response = kernel.recv(4096)
    _, kind, *_ = struct.unpack_from("=IHHII", response)
    if kind != _SOCK_DIAG_BY_FAMILY:
        raise OSError("the kernel did not answer the socket query")
    _, state, user = struct.unpack_from("=BB62xI", response, 16)
    return int(user) if state == _ESTABLISHED else None


def search_proc(family: int, far: Address, near: Address, tables: Mapping[int, Path] = TABLES) -> int | None:
    """Raises FileNotFoundError if there is no table."""
    ends = f": {_written(family, far)} {_written(family, near)} ".encode()
    _, found, rest = tables[family].read_bytes().partition(ends)
    if not found:
        return None
    state, _, _, _, user = rest.split(None, 5)[:5]
    return int(user) if int(state, 16) == _ESTABLISHED else None


def _packed(family: int, address: Address) -> bytes:
    return socket.inet_pton(family, address[0])


def _written(family: int, address: Address) -> str:
    packed = _packed(family, address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
