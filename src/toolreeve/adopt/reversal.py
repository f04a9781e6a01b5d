"""Reversal data: how to undo a change in a later edited file.

Stored on disk in the manifest of an adoption.
"""

from dataclasses import dataclass
from typing import Literal

from toolreeve.adopt.clients import KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersTaken:
    """Servers were removed from a client's file: their keys by section. `entry` is the section that got our entry, None
    if it had one."""

    format: Literal["json", "toml", "yaml"]
    servers: tuple[tuple[KeyPath, tuple[str, ...]], ...]
    entry: KeyPath | None
    kind: Literal["taken"] = "taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksAdded:
    """Blocks of lines were added to the user's own file."""

    blocks: tuple[str, ...]
    kind: Literal["added"] = "added"


Reversal = ServersTaken | BlocksAdded
