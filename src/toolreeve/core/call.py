"""What was asked for, by whom, through which door? Plain data that can cross a process border."""

import itertools
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolreeve.core.peer import Peer


class Role(Enum):
    """Who may do how much: each role may do all that the one before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    user: str = "local"
    role: Role = Role.OPERATOR


LOCAL = Principal()

_process = os.urandom(5).hex()
_numbers = itertools.count()


def new_id() -> str:
    """Unique across processes, sortable by time within one: milliseconds, process, count."""
    return f"{int(time.time() * 1000):011x}{_process}{next(_numbers):06x}"


def _reseed() -> None:
    global _process
    _process = os.urandom(5).hex()


os.register_at_fork(after_in_child=_reseed)


@dataclass(slots=True, kw_only=True)
class ToolCall:
    """One request to run a tool. `tool` is the name as the caller wrote it; the registry finds whom it means.

    `peer` is the line back to the caller where its door has one; it stays on this side of a process border.
    """

    tool: str
    args: Mapping[str, Any]
    session: str = "default"
    principal: Principal = LOCAL
    origin: str = "python"
    timeout: float | None = None
    estimated_cost: float = 0.0
    id: str = field(default_factory=new_id)
    peer: "Peer | None" = field(default=None, repr=False, compare=False)
