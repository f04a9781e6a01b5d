"""Command settings of a runtime, read by the shell and quality tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolreeve.core.process import Network

NO_NETWORK = 'commands have no network here (commands.network = "none")'


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRules:
    """An empty `allow` means the default list; `block` adds to the default one. Entries of `block` may name arguments:
    `git push` blocks that and nothing else of git.

    `quality` holds the configured commands for tests, lint, format, format_check, typecheck or build; the others are
    detected. `first_path` are directories with programs searched before the system's own, `search_path` those searched
    after; `environment` are further variables of commands.
    """

    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    timeout: float = 30.0
    network: Network = "none"
    memory_mb: int = 2048
    processes: int = 256
    quality_timeout: float = 600.0
    quality: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    first_path: tuple[str, ...] = ()
    search_path: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


SHIPPED = CommandRules()
