"""Kernel memory that processes hold outside their address space, estimated from /proc.

Where no control group counts it, each object is charged with the most that the kernel lets it hold, so that the
estimate is never too low. An object that several processes share is charged once.
"""

import os
from collections.abc import Iterable
from functools import lru_cache

_PIPE = 64 << 10  # the seccomp filter refuses to enlarge it
_SOCKET_OPTIONS = 128 << 10  # filters and the like
_FILE = 1 << 10
_WATCH = 256  # one descriptor in one epoll
_EPOLL = "anon_inode:[eventpoll]"


@lru_cache(maxsize=1)
def _socket() -> int:
    """Both buffers of a TCP socket, limited when the network was made, are no larger than one of a Unix socket."""
    with open("/proc/sys/net/core/wmem_default") as file:
        return int(file.read()) + _SOCKET_OPTIONS


def held_by(processes: Iterable[str]) -> int:
    """Bytes of buffers and objects behind their descriptors; for hidden descriptors use `most_held`."""
    shared: set[str] = set()
    total = 0
    for name in processes:
        folder = f"/proc/{name}/fd"
        try:
            descriptors = os.listdir(folder)
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                link = os.readlink(f"{folder}/{descriptor}")
            except OSError:
                continue
            if link.startswith(("socket:", "pipe:")):
                shared.add(link)
            total += _FILE
            if link == _EPOLL:
                total += _watches(f"/proc/{name}/fdinfo/{descriptor}")
    sockets = sum(link.startswith("socket:") for link in shared)
    return total + sockets * _socket() + (len(shared) - sockets) * _PIPE


def _watches(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return file.read().count(b"tfd:") * _WATCH
    except OSError:
        return 0


def most_held(descriptors: int) -> int:
    """The most bytes that this many descriptors can hold."""
    return descriptors * (_socket() + descriptors * _WATCH)
