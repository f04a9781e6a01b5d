"""Under which name is a tool of a server known here? A pure function of the server's prefix and the tool's own name.

`prefix__tool`; with an empty prefix the tool's own name. Printable ASCII outside of letters, digits, `_`, `.` and `-`
becomes `_`. What would be longer than 64 characters is cut and ends in `_` and eight digits of the hash of the whole.
Anything else — letters of other scripts that look like ours, characters that are not seen — is refused, never
normalised: two names that look alike must not mean two tools.
"""

import hashlib
import re

LONGEST = 64
LONGEST_GIVEN = 1_000
SEPARATOR = "__"
_DIGITS = 8
_OTHER = re.compile(r"[^A-Za-z0-9_.-]")

RELAYED = (
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "completion/complete",
)
"""The requests, besides calls of tools, that take the road: each is a hidden tool of its server."""


class NameRefused(ValueError):
    """The name of a server or a tool cannot be used; the message says why, and can be shown."""


def check_server(name: str) -> str:
    """The name of a server, if tools can be named after it."""
    _refuse_hidden(name, "the server's name")
    if SEPARATOR in name:
        raise NameRefused(f"the server's name {name!r} holds `__`, which separates servers from tools")
    if _OTHER.search(name):
        raise NameRefused(f"the server's name {name!r} may hold letters, digits, `_`, `.` and `-` only")
    return name


def tool_name(prefix: str, tool: str) -> str:
    """Raises NameRefused."""
    _refuse_hidden(tool, "the tool's name")
    plain = _OTHER.sub("_", tool)
    named = f"{prefix}{SEPARATOR}{plain}" if prefix else plain
    if len(named) <= LONGEST:
        return named
    whole = hashlib.sha256(f"{prefix}{SEPARATOR}{tool}".encode()).hexdigest()
    return f"{named[: LONGEST - _DIGITS - 1]}_{whole[:_DIGITS]}"


def relay_name(server: str, method: str) -> str:
    """The hidden tool that carries a request other than a call of a tool: no tool's name holds a slash."""
    return f"{server}{SEPARATOR}{method}"


def _refuse_hidden(name: object, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise NameRefused(f"{what} is missing")
    if len(name) > LONGEST_GIVEN:
        raise NameRefused(f"{what} has {len(name)} characters; {LONGEST_GIVEN} are the most")
    if not (name.isascii() and name.isprintable()):
        raise NameRefused(f"{what} {name[:LONGEST]!a} holds characters that look like others or cannot be seen")
