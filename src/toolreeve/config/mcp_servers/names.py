"""What is a server called here? A pure function of the name somebody gave it.

The name stands before the names of its tools, which policy rules speak of: no two names may look alike, and nothing
may be taken for another server's or for our own.
"""

import re

from toolreeve.core.names import BUILTIN_SERVER

MAX_LENGTH = 48
RESERVED = frozenset({BUILTIN_SERVER, "mcp"})
"""`mcp__x` is how tools are spelled out, so that a server of that name could never be told from no server."""

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")


def server_name(given: str) -> str:
    """Runs of other ASCII characters, such as spaces, become `-`, and what is no letter or digit goes at both ends.

    Raises ValueError for what is beyond ASCII (it may look like something else), for control characters, and for `__`.
    """
    if not given.isascii() or not given.isprintable():
        raise ValueError("holds characters that may look like others or cannot be seen")
    name = _OTHER.sub("-", given).strip("._-")
    if "__" in name:
        raise ValueError("holds '__', which parts a server from its tools")
    if len(name) > MAX_LENGTH:
        raise ValueError(f"is longer than {MAX_LENGTH} characters")
    if name in RESERVED:
        raise ValueError("is reserved")
    if not _NAME.fullmatch(name):
        raise ValueError("holds no letter or digit")
    return name
