"""What do other clients call it? The words of their files, turned into those of `toolreeve.toml`.

Nothing is lost on the way without being named: what has no word here comes back as `unknown`. What means "run this
unasked" elsewhere never does here; only the policy allows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.config.mcp_servers.schema import SERVER

SECTIONS: Sequence[tuple[str, ...]] = (
    ("mcpServers",),
    ("McpServers",),
    ("mcp_servers",),
    ("servers",),
    ("context_servers",),
    ("mcp", "servers"),
)
"""Where in a document the servers stand: our own spellings, VS Code's, Zed's and VS Code's settings."""

OWN = frozenset(SERVER["properties"])
_SAME: Mapping[str, str] = {
    "transport": "type",
    "transportType": "type",
    "transport_type": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "envFile": "env_file",
    "includeTools": "allow",
    "enabled_tools": "allow",
    "excludeTools": "deny",
    "disabled_tools": "deny",
    "disabledTools": "deny",
    "http_headers": "headers",
    "env_vars": "env_pass",
    "tool_timeout_sec": "timeout",
    "startup_timeout_sec": "connect_timeout",
}
_KINDS: Mapping[str, str] = {
    "local": "stdio",
    "remote": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "streamableHTTP": "http",
}
_OAUTH: Mapping[str, str] = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "callbackPort": "redirect_port",
    "scope": "scopes",
    "scopes": "scopes",
}
_UNASKED = frozenset(
    {"autoApprove", "alwaysAllow", "autoApproveTools", "trust", "default_tools_approval_mode", "default_approval_mode"}
)
_IDLE = frozenset({"description", "name", "source", "gallery", "version", "$comment", "required"})
"""Words that change nothing about how a server is reached or used."""

MILLISECONDS_FROM = 1000
"""Clients disagree on the unit of `timeout` and their files do not say it: a number this large is milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainEntry:
    """An entry in our own words. `unknown` are keys that have no word here, `unasked` those that would skip asking."""

    entry: Mapping[str, Any]
    unknown: tuple[str, ...]
    unasked: tuple[str, ...]


def plain(raw: Mapping[str, Any], *, own: bool) -> PlainEntry:
    """`own`: the entry stands in a file of ours, where `timeout` is seconds."""
    entry: dict[str, Any] = {}
    unknown: list[str] = []
    unasked: list[str] = []
    for key, value in _flat(raw).items():
        if key in OWN or key in _SAME:
            entry.setdefault(_SAME.get(key, key), value)
        elif key in _UNASKED:
            unasked += [key] if value not in (False, None, [], ()) else []
        elif key not in _IDLE and key not in _TURNED:
            unknown.append(key)
    for key in _TURNED.keys() & raw.keys():
        _TURNED[key](entry, raw[key])
    _settle_kind(entry)
    _settle_timeout(entry, own=own)
    _settle_passed(entry)
    if not own:
        _settle_oauth(entry)
    kept = {key: value for key, value in entry.items() if value is not None}
    return PlainEntry(entry=kept, unknown=tuple(unknown), unasked=tuple(unasked))


def _flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """`transport` and `command` may be tables that hold what elsewhere stands beside them."""
    flat = dict(raw)
    transport, command = flat.get("transport"), flat.get("command")
    if isinstance(transport, Mapping):
        del flat["transport"]
        flat = {**transport, **flat}
    if isinstance(command, Mapping):
        del flat["command"]
        inner = {("command" if key == "path" else key): value for key, value in command.items()}
        flat = {**inner, **flat}
    return flat


def _settle_kind(entry: dict[str, Any]) -> None:
    kind = entry.get("type")
    if isinstance(kind, str):
        entry["type"] = _KINDS.get(kind, kind)


def _settle_timeout(entry: dict[str, Any], *, own: bool) -> None:
    seconds = entry.get("timeout")
    if not own and isinstance(seconds, (int, float)) and seconds >= MILLISECONDS_FROM:
        entry["timeout"] = seconds / 1000


def _settle_passed(entry: dict[str, Any]) -> None:
    names = entry.get("env_pass")
    if isinstance(names, list):
        entry["env_pass"] = [each.get("name") if isinstance(each, Mapping) else each for each in names]


def _settle_oauth(entry: dict[str, Any]) -> None:
    said = entry.get("oauth")
    if isinstance(said, Mapping):
        words = {_OAUTH.get(key, key): value for key, value in said.items()}
        entry["oauth"] = {key: value for key, value in words.items() if key in _OAUTH.values()} or None


def _disabled(entry: dict[str, Any], value: Any) -> None:
    entry["enabled"] = not value if isinstance(value, bool) else value


def _startup_ms(entry: dict[str, Any], value: Any) -> None:
    entry.setdefault("connect_timeout", value / 1000 if isinstance(value, (int, float)) else value)


def _bearer(entry: dict[str, Any], value: Any) -> None:
    _add_headers(entry, {"Authorization": f"Bearer ${{{value}}}"})


def _headers_by_variable(entry: dict[str, Any], value: Any) -> None:
    named = value.items() if isinstance(value, Mapping) else ()
    _add_headers(entry, {header: f"${{{variable}}}" for header, variable in named})


def _add_headers(entry: dict[str, Any], headers: Mapping[str, str]) -> None:
    before = entry.get("headers")
    entry["headers"] = {**(before if isinstance(before, Mapping) else {}), **headers}


_TURNED = {
    "disabled": _disabled,
    "startup_timeout_ms": _startup_ms,
    "bearer_token_env_var": _bearer,
    "env_http_headers": _headers_by_variable,
}
