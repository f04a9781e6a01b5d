"""Reads the servers of a client's file. Changes nothing."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.adopt.clients import EACH, ConfigLocation, KeyPath, KnownClient
from toolreeve.config.jsonc import BOM, json_document
from toolreeve.config.mcp_servers.dialects import plain
from toolreeve.config.mcp_servers.expansion import Surroundings
from toolreeve.config.mcp_servers.reader import MAX_SERVERS, Origin, is_ourselves, parse_servers
from toolreeve.config.readable_files import is_readable_file
from toolreeve.core.documents import Document, parse_toml, parse_yaml
from toolreeve.core.errors import ConfigError

MAX_BYTES = 64 * 1024 * 1024
_BARE = re.compile(r"\$(?=[A-Za-z_])([A-Za-z0-9_]+)")
_OWN_KEYS = frozenset({"trusted", "danger", "prefix"})
"""Keys of the user's own file; in a client's file they mean something else, or nothing."""

_DROPPED_IF_EMPTY = frozenset({"args", "env", "headers", "deny", "env_pass"})
"""Keys that mean nothing if empty; an empty `allow`, in contrast, allows nothing."""


_STARTS = frozenset({"command", "cmd", "url", "uri"})
"""Keys that say how a server is started or reached."""


class Unfit(Exception):
    """Why a server cannot be adopted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoptable:
    """A server of a client, in our terms. `section` and `key` locate it in the file, `lost` are its keys without a
    meaning here, `unasked` those that would skip approval."""

    section: KeyPath
    key: str
    entry: Mapping[str, Any]
    lost: tuple[str, ...]
    unasked: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntry:
    """A server that stays where it is, and why."""

    section: KeyPath
    key: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """A client's file. `ours` are the sections that already have our entry."""

    client: KnownClient
    place: ConfigLocation
    text: str = field(repr=False)
    value: Mapping[str, Any] = field(repr=False)
    adoptable: tuple[Adoptable, ...] = ()
    kept: tuple[KeptEntry, ...] = ()
    ours: tuple[KeyPath, ...] = ()


def read_client_file(client: KnownClient, place: ConfigLocation) -> ClientFile | None:
    """None if there is no such file. Raises ConfigError for one that is unreadable or malformed."""
    if not is_readable_file(place.path, max_bytes=MAX_BYTES):
        return None
    try:
        content = place.path.read_bytes()
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", source=place.path) from None
    try:
        text = content.decode()
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise ConfigError("is not UTF-8 text", source=place.path, line=line) from None
    return parse_client_file(client, place, text)


def parse_client_file(client: KnownClient, place: ConfigLocation, text: str) -> ClientFile:
    """Raises ConfigError for malformed text."""
    return _classify(client, place, text, _parse(client, place, text))


def _parse(client: KnownClient, place: ConfigLocation, text: str) -> Document:
    parse = {"toml": parse_toml, "yaml": parse_yaml, "json": json_document}[client.format]
    document = parse(text.removeprefix(BOM), str(place.path))
    if not isinstance(document.value, Mapping | None):
        raise ConfigError(f"is not a {client.format.upper()} object", source=place.path, line=1)
    return document


def _classify(client: KnownClient, place: ConfigLocation, text: str, document: Document) -> ClientFile:
    adoptable: list[Adoptable] = []
    kept: list[KeptEntry] = []
    ours: list[KeyPath] = []
    value = document.value or {}
    kept += _left_by_hand(client, value)
    for section, servers in _sections(client, value):
        if not isinstance(servers, Mapping):
            raise document.error("is not a table of servers", path=section)
        if len(adoptable) + len(servers) > MAX_SERVERS:
            raise document.error(f"holds more than {MAX_SERVERS} servers", path=section)
        for key, raw in servers.items():
            if (*section, key) in client.by_hand:
                continue
            if client.format == "yaml":
                raw = _extension(raw)
                if raw is None:
                    continue
            if isinstance(raw, Mapping) and is_ourselves(raw):
                ours.append(section)
                continue
            try:
                _require_started(client, value, key)
                adoptable.append(_adoptable(client, place, section, key, raw))
            except Unfit as problem:
                kept.append(KeptEntry(section=section, key=key, why=str(problem)))
    return ClientFile(
        client=client,
        place=place,
        text=text,
        value=value,
        adoptable=tuple(adoptable),
        kept=tuple(kept),
        ours=tuple(ours),
    )


_GOOSE_KEYS = {"cmd": "command", "args": "args", "envs": "env", "uri": "url", "headers": "headers", "cwd": "cwd"}
_GOOSE_TYPES = {"sse": "sse", "streamable_http": "http"}


def _extension(raw: Any) -> Mapping[str, Any] | None:
    """An extension of goose as a server; None for one that is part of goose itself."""
    if not isinstance(raw, Mapping) or _STARTS.isdisjoint(raw):
        return None
    entry: dict[str, Any] = {
        _GOOSE_KEYS.get(str(key), str(key)): value for key, value in raw.items() if key not in _GOOSE_OWN
    }
    if raw.get("enabled") is False:
        entry["disabled"] = True
    if kind := _GOOSE_TYPES.get(str(raw.get("type"))):
        entry["type"] = kind
    return entry


_GOOSE_OWN = frozenset("type name display_name description enabled bundled timeout env_keys available_tools".split())


