"""Is there a file that can be read? A pipe or a device, which could hold us up for ever, is none."""

import stat
from pathlib import Path

from toolreeve.core.documents import MAX_BYTES
from toolreeve.core.errors import ConfigError


def present(path: Path, *, most: int = MAX_BYTES) -> bool:
    """Raises ConfigError for something that is there and is no ordinary file of at most so many bytes."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", source=path) from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        raise ConfigError("is not an ordinary small file", source=path, fix="replace or remove it")
    return True
