"""Builds the guarded files of the configured workspace."""

from toolreeve.config import Configuration
from toolreeve.core.files import Keep
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.guard.files.workspace import WorkspaceFiles


def new_files(configuration: Configuration, guards: GuardTable, keep: Keep | None = None) -> WorkspaceFiles:
    """The same for every door. `keep` stores what a change replaces."""
    workspace = configuration.settings.workspace
    return WorkspaceFiles(
        workspace.dir,
        extra_roots=workspace.extra_roots,
        writable_roots=workspace.writable_roots,
        allow_write=workspace.allow_write,
        search_bases=workspace.search_allowed_bases,
        protected=guards.secret,
        unwritable=configuration.governing,
        sensitive_allow=workspace.sensitive_allow,
        home=configuration.home,
        homes=guards.homes,
        environment=guards.environment,
        keep=keep,
    )
