"""The store that the configuration names: the one factory of both databases."""

import hashlib
from dataclasses import replace
from pathlib import Path

from toolreeve.config import Configuration
from toolreeve.config.settings import Settings
from toolreeve.config.xdg import DATABASE
from toolreeve.record.store import RecordStore, open_store


def configured_store(configuration: Configuration, *, read_only: bool = False) -> RecordStore:
    """Not started yet. Raises ToolreeveError for an invalid `state.url`, or if its extra is missing."""
    state = configuration.settings.state
    url = configuration.reveal(state.url, key="state.url") if state.url else ""
    return open_store(Path(state.dir) / DATABASE, url, read_only=read_only)


def settings_digest(settings: Settings) -> str:
    """The same for gateways with the same settings, wherever their directories are. Secrets are in it as references."""
    placed = replace(
        settings, state=replace(settings.state, dir=""), workspace=replace(settings.workspace, dir=""), tool_files=()
    )
    return hashlib.sha256(repr(placed).encode()).hexdigest()[:8]
