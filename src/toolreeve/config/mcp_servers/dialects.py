"""Translates other clients' server entries into the keys of `toolreeve.toml`.

Nothing is dropped silently: a key that has no counterpart is returned as `unknown`. An auto-approve setting of another
client never allows anything here; only the policy does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.config.mcp_servers.schema import SERVER

A2A_AGENTS = ("a2a_agents",)
SECTIONS: Sequence[tuple[str, ...]] = (
    ("mcpServers",),
    ("McpServers",),
    ("mcp_servers",),
    A2A_AGENTS,
    ("servers",),
    ("context_servers",),
    ("mcp", "servers"),
)
"""Where servers are in a document: our own spellings, VS Code's, Zed's and VS Code's settings."""

OWN = frozenset(SERVER["properties"])
_ALIASES: Mapping[str, str] = {
    "transport": "type",
    "transportType": "type",
    "transport_type": "type",
    "serverUrl": "url",
    "httpUrl": "url",
    "envFile": "env_file",
    "environment": "env",
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
_AUTO_APPROVE = frozenset(
    {"autoApprove", "alwaysAllow", "autoApproveTools", "trust", "default_tools_approval_mode", "default_approval_mode"}
)
_IGNORED = frozenset({"description", "name", "source", "gallery", "version", "$comment", "required"})
"""Keys that change nothing about how a server is reached or used."""

MILLISECONDS_FROM = 1000
"""Clients disagree on the unit of `timeout` and their files do not name it: a number this large is milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainEntry:
    """An entry in our own keys. `unknown` are keys without a counterpart, `auto_approve` those that would skip
    approval."""

    entry: Mapping[str, Any]
    unknown: tuple[str, ...]
    auto_approve: tuple[str, ...]


def plain(raw: Mapping[str, Any], *, own: bool) -> PlainEntry:
    """`own`: the entry is in a file of ours, where `timeout` is seconds."""
    entry: dict[str, Any] = {}
    unknown: list[str] = []
    auto_approve: list[str] = []
    for key, value in _flatten(raw, own=own).items():
        if key in OWN or key in _ALIASES:
            entry.setdefault(_ALIASES.get(key, key), value)
        elif key in _AUTO_APPROVE:
            if value not in (False, None, [], ()):
                auto_approve.append(key)
        elif key not in _IGNORED and key not in _TRANSLATED:
            unknown.append(key)
    for key in _TRANSLATED.keys() & raw.keys():
        _TRANSLATED[key](entry, raw[key])
    _convert_kind(entry)
    _convert_timeout(entry, own=own)
    _convert_env_pass(entry)
    if not own:
        _convert_oauth(entry)
    kept = {key: value for key, value in entry.items() if value is not None}
    return PlainEntry(entry=kept, unknown=tuple(unknown), auto_approve=tuple(auto_approve))


def _flatten(raw: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
    """`transport` and `command` may be tables of what other clients put next to them."""
    flat = dict(raw)
    transport = flat.get("transport")
    command = flat.get("command")
    if isinstance(command, list) and command and not own:
        flat["command"] = command[0]
        further = flat.get("args") or []
        flat["args"] = [*command[1:], *further] if isinstance(further, list) else further
    if isinstance(transport, Mapping):
        del flat["transport"]
        flat = {**transport, **flat}
    if isinstance(command, Mapping):
        del flat["command"]
        inner = {("command" if key == "path" else key): value for key, value in command.items()}
        flat = {**inner, **flat}
    return flat


def _convert_kind(entry: dict[str, Any]) -> None:
    kind = entry.get("type")
    if isinstance(kind, str):
        entry["type"] = _KINDS.get(kind, kind)


def _convert_timeout(entry: dict[str, Any], *, own: bool) -> None:
    seconds = entry.get("timeout")
    if not own and isinstance(seconds, (int, float)) and seconds >= MILLISECONDS_FROM:
        entry["timeout"] = seconds / 1000


def _convert_env_pass(entry: dict[str, Any]) -> None:
    names = entry.get("env_pass")
    if isinstance(names, list):
        entry["env_pass"] = [each.get("name") if isinstance(each, Mapping) else each for each in names]


def _convert_oauth(entry: dict[str, Any]) -> None:
    given = entry.get("oauth")
    if isinstance(given, Mapping):
        translated = {_OAUTH.get(key, key): value for key, value in given.items()}
        known = {key: value for key, value in translated.items() if key in _OAUTH.values()}
        entry["oauth"] = known or None


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
    given = entry.get("headers")
    entry["headers"] = {**given, **headers} if isinstance(given, Mapping) else dict(headers)


_TRANSLATED = {
    "disabled": _disabled,
    "startup_timeout_ms": _startup_ms,
    "bearer_token_env_var": _bearer,
    "env_http_headers": _headers_by_variable,
}
