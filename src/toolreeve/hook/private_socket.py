"""Private socket between hooks and a running server, checked on both ends.

Standard library only. The path depends on the workspace and on everything in the environment that changes decisions,
so a server answers only hooks that would decide by the same configuration. A socket that is not ours alone is not used.
"""

import hashlib
import os
import socket
import stat
import struct
from posixpath import dirname, join, realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST_PATH = 100
"""Bytes; the kernel accepts 107."""
_CREDENTIALS = struct.Struct("3i")
_DECISIVE = ("TOOLREEVE_", "A2A_", "WORKSPACE_", "COMMAND_", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOME")


class NotPrivate(OSError):
    """The socket, or its directory, belongs to another user or can be reached by others."""


def socket_path(workspace: str, environ: "Mapping[str, str]") -> str:
    """The socket of a workspace; its directory is `toolreeve` in the user's runtime directory, else in /tmp."""
    decisive = sorted(f"{name}={value}" for name, value in environ.items() if name.startswith(_DECISIVE))
    key = "\0".join((realpath(workspace), *decisive))
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return join(_directory(environ), f"{name}.sock")


def _directory(environ: "Mapping[str, str]") -> str:
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    folder = join(runtime, "toolreeve")
    if runtime.startswith("/") and len(os.fsencode(folder)) <= LONGEST_PATH - 30:
        return folder
    return f"/tmp/toolreeve-{os.geteuid()}"  # noqa: S108 - checked to be ours alone


def make_directory(path: str) -> None:
    """Create the directory of a socket, private to its owner. Raises NotPrivate."""
    folder = dirname(path)
    os.makedirs(folder, mode=0o700, exist_ok=True)  # noqa: PTH103 - pathlib takes long to import
    _require_private(folder, stat.S_ISDIR)


def connect(path: str, timeout: float) -> socket.socket:
    """Connect to the server of a path. Raises OSError, NotPrivate among others: then no server can be trusted."""
    _require_private(dirname(path), stat.S_ISDIR)
    _require_private(path, stat.S_ISSOCK)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(path)
        require_own(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def require_own(connection: socket.socket) -> None:
    """Raises NotPrivate unless the process at the other end runs as our own user."""
    if not hasattr(socket, "SO_PEERCRED"):
        return
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid = _CREDENTIALS.unpack(raw)[1]
    if uid != os.geteuid():
        raise NotPrivate(f"the other end runs as user {uid}")


def _require_private(path: str, is_kind: "Callable[[int], bool]") -> None:
    found = os.lstat(path)
    if not is_kind(found.st_mode):
        raise NotPrivate(f"{path} is not what it should be")
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise NotPrivate(f"{path} is not private to its owner")
