"""Which servers are configured, in which files? Ours, the workspace's once it is trusted, and those of other clients.

The first server of a name wins, and the user's own files come first: a project cannot take over a name that the user
already gave to a server, and to which the policy may allow more.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from toolreeve.config import places
from toolreeve.config.jsonc import json_document
from toolreeve.config.secrets import SecretSource
from toolreeve.core.documents import MAX_BYTES, Document, parse_toml
from toolreeve.core.errors import ConfigError
from toolreeve.remote.dialects import plain
from toolreeve.remote.expansion import Surroundings, Unresolved
from toolreeve.remote.reading import Origin, Servers, entries, is_ourselves, parse_servers, place, sections


def surroundings(environ: Mapping[str, str], secrets: SecretSource, workspace: str) -> Surroundings:
    def secret(name: str) -> str | None:
        try:
            return secrets.find(name)
        except ConfigError as problem:
            raise Unresolved(f"{problem.source} {problem.problem}", problem.fix) from None

    return Surroundings(environ=environ, secret=secret, workspace=workspace, home=places.home(environ))


def read_servers(path: Path) -> Document:
    """A client's file: TOML by its name, else JSON with or without comments. Raises ConfigError."""
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", source=path) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", source=path, fix="save the file as UTF-8") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"is larger than {MAX_BYTES // 1024 // 1024} MB", source=path)
    return parse_toml(text, str(path)) if path.suffix == ".toml" else json_document(text, str(path))


def servers_of(document: Document, known: Surroundings, *, own: bool, project: bool = False) -> Servers:
    origin = Origin(
        source=document.source,
        base=Path(document.source).parent,
        own=own,
        project=project,
        line_of=document.line,
    )
    return parse_servers(document.value, origin, known)


def servers_from_code(value: Any, known: Surroundings, *, base: Path) -> Servers:
    """What a program passes: tables by name, a document with `mcpServers`, a list of tables, a file, or nothing."""
    if value is None:
        return Servers()
    if isinstance(value, (str, Path)):
        path = Path(places.expand(str(value), base=base, environ=known.environ))
        return servers_of(read_servers(path), known, own=False)
    if not isinstance(value, (Mapping, list, tuple)):
        raise ConfigError(f"is a {type(value).__name__}", source="mcp_servers", fix="pass tables by name, or a path")
    document = value if _is_document(value) else {"mcp_servers": value}
    return parse_servers(document, Origin(source="code", base=base, own=True), known)


def _is_document(value: Any) -> bool:
    """Whether it holds a section of servers, rather than a server that is called like one."""
    return isinstance(value, (list, tuple)) or any(
        not (isinstance(section, Mapping) and {"command", "url", "transport"} & section.keys())
        for _, section in sections(value)
    )


def entries_shown(document: Document) -> Iterator[str]:
    """What a file would have started or connected to, for a person who decides whether it may."""
    for path, section in sections(document.value):
        for entry in entries(section, path):
            if isinstance(entry.raw, Mapping) and not is_ourselves(entry.raw):
                yield f"{entry.name}: {place(plain(entry.raw, own=False).entry)}"


def programs_within(document: Document, folder: Path) -> Iterator[str]:
    """The files of a folder that its servers are made of, as far as their command lines name them."""
    for path, section in sections(document.value):
        for entry in entries(section, path):
            said = plain(entry.raw, own=False).entry if isinstance(entry.raw, Mapping) else {}
            args = said.get("args")
            for word in (said.get("command"), *(args if isinstance(args, list) else ())):
                if found := _file_within(folder, said.get("cwd"), word):
                    yield found


def _file_within(folder: Path, cwd: Any, word: Any) -> str | None:
    if not isinstance(word, str):
        return None
    start, end = (str(part).replace("${workspaceFolder}", str(folder)) for part in (cwd or ".", word))
    try:
        path = (folder / start / end).resolve()
        return str(path) if path.is_relative_to(folder) and path.is_file() else None
    except (OSError, ValueError):
        return None
