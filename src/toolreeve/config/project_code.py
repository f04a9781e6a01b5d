"""Project code: what a workspace's files would run; whether it is trusted.

The digest covers the project's file, its `.mcp.json`, and every file of the workspace that they name to be run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import setting_fields
from toolreeve.config.layers import Layer
from toolreeve.config.trust import TrustedFolders, digest_of
from toolreeve.core.documents import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCode:
    """What a project's files would run, and whether the user trusts it in its current state.

    `servers` describes each of its MCP servers: name and command or URL.
    """

    folder: Path
    files: tuple[str, ...]
    commands: tuple[str, ...]
    servers: tuple[str, ...]
    digest: str
    trusted: bool


def project_code(
    project: Layer,
    document: Document | None,
    project_file: Path,
    shared: Document | None,
    folders: TrustedFolders,
    environ: Mapping[str, str],
) -> ProjectCode | None:
    """None if nothing needs trust. `document` is the project's file, `shared` its `.mcp.json`."""
    own = document if {("mcp_servers",), ("a2a_agents",)} & project.keys() else None
    documents = [each for each in (shared, own) if each is not None]
    if not documents and not project:
        return None
    from toolreeve.config.server_programs import describe_entries, programs_within

    servers = tuple(line for each in documents for line in describe_entries(each))
    tools = _trusted_values(project, paths=True)
    commands = _trusted_values(project, paths=False)
    if not (servers or tools or commands):
        return None
    folder = project_file.parent
    programs = (name for each in documents for name in programs_within(each, folder, environ))
    files = tuple(dict.fromkeys((*tools, *programs)))
    sources = [project_file] if shared is None else [project_file, Path(shared.source)]
    digest = digest_of([*sources, *map(Path, files)])
    return ProjectCode(
        folder=folder,
        files=files,
        commands=commands,
        servers=servers,
        digest=digest,
        trusted=folders.covers(folder, digest),
    )


def _trusted_values(project: Layer, *, paths: bool) -> tuple[str, ...]:
    """The files, or the commands, that a project's layer would run."""
    found: list[str] = []
    for path, given in project.items():
        setting = setting_fields()[path]
        needs_trust = setting.field.project is ProjectScope.WHEN_TRUSTED and not setting.has_tables
        if needs_trust and setting.field.paths is paths:
            found += given.value
    return tuple(found)
