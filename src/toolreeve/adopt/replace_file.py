"""How is a file replaced? As a whole or not at all, and only if it is still what it was when it was looked at.

It keeps its mode and stays where its link leads. What its owner made read-only is not changed.
"""

import hashlib
import os
import stat
from pathlib import Path

from toolreeve.core.atomic import PRIVATE, write_private
from toolreeve.core.errors import ConfigError


def require_writable(path: Path) -> None:
    """Raises ConfigError for what is there and may not be changed."""
    target = path.resolve()
    if not target.exists():
        return
    # Asking the mode as well: nothing is read-only to the superuser, whatever it says.
    if not target.stat().st_mode & 0o222 or not os.access(target, os.W_OK):
        raise ConfigError("is read-only", source=path, fix=f"chmod u+w {target}")
    if not os.access(target.parent, os.W_OK):
        raise ConfigError("is in a folder that is read-only", source=path, fix=f"chmod u+w {target.parent}")


def replace(path: Path, content: bytes, *, expected: str | bytes | None, private: bool) -> None:
    """Write aside and put into place. Raises ConfigError if the file is not what it is expected to be any more."""
    require_writable(path)
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else PRIVATE

    def check() -> None:
        if digest(read(target)) != digest(expected):
            raise ConfigError("was changed by somebody else just now", source=path, fix="run it again")

    write_private(target, content, mode=mode & ~0o077 if private else mode, check=check)


def write_new(path: Path, content: bytes) -> None:
    """For its owner only. Raises FileExistsError."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def digest(content: str | bytes | None) -> str | None:
    if content is None:
        return None
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()
