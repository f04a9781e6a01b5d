"""The user at the far end of a loopback connection, as the kernel knows it.

Everybody who is logged in reaches loopback. Where no token is asked for, only programs of the user who serves come in.
Asked for one connection, Linux answers at once; where it cannot be asked so, its table of all connections is searched.
A user whom it does not tell is refused; elsewhere than on Linux nobody tells, and all of this machine come in.
"""

import os
import socket
import struct
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

TABLES: Mapping[int, Path] = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
_ESTABLISHED = 1
_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST = 4, 20, 1
_ANY = 0xFFFFFFFF

ALLOWED_UIDS = frozenset({0, os.getuid()})
"""The superuser can do all that we can anyway."""

Address = tuple[str, int]


def find_allowed_uid(
    near: socket.socket,
    *,
    allowed: Collection[int] = ALLOWED_UIDS,
    find: "Callable[[int, Address, Address], int | None] | None" = None,
    supported: bool = sys.platform == "linux",
) -> int | None:
    """The user whose program is at the far end; None for one who does not come in. `told` says whether the machine
    tells whose a socket is."""
    try:
        user = (find or find_uid)(near.family, near.getpeername()[:2], near.getsockname()[:2])
    except FileNotFoundError:
        return None if supported else os.getuid()
    except OSError:
        return None
    return user if user in allowed else None


def find_uid(family: int, far: Address, near: Address) -> int | None:
    """The user of the program at the far end; None if there is none any more. Raises FileNotFoundError where that is
    not told."""
    try:
        return query_netlink(family, far, near)
    except (AttributeError, OSError):
        return search_proc(family, far, near)


def query_netlink(family: int, far: Address, near: Address) -> int | None:
    """Raises OSError where the kernel does not answer, as it does not for what it no longer knows."""
    ends = struct.pack("!HH16s16s", far[1], near[1], _packed(family, far), _packed(family, near))
    about = struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY) + ends + struct.pack("=III", 0, _ANY, _ANY)
    head = struct.pack("=IHHII", 16 + len(about), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(head + about)
        supported = kernel.recv(4096)
    _, kind, *_ = struct.unpack_from("=IHHII", supported)
    if kind != _SOCK_DIAG_BY_FAMILY:
        raise OSError("the kernel does not tell")
    _, state, user = struct.unpack_from("=BB62xI", supported, 16)
    return int(user) if state == _ESTABLISHED else None


def search_proc(family: int, far: Address, near: Address, tables: Mapping[int, Path] = TABLES) -> int | None:
    """Raises FileNotFoundError where there is no table."""
    ends = f": {_written(family, far)} {_written(family, near)} ".encode()
    _, found, rest = tables[family].read_bytes().partition(ends)
    state, _, _, _, user = rest.split(None, 5)[:5] if found else (b"0", b"", b"", b"", b"-1")
    return int(user) if int(state, 16) == _ESTABLISHED else None


def _packed(family: int, address: Address) -> bytes:
    return socket.inet_pton(family, address[0])


def _written(family: int, address: Address) -> str:
    packed = _packed(family, address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
