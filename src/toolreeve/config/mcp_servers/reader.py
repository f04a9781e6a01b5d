"""Reads the servers of a document; an invalid entry stops no other.

Values are resolved here, once; what a project's own file says about trust and danger can only make us more careful.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from toolreeve.config.mcp_servers.dialects import A2A_AGENTS, OWN, SECTIONS, plain
from toolreeve.config.mcp_servers.expansion import Expander, Surroundings
from toolreeve.config.mcp_servers.names import server_name
from toolreeve.config.mcp_servers.resolver import Rejected, resolve
from toolreeve.config.mcp_servers.schema import SERVER
from toolreeve.config.mcp_servers.secret_values import redact_arguments
from toolreeve.config.mcp_servers.server_list import Servers
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ConfigError
from toolreeve.core.schema import Schema, SchemaProblem
from toolreeve.core.suggest import hint_similar
from toolreeve.upstream.oauth.settings import OAuthSettings
from toolreeve.upstream.server_spec import ServerSpec

KeyPath = tuple[str | int, ...]
_OURSELVES = re.compile(r"toolreeve(?:\[[^\]]*\])?(?:(?:@|==).*)?")
MAX_SERVERS = 500
_SCHEMA = Schema(SERVER)
# An `@` after the host does not end a user name: what is shown as the host must be the host.
_AUTHORITY = re.compile(r"([^/?#\\]*)(.*)", re.DOTALL)
_QUERY = re.compile(r"[?#]")
_QUOTED = frozenset({"args", "env", "headers", "oauth", "url"})
"""Keys that may hold secrets: their problems are reported without the value."""
_QUOTE = re.compile(r"(, got [a-z]+) .*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where entries come from. `own`: a file of ours or code, where every key must be known. `project`: a file of the
    workspace. Relative paths start at `base`."""

    source: str
    base: Path
    own: bool
    project: bool = False
    line_of: Callable[[KeyPath], int | None] = lambda _: None

    def place(self, path: KeyPath) -> str:
        line = self.line_of(path)
        return self.source if line is None else f"{self.source}:{line}"

    def error(self, problem: str, *, path: KeyPath, fix: str = "") -> ConfigError:
        key = ".".join(map(str, path))
        return ConfigError(problem, source=self.source, line=self.line_of(path), key=key, fix=fix)


class LeftOut(ConfigError):
    """A configured server that is invalid. `place` is where it is configured."""

    def __init__(self, server: str, place: str, problem: ConfigError) -> None:
        where = {"source": problem.source, "line": problem.line, "key": problem.key}
        super().__init__(problem.problem, fix=problem.fix, **where)  # type: ignore[arg-type]
        self.server = server
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEntry:
    name: Any
    raw: Any
    path: KeyPath


def parse_servers(document: Any, origin: Origin, surroundings: Surroundings) -> Servers:
    """The servers of a whole document, in any of its sections."""
    found = Servers()
    for path, section in sections(document):
        found_here = list(entries(section, path))
        if len(found_here) > MAX_SERVERS:
            found.problems.append(origin.error(f"names more than {MAX_SERVERS} servers", path=path))
        for entry in found_here[:MAX_SERVERS]:
            _read(entry, origin, surroundings, found)
    return found


def sections(document: Any) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(document, (list, tuple)):
        yield (), document
        return
    for path in SECTIONS:
        section: Any = document
        for key in path:
            section = section.get(key) if isinstance(section, Mapping) else None
        if section is not None:
            yield path, _with_type(section) if path == A2A_AGENTS else section


def _with_type(section: Any) -> Any:
    """A2A agents are servers of that type."""
    if not isinstance(section, Mapping):
        return section
    return {name: {**raw, "type": "a2a"} if isinstance(raw, Mapping) else raw for name, raw in section.items()}


def entries(section: Any, path: KeyPath) -> Iterator[ServerEntry]:
    """A table by name, or a list of tables with names."""
    if isinstance(section, Mapping):
        for name, raw in section.items():
            yield ServerEntry(name=name, raw=raw, path=(*path, name))
    elif isinstance(section, (list, tuple)):
        for index, raw in enumerate(section):
            named = raw.get("name") if isinstance(raw, Mapping) else None
            yield ServerEntry(name=named, raw=raw, path=(*path, index))
    else:
        yield ServerEntry(name=None, raw=section, path=path)


def _read(entry: ServerEntry, origin: Origin, surroundings: Surroundings, found: Servers) -> None:
    before = {spec.name: spec.source for spec in found.specs}
    try:
        spec = _parse(entry, origin, surroundings, found.notices)
    except Rejected as problem:
        error = origin.error(str(problem), path=(*entry.path, *problem.key), fix=problem.fix)
        found.problems.append(LeftOut(str(entry.path[-1]), origin.place(entry.path), error) if entry.path else error)
        return
    if spec is None:
        return
    if spec.name in before:
        text = f"has the name {spec.name!r} of the server in {before[spec.name]}"
        found.problems.append(origin.error(text, path=entry.path, fix="rename one of them"))
    else:
        found.specs.append(spec)


