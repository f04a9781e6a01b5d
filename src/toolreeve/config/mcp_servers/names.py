"""Normalises a server's name: a pure function of the configured name.

The name precedes the names of its tools, which policy rules match: no two names may look alike, and none may be taken
for another server's or for our own.
"""

import re

from toolreeve.core.names import BUILTIN_SERVER

MAX_LENGTH = 48
RESERVED = frozenset({BUILTIN_SERVER, "mcp"})
"""`mcp__x` is the full spelling of a tool, so a server of that name would be ambiguous."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def server_name(given: str) -> str:
    """Runs of other ASCII characters, such as spaces, become `-`; both ends are stripped of what is not alphanumeric.

    Raises ValueError for characters beyond ASCII (they may look like others), for control characters, and for `__`.
    """
    if not given.isascii() or not given.isprintable():
        raise ValueError("contains lookalike or invisible characters")
    name = _OTHER.sub("-", given).strip("._-")
    if "__" in name:
        raise ValueError("contains '__', which separates servers from tools")
    if len(name) > MAX_LENGTH:
        raise ValueError(f"is longer than {MAX_LENGTH} characters")
    if name in RESERVED:
        raise ValueError("is reserved")
    if not _NAME.fullmatch(name):
        raise ValueError("contains no letter or digit")
    return name
