"""How far adopted servers are trusted: the choices and their settings."""

from collections.abc import Iterable, Mapping
from typing import Any

ASK = "ask"
SETTINGS: Mapping[str, Mapping[str, Any]] = {ASK: {}, "reads": {"trusted": True}, "all": {"danger": "safe"}}
MEANINGS: Mapping[str, str] = {
    ASK: "ask about every call",
    "reads": "tools that the server itself calls read-only run without asking",
    "all": "all its tools run without asking, whatever they do",
}


def parse_choices(values: Iterable[str], servers: Iterable[str]) -> dict[str, str]:
    """`SERVER=CHOICE`, or a choice for all servers. Raises ValueError."""
    known = list(servers)
    for_all = ASK
    chosen: dict[str, str] = {}
    for value in values:
        server, separator, choice = value.rpartition("=")
        if choice not in SETTINGS:
            raise ValueError(f"{choice!r} is no choice: use {', '.join(SETTINGS)}, or SERVER=CHOICE")
        if separator and server not in known:
            raise ValueError(f"{server!r} is not among the servers to adopt: {', '.join(known) or 'there are none'}")
        if separator:
            chosen[server] = choice
        else:
            for_all = choice
    return {server: chosen.get(server, for_all) for server in known}
