"""Resolves an entry, with all references expanded, into a `ServerSpec`."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolreeve.config.mcp_servers.expansion import Expander, Unresolved
from toolreeve.config.mcp_servers.names import server_name
from toolreeve.config.mcp_servers.secret_values import find_secrets, redact
from toolreeve.core.danger import DangerLevel
from toolreeve.upstream.server_spec import CONNECT_TIMEOUT, Kind, ServerSpec

MAX_ENV_FILE = 64 * 1024
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Rejected(Exception):
    """Why an entry is invalid; `key` is where in it."""

    def __init__(self, problem: str, fix: str = "", key: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.fix = fix
        self.key = tuple(key)


def resolve(
    name: str, entry: Mapping[str, Any], expander: Expander, *, base: Path, source: str, place: str
) -> ServerSpec:
    """`entry` fits the schema. A disabled one is resolved as far as possible. Raises Rejected."""
    kind = _kind(entry)
    values = _Values(entry, expander, base, lenient=entry.get("enabled") is False)
    args = values.texts("args")
    oauth = values.oauth()
    headers = values.headers()
    env = values.env() if kind == "stdio" else {}
    url = values.url() if kind != "stdio" else None
    undeclared = find_secrets((*args, url or ""), env, headers, oauth or {})
    return ServerSpec(
        name=name,
        kind=kind,
        place=redact(place, undeclared),
        source=source,
        command=values.command() if kind == "stdio" else None,
        args=args,
        env=env,
        cwd=values.path("cwd"),
        url=url,
        headers=headers,
        timeout=_seconds(entry.get("timeout")),
        connect_timeout=_seconds(entry.get("connect_timeout")) or CONNECT_TIMEOUT,
        allow=tuple(entry["allow"]) if "allow" in entry else None,
        deny=tuple(entry.get("deny", ())),
        danger=_levels(entry.get("danger", {})),
        trusted=entry.get("trusted", False),
        prefix=_prefix(entry.get("prefix")),
        sandbox=entry.get("sandbox"),
        oauth=oauth,
        enabled=entry.get("enabled", True),
        secrets=tuple(expander.secrets),
        secret_values=tuple(dict.fromkeys((*expander.secrets.values(), *undeclared))),
    )


def _kind(entry: Mapping[str, Any]) -> Kind:
    has_command = "command" in entry
    has_url = "url" in entry
    kind = entry.get("type")
    if has_command and has_url:
        raise Rejected("has both a command and a url", "keep one of them")
    if not has_command and not has_url:
        raise Rejected("has neither a command nor a url", "add one of them")
    if (kind == "stdio" and has_url) or (kind in ("http", "sse", "a2a") and has_command):
        raise Rejected(f"is {kind!r}, which does not go with a {'url' if has_url else 'command'}", "drop it", ("type",))
    if kind is None:
        return "stdio" if has_command else "http"
    return kind  # type: ignore[no-any-return]


def _seconds(value: float | None) -> float | None:
    return None if value is None else float(value)


def _levels(danger: str | Mapping[str, str]) -> dict[str, DangerLevel]:
    if isinstance(danger, str):
        return {"*": DangerLevel(danger)}
    return {pattern: DangerLevel(level) for pattern, level in danger.items()}


def _prefix(prefix: str | None) -> str | None:
    """A prefix is empty or follows the rule for server names."""
    if not prefix:
        return prefix
    try:
        named = server_name(prefix)
    except ValueError as problem:
        raise Rejected(f"{prefix!a} {problem}", "choose another", ("prefix",)) from None
    if named != prefix:
        raise Rejected(f"{prefix!a} is not a valid prefix", f"write {named!r}", ("prefix",))
    return prefix


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of one entry, resolved. `lenient` keeps references without a value as written."""

    entry: Mapping[str, Any]
    expander: Expander
    base: Path
    lenient: bool

    def text(self, value: str, *key: str) -> str:
        try:
            resolved = self.expander.expand(value)
        except Unresolved as problem:
            if self.lenient:
                return value
            raise Rejected(str(problem), problem.fix, key) from None
        if not _is_passable(resolved):
            raise Rejected("contains a character that cannot be passed to a program or server", "remove it", key)
        return resolved

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self.text(each, key) for each in self.entry.get(key, ()))

    def command(self) -> str:
        command = self._expand_home(self.text(self.entry["command"], "command"))
        relative = command.startswith(("./", "../"))
        return str(self.base / command) if relative else command

    def path(self, key: str) -> str | None:
        if key not in self.entry:
            return None
        return str((self.base / self._expand_home(self.text(self.entry[key], key))).resolve())

    def _expand_home(self, path: str) -> str:
        if path == "~" or path.startswith("~/"):
            return self.expander.surroundings.home + path[1:]
        return path

    def env(self) -> dict[str, str]:
        environ = self.expander.surroundings.environ
        passed = {name: self.expander.pass_on(name) for name in self.entry.get("env_pass", ()) if name in environ}
        given = {name: self.text(value, "env", name) for name, value in self.entry.get("env", {}).items()}
        for name in given:
            if not name or "=" in name or not _is_passable(name):
                raise Rejected(f"{name!a} is not a valid variable name", "rename it", ("env",))
        return passed | self._env_file() | given

    def _env_file(self) -> dict[str, str]:
        path = self.path("env_file")
        if path is None or self.lenient:
            return {}
        try:
            with Path(path).open("rb") as stream:
                return _assignments(stream.read(MAX_ENV_FILE).decode())
        except OSError as problem:
            raise Rejected(f"cannot be read: {problem.strerror}", "", ("env_file",)) from None
        except ValueError as problem:
            raise Rejected(f"is not a file of NAME=value lines: {problem}", "", ("env_file",)) from None

    def url(self) -> str:
        url = self.text(self.entry["url"], "url")
        if self.lenient:
            return url
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not _CONTROL.search(url)
        except ValueError:
            usable = False
        if not usable:
            raise Rejected("is not an http or https URL", "write https://host/path", ("url",))
        return url

    def headers(self) -> dict[str, str]:
        headers = {name: self.text(value, "headers", name) for name, value in self.entry.get("headers", {}).items()}
        for name, value in headers.items():
            if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
                raise Rejected(f"{name!a} is not a valid header", "remove it", ("headers",))
        return headers

    def oauth(self) -> Mapping[str, Any] | None:
        given = self.entry.get("oauth")
        if given is None:
            return None
        resolved = dict(given)
        for key, value in given.items():
            if isinstance(value, str):
                resolved[key] = self.text(value, "oauth", key)
        return resolved


def _is_passable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _assignments(text: str) -> dict[str, str]:
    """The variables of an env file. Quotes are removed, nothing is expanded."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip().removeprefix("export ")
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals or not _VARIABLE.fullmatch(name.strip()):
            raise ValueError(f"{line[:40]!a}")
        words = shlex.split(value, comments=True)
        found[name.strip()] = " ".join(words)
    return found