def _left_by_hand(client: KnownClient, value: Mapping[str, Any]) -> Iterator[KeptEntry]:
    """The servers that we do not move. An extension that is part of the client itself is none."""
    for pattern in client.by_hand:
        for section, servers in _below(value, pattern, ()):
            for key, raw in servers.items() if isinstance(servers, Mapping) else ():
                started = isinstance(raw, Mapping) and not _STARTS.isdisjoint(raw)
                if started and not is_ourselves({"command": raw.get("cmd"), **raw}):
                    yield KeptEntry(section=section, key=str(key), why=client.how_by_hand)


def why_not_started(client: KnownClient, value: Mapping[str, Any], key: str) -> str:
    """The list of the client's file that keeps it from starting a server; empty if it starts it."""
    for path in client.allowed:
        names = _listed(value, path)
        if names and key.casefold() not in names:
            return f"{'.'.join(path)} does not name it"
    for path in client.excluded:
        if key.casefold() in _listed(value, path):
            return f"{'.'.join(path)} names it"
    return ""


def _listed(value: Mapping[str, Any], path: KeyPath) -> frozenset[str]:
    """The names in a list, case-insensitively."""
    found = next((found for _, found in _below(value, path, ())), None)
    return frozenset(str(name).casefold() for name in found) if isinstance(found, list) else frozenset()


def _require_started(client: KnownClient, value: Mapping[str, Any], key: str) -> None:
    """A server that the user disabled there is not enabled here."""
    why = why_not_started(client, value, key)
    if why:
        raise Unfit(f"{client.title} does not start it: {why}")


def _sections(client: KnownClient, value: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    for pattern in client.sections:
        yield from _below(value, pattern, ())


def _below(value: Any, pattern: KeyPath, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if not pattern:
        yield path, value
    elif isinstance(value, Mapping):
        for key in value if pattern[0] == EACH else [pattern[0]]:
            if key in value:
                yield from _below(value[key], pattern[1:], (*path, key))


def _adoptable(client: KnownClient, place: ConfigLocation, section: KeyPath, key: str, raw: Any) -> Adoptable:
    """Raises Unfit for a server that would not work here as it does there."""
    if not isinstance(raw, Mapping):
        raise Unfit("it is not a table")
    if "sandbox" in raw or raw.get("sandboxEnabled"):
        raise Unfit("it uses the client's own sandbox")
    words = plain(_with_braces(raw) if client.bare_variables else raw, own=False)
    dropped = {name for name in _DROPPED_IF_EMPTY if not words.entry.get(name)} | _OWN_KEYS
    entry = {name: value for name, value in words.entry.items() if name not in dropped}
    if "url" in entry and "type" not in entry and "httpUrl" not in raw and client.url_kind != "http":
        entry["type"] = client.url_kind
    entry = _anchored(entry, _root(place, section))
    _require_unicode([*section, key, entry])
    _require_usable(key, entry)
    return Adoptable(section=section, key=key, entry=entry, lost=words.unknown, unasked=words.auto_approve)


def _with_braces(value: Any) -> Any:
    """`$NAME` as `${NAME}`."""
    if isinstance(value, str):
        return _BARE.sub(r"${\1}", value)
    if isinstance(value, Mapping):
        return {key: _with_braces(inner) for key, inner in value.items()}
    return [_with_braces(inner) for inner in value] if isinstance(value, list) else value


def _root(place: ConfigLocation, section: KeyPath) -> Path | None:
    """The folder that a server belongs to, if any."""
    if section[0] == "projects":
        return Path(section[1])
    if not place.shared:
        return None
    return place.path.parent if place.path.name == ".mcp.json" else place.path.parent.parent


def _anchored(entry: Mapping[str, Any], root: Path | None) -> dict[str, Any]:
    """The entry with paths that work from another file: those relative to its folder become absolute."""
    if root is None:
        for key in ("command", "cwd", "env_file"):
            if str(entry.get(key, "")).startswith("."):
                raise Unfit(f"its {key} is a path relative to wherever the client starts")
        return dict(entry)
    anchored: dict[str, Any] = _substitute(entry, "${workspaceFolder}", str(root))
    for key in ("command", "cwd", "env_file"):
        value = anchored.get(key)
        if isinstance(value, str) and _is_relative_path(key, value):
            anchored[key] = str(root / value)
    if "command" in anchored:
        anchored.setdefault("cwd", str(root))
    return anchored


def _is_relative_path(key: str, value: str) -> bool:
    """A command is a path only if it starts with a dot; otherwise PATH is searched."""
    if key == "command" and not value.startswith("."):
        return False
    return not value.startswith(("~", "$"))


def _substitute(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {key: _substitute(inner, old, new) for key, inner in value.items()}
    return [_substitute(inner, old, new) for inner in value] if isinstance(value, list) else value


class _Anything(dict[str, str]):
    """An environment in which every variable is set: whether one exists matters only when a server starts."""

    def get(self, *_: Any) -> Any:
        return "x"

    def __missing__(self, _: str) -> str:
        return "x"


def _require_unicode(values: Any) -> None:
    """JSON can contain lone surrogates, which no UTF-8 file can."""
    try:
        json.dumps(values, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise Unfit("it contains text that is not valid Unicode") from None


def _require_usable(key: str, entry: Mapping[str, Any]) -> None:
    known = Surroundings(environ=_Anything(), secret=lambda _: "x", workspace="/", home="/")
    trial = {name: value for name, value in entry.items() if name != "env_file"}
    found = parse_servers({"mcp_servers": {key: trial}}, Origin(source="", base=Path("/"), own=True), known)
    for problem in found.problems:
        at = problem.key.removeprefix(f"mcp_servers.{key}").lstrip(".")
        raise Unfit(f"{at}: {problem.problem}" if at else problem.problem)
