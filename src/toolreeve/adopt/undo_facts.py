"""What must be known to take a change back out of a file that was changed since? Facts, as they are kept on disk."""

from dataclasses import dataclass
from typing import Literal

from toolreeve.adopt.clients import KeyPath


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Servers were taken out of a client's file: their keys by section. `entry` is the section that was given an entry
    of ours, None if it had one."""

    format: Literal["json", "toml"]
    servers: tuple[tuple[KeyPath, tuple[str, ...]], ...]
    entry: KeyPath | None
    kind: Literal["taken"] = "taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """These lines were put into the user's own file, block by block."""

    blocks: tuple[str, ...]
    kind: Literal["added"] = "added"


Reversal = Taken | Added
