"""Configured MCP servers: from the user, the trusted workspace and other clients.

The first server of a name wins, and the user's own files come first: a project cannot take over a name that the user
already gave to a server, and to which the policy may allow more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolreeve.config import xdg
from toolreeve.config.mcp_servers.expansion import Surroundings, Unresolved
from toolreeve.config.mcp_servers.server_list import Servers
from toolreeve.config.readable_files import is_readable_file
from toolreeve.config.secrets import SecretSource
from toolreeve.core.documents import Document, parse_toml
from toolreeve.core.errors import ConfigError


def surroundings(
    environ: Mapping[str, str], secrets: SecretSource, workspace: str, private: Iterable[str]
) -> Surroundings:
    def secret(name: str) -> str | None:
        try:
            return secrets.find(name)
        except ConfigError as problem:
            raise Unresolved(f"{problem.source} {problem.problem}", problem.fix) from None

    return Surroundings(
        environ=environ, secret=secret, workspace=workspace, home=xdg.home(environ), private=frozenset(private)
    )


def read_servers(path: Path) -> Document:
    """A client's file: TOML if it is named so, else JSON with or without comments. Raises ConfigError."""
    if not is_readable_file(path):
        raise ConfigError("does not exist", source=path, fix="name an existing file")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", source=path) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", source=path, fix="save the file as UTF-8") from None
    if path.suffix == ".toml":
        return parse_toml(text, str(path))
    from toolreeve.config.jsonc import json_document

    return json_document(text, str(path))


def parse_document(document: Document, known: Surroundings, *, own: bool, project: bool = False) -> Servers:
    from toolreeve.config.mcp_servers.reader import Origin, parse_servers

    origin = Origin(
        source=document.source,
        base=Path(document.source).parent,
        own=own,
        project=project,
        line_of=document.line,
    )
    return parse_servers(document.value, origin, known)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceServers:
    """The files of a workspace that name servers: its `toolreeve.toml` and its `.mcp.json`."""

    own: Document | None
    shared: Document | None
    trusted: bool


def read_configured_servers(
    user: Document | None, workspace: WorkspaceServers, files: Sequence[str], known: Surroundings
) -> Servers:
    """The user's own first, then the workspace's if it is trusted, then those of other clients."""
    found = Servers()
    if user is not None:
        found.take(parse_document(user, known, own=True))
    if workspace.trusted and workspace.own is not None:
        found.take(parse_document(workspace.own, known, own=True, project=True))
    if workspace.trusted and workspace.shared is not None:
        found.take(parse_document(workspace.shared, known, own=False, project=True))
    elif workspace.shared is not None and _has_servers(workspace.shared):
        ignored = "its servers are ignored: the folder is not trusted (run `toolreeve trust`)"
        found.notices.append(f"{workspace.shared.source}: {ignored}")
    for name in files:
        try:
            found.take(parse_document(read_servers(Path(name)), known, own=False))
        except ConfigError as problem:
            found.problems.append(problem)
    return found


def servers_from_code(value: Any, known: Surroundings, *, base: Path) -> Servers:
    """Servers passed by a program: tables by name, a document with `mcpServers`, a list of tables, a file, or None."""
    if value is None or value == {} or value == ():
        return Servers()
    if isinstance(value, (str, Path)):
        path = Path(xdg.expand(str(value), base=base, environ=known.environ))
        return parse_document(read_servers(path), known, own=False)
    if not isinstance(value, (Mapping, list, tuple)):
        raise ConfigError(f"is a {type(value).__name__}", source="mcp_servers", fix="pass tables by name, or a path")
    from toolreeve.config.mcp_servers.reader import Origin, parse_servers

    document = value if _is_document(value) else {"mcp_servers": value}
    return parse_servers(document, Origin(source="code", base=base, own=True), known)


def _has_servers(document: Document) -> bool:
    from toolreeve.config.server_programs import describe_entries

    return next(describe_entries(document), None) is not None


def _is_document(value: Any) -> bool:
    """Whether the value has a section of servers, rather than a server named like one."""
    from toolreeve.config.mcp_servers.reader import sections

    return isinstance(value, (list, tuple)) or any(
        not (isinstance(section, Mapping) and {"command", "url", "transport"} & section.keys())
        for _, section in sections(value)
    )
