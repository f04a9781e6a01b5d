"""Recognises what confinement stopped: a write, or a read.

Hints from what the program printed: the kernel tells nobody else. They never allow anything.
"""

import re
from collections.abc import Sequence

from toolreeve.core.errors import ToolError
from toolreeve.core.secrets.paths import is_sensitive

_LATEST = 4096
_WRITES = tuple(
    re.compile(pattern)
    for pattern in (
        r"'([^'\n]+)': Read-only file system",
        r"Read-only file system: '([^'\n]+)'",
        r"EROFS: read-only file system, \w+ '([^'\n]+)'",
        r"\s([^\s:]+): Read-only file system",
    )
)
_ANY_WRITE = re.compile(r"read-only file system", re.IGNORECASE)
_COVERED = re.compile(r"permission denied|device or resource busy|not readable", re.IGNORECASE)
_NOT_SEEN = "ignored by one of your .gitignore files"
"""So git takes a hidden file that it is told to add; the paths follow."""
_BETWEEN = re.compile(r"[\s'\"`(),:;=]+")


def stopped_write(error: ToolError | None) -> str:
    """The file that the failed program tried to write, "a file" if it named none, or "" if nothing was stopped."""
    printed = _printed(error)
    if not _ANY_WRITE.search(printed):
        return ""
    matches = (pattern.search(printed) for pattern in _WRITES)
    return next((match.group(1) for match in matches if match), "a file")


def stopped_read(error: ToolError | None, unread: Sequence[str] = ()) -> str:
    """Why the failed program could not use a sensitive file, which is hidden until someone approves; else "". `unread`
    are those among `refused_paths` that rules guard."""
    if unread:
        return f"it uses {', '.join(unread)}: rules keep that from commands that nobody approved"
    named = list(filter(is_sensitive, refused_paths(error)))
    if not named:
        return ""
    return f"it uses {', '.join(named)}: such files may hold secrets and are hidden from commands that nobody approved"


def refused_paths(error: ToolError | None) -> Sequence[str]:
    """The words that may be files which the failed program could not use."""
    printed = _printed(error)
    lines = [line for line in printed.splitlines() if _NOT_SEEN in printed or _COVERED.search(line)]
    return list(dict.fromkeys(word for line in lines for word in _BETWEEN.split(line) if word))


def lacks_repository(error: ToolError | None) -> bool:
    """Whether git says that there is no repository, as it does where its objects are hidden."""
    return "not a git repository" in _printed(error)


def _printed(error: ToolError | None) -> str:
    return str(((error and error.data) or {}).get("stderr") or "")[-_LATEST:]
