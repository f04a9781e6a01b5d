"""Recognises a write that the read-only workspace stopped.

A hint from what the program printed: the kernel tells nobody else. It never allows anything.
"""

import re

from toolreeve.core.errors import ToolError

_LATEST = 4096
_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        r"'([^'\n]+)': Read-only file system",
        r"Read-only file system: '([^'\n]+)'",
        r"EROFS: read-only file system, \w+ '([^'\n]+)'",
        r"\s([^\s:]+): Read-only file system",
    )
)
_ANY = re.compile(r"read-only file system", re.IGNORECASE)


def stopped_write(error: ToolError) -> str:
    """The file that the failed program tried to write, "a file" if it named none, or "" if nothing was stopped."""
    printed = str((error.data or {}).get("stderr") or "")[-_LATEST:]
    if not _ANY.search(printed):
        return ""
    matches = (pattern.search(printed) for pattern in _PATTERNS)
    return next((match.group(1) for match in matches if match), "a file")
