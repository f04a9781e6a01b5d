"""What would the workspace's own files run, and does a person trust them as they are now?

The digest covers the project's file, its `.mcp.json`, and every file of the workspace that they name to be run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from toolreeve.config.field import ProjectScope
from toolreeve.config.fields import leaves
from toolreeve.config.layers import Layer
from toolreeve.config.server_programs import entries_shown, programs_within
from toolreeve.config.trust import TrustedFolders, digest_of
from toolreeve.core.documents import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectCode:
    """What a project's files would have run, and whether a person trusts it as it is now.

    `servers` tells each of its MCP servers by name and what it is.
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
    """None where nothing needs trust. `document` is the project's file, `shared` its `.mcp.json`."""
    named_in = document if ("mcp_servers",) in project else None
    naming = [each for each in (shared, named_in) if each is not None]
    servers = tuple(shown for each in naming for shown in entries_shown(each))
    tools, commands = _words(project, paths=True), _words(project, paths=False)
    if not (servers or tools or commands):
        return None
    folder = project_file.parent
    programs = (name for each in naming for name in programs_within(each, folder, environ))
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


def _words(project: Layer, *, paths: bool) -> tuple[str, ...]:
    """The files, or the commands, that a project's layer would have run."""
    return tuple(
        name
        for path, given in project.items()
        for leaf in (leaves()[path],)
        if leaf.about.project is ProjectScope.WHEN_TRUSTED and leaf.about.paths is paths and not leaf.tables
        for name in given.value
    )
