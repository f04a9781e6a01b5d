"""Tool call: the request, its principal and its origin.

Plain data that can cross a process boundary.
"""

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
    """Ordered: each role may do everything that the one before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


class RecordScope(Enum):
    """Which earlier calls a call may read about and undo: of its session, of its user, or all of them."""

    SESSION = "session"
    USER = "user"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who calls, and in which role."""

    user: str = "local"
    role: Role = Role.OPERATOR


LOCAL = Principal()

_process = os.urandom(5).hex()
_numbers = itertools.count()


def new_id() -> str:
    """Unique across processes, sortable by time within one: milliseconds, process, count."""
    return f"{int(time.time() * 1000):011x}{_process}{next(_numbers):06x}"


def new_question_id() -> str:
    """Short enough to be typed by a person, and not to be guessed."""
    return os.urandom(6).hex()


def _reseed() -> None:
    global _process
    _process = os.urandom(5).hex()


os.register_at_fork(after_in_child=_reseed)


@dataclass(slots=True, kw_only=True, repr=False)
class ToolCall:
    """One request to run a tool. `tool` is the name as the caller wrote it; the registry resolves it.

    `client` is the name and version of the program that called, as it gives them. `record_scope` is set by the door;
    an admin sees everything through any door. `session_issued` says that we named the session for one client instance,
    which may call through several processes: only then do they share its grants. `peer` is the connection back to the
    caller, if its door has one; it does not cross a process boundary. `traceparent` is the caller's trace context.
    """

    tool: str
    args: Mapping[str, Any]
    session: str = "default"
    principal: Principal = LOCAL
    origin: str = "python"
    client: str = ""
    record_scope: RecordScope = RecordScope.SESSION
    timeout: float | None = None
    estimated_cost: float = 0.0
    session_issued: bool = False
    traceparent: str = ""
    id: str = field(default_factory=new_id)
    peer: "Peer | None" = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<ToolCall {self.id}: {self.tool!r:.100}>"

    @property
    def sees(self) -> RecordScope:
        """How much of the record the call may read."""
        return RecordScope.ALL if self.principal.role is Role.ADMIN else self.record_scope
