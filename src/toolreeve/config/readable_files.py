"""Checks that a file is small and regular before it is read.

A pipe or a device could block for ever: both are refused.
"""

import stat
from pathlib import Path

from toolreeve.core.documents import MAX_BYTES
from toolreeve.core.errors import ConfigError


def is_readable_file(path: Path, *, max_bytes: int = MAX_BYTES) -> bool:
    """False if there is none. Raises ConfigError for anything but a regular file of at most `max_bytes`."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", source=path) from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError("is not a regular file", source=path, fix="replace or remove it")
    if found.st_size > max_bytes:
        raise ConfigError(f"is larger than {max_bytes} bytes", source=path, fix="replace or remove it")
    return True