def _parse(entry: ServerEntry, origin: Origin, surroundings: Surroundings, notices: list[str]) -> ServerSpec | None:
    """None for an entry that is Toolreeve itself."""
    if not isinstance(entry.name, str):
        raise Rejected("has no name" if isinstance(entry.raw, Mapping) else "is not a table", "name each server")
    if not isinstance(entry.raw, Mapping):
        raise Rejected("is not a table", 'write its command and args, or its url, such as { command = "…" }')
    here = origin.place(entry.path)
    remarks = [f"{here}: {text}" for text in _remarks(entry, origin)]
    if is_ourselves(entry.raw):
        return None
    name = _name(entry.name)
    own = _checked(entry.raw, origin)
    if origin.project:
        own, ignored = _without_privileges(own)
        for key in ignored:
            remarks.append(f"{here}: {key} of a project's own server is ignored: only your own file may set it")
    spec = resolve(name, own, Expander(surroundings), base=origin.base, source=here, place=shown(own))
    _check_login(spec)
    notices += remarks
    return _with_directory(spec, origin, surroundings)


def _with_directory(spec: ServerSpec, origin: Origin, surroundings: Surroundings) -> ServerSpec:
    """Interpreters may run files of their working directory, so only a project's own server starts in the workspace;
    a sandboxed one sees nothing else."""
    if spec.cwd is not None or spec.sandbox is not None or origin.project:
        return spec
    return replace(spec, cwd=str(origin.base) if origin.source == "code" else surroundings.home)


def _check_login(spec: ServerSpec) -> None:
    try:
        OAuthSettings.parse(spec.oauth, source=spec.source, server=spec.name)
    except ConfigError as problem:
        raise Rejected(problem.problem, problem.fix, ("oauth", problem.key.rpartition(".")[2])) from None


def _remarks(entry: ServerEntry, origin: Origin) -> Iterator[str]:
    found = plain(entry.raw, own=origin.own)
    for key in found.auto_approve:
        yield f"{key} of the server {entry.name!r} is ignored: only the policy allows calls"
    if found.unknown and not origin.own:
        yield f"{', '.join(found.unknown)} of the server {entry.name!r} is not supported"


def is_ourselves(raw: Mapping[str, Any]) -> bool:
    """Whether the entry would start Toolreeve, directly or with `uvx`, `python -m` and the like, or is for the builtin
    tools, which we have."""
    entry = plain(raw, own=False).entry
    if entry.get("type") == "builtin":
        return True
    args = entry.get("args")
    words = [entry.get("command"), *(args if isinstance(args, list) else ())]
    texts = [word if isinstance(word, str) else "" for word in words]
    return any(
        _OURSELVES.fullmatch(PurePosixPath(text).name) and _command(texts[index:]) == "mcp"
        for index, text in enumerate(texts)
    )


def _command(words: Sequence[str]) -> str | None:
    """Our subcommand, after the global options."""
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            return word
        if word in ("--workspace", "--mode"):
            next(rest, None)
    return None


def _name(given: str) -> str:
    try:
        return server_name(given)
    except ValueError as problem:
        raise Rejected(f"the name {given!a} {problem}", "rename it: letters, digits, '.', '_' and '-'") from None


def _checked(raw: Mapping[str, Any], origin: Origin) -> dict[str, Any]:
    found = plain(raw, own=origin.own)
    if origin.own and found.unknown:
        known = sorted(OWN)
        raise Rejected(
            f"unknown key{hint_similar(found.unknown[0], known)}", f"known are {', '.join(known)}", found.unknown[:1]
        )
    for problem in _problems(found.entry):
        key, *inner = (*problem.pointer.split("/")[1:], "")
        if key not in _QUOTED:
            raise Rejected(problem.text, _described(key), (key,) if key else ())
        raise Rejected(_QUOTE.sub(r"\1", problem.text), _described(key), (key, *inner[:1]) if inner[0] else (key,))
    return dict(found.entry)


def _problems(entry: Mapping[str, Any]) -> list[SchemaProblem]:
    try:
        return _SCHEMA.problems(dict(entry))
    except ValueError as problem:
        raise Rejected(f"contains an invalid value: {problem}", "use strings and numbers") from None


def _described(key: str) -> str:
    schema = SERVER["properties"].get(key, {})
    return str(schema.get("description", ""))


def _without_privileges(entry: dict[str, Any]) -> tuple[dict[str, Any], Sequence[str]]:
    """The entry without what would make it look safer than an unknown server, and the keys that were removed.

    A prefix of its choice would give its tools the names of another server's, to which the policy may allow more.
    """
    removed = []
    if entry.get("trusted"):
        removed.append("trusted")
    if "prefix" in entry:
        removed.append("prefix")
    levels = entry.get("danger", {})
    named = levels.values() if isinstance(levels, Mapping) else (levels,)
    if any(DangerLevel(level) < DangerLevel.HIGH for level in named):
        removed.append("danger")
    if "env_file" in entry:
        removed.append("env_file")
    return {key: value for key, value in entry.items() if key not in removed}, removed


def shown(entry: Mapping[str, Any]) -> str:
    """Its command line or URL, without what looks like a secret."""
    args = entry.get("args")
    if not isinstance(args, list):
        return place(entry)
    return place({**entry, "args": redact_arguments([*map(str, args)])})


def place(entry: Mapping[str, Any]) -> str:
    """The command line, or the URL without credentials, as written: a person who decides whether it may run sees all of
    it."""
    if "command" in entry:
        args = entry.get("args")
        return shlex.join(map(str, [entry["command"], *(args if isinstance(args, list) else ())]))
    scheme, _, rest = str(entry.get("url", "")).partition("://")
    host, path = _AUTHORITY.fullmatch(rest).groups()  # type: ignore[union-attr]
    if not rest:
        return scheme
    return f"{scheme}://{host.rpartition('@')[2]}{_QUERY.split(path, maxsplit=1)[0]}"
