"""Names of upstream tools: a pure function of prefix and tool name.

`prefix__tool`; with an empty prefix the tool's own name. Printable ASCII outside of letters, digits, `_`, `.` and `-`
becomes `_`. A name longer than 64 characters is cut and ends in `_` and eight digits of the hash of the whole. Anything
else (lookalike letters of other scripts, invisible characters) is refused, never normalised: two names that look alike
must not mean two tools.
"""

import hashlib
import re

MAX_LENGTH = 64
MAX_GIVEN = 1_000
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
"""The requests, besides tool calls, that take the road: each is a hidden tool of its server."""


class NameRefused(ValueError):
    """The name of a server or a tool is invalid; the message says why, and is safe to show."""


def check_server(name: str) -> str:
    """The name itself. Raises NameRefused where tools cannot be named after it."""
    _refuse_lookalikes(name, "the server's name")
    if SEPARATOR in name:
        raise NameRefused(f"the server's name {name!r} contains `__`, which separates servers from tools")
    if _OTHER.search(name):
        raise NameRefused(f"the server's name {name!r} may contain only letters, digits, `_`, `.` and `-`")
    return name


def tool_name(prefix: str, tool: str) -> str:
    """Raises NameRefused."""
    _refuse_lookalikes(tool, "the tool's name")
    plain = _OTHER.sub("_", tool)
    name = f"{prefix}{SEPARATOR}{plain}" if prefix else plain
    if len(name) <= MAX_LENGTH:
        return name
    whole = hashlib.sha256(f"{prefix}{SEPARATOR}{tool}".encode()).hexdigest()
    return f"{name[: MAX_LENGTH - _DIGITS - 1]}_{whole[:_DIGITS]}"


def relay_name(server: str, method: str) -> str:
    """The hidden tool for a request other than a tool call: no tool's name contains a slash."""
    return f"{server}{SEPARATOR}{method}"


def _refuse_lookalikes(name: object, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise NameRefused(f"{what} is missing")
    if len(name) > MAX_GIVEN:
        raise NameRefused(f"{what} has {len(name)} characters; the maximum is {MAX_GIVEN}")
    if not (name.isascii() and name.isprintable()):
        raise NameRefused(f"{what} {name[:MAX_LENGTH]!a} contains lookalike or invisible characters")
