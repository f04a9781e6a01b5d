"""Grants: a person's standing yes, and the store that keeps them.

`covers` is what the yes is about, as JSON data that only `approval` reads; `digest` identifies it, so that the same yes
is stored once. A grant without a session holds in every session of its principal. A grant with a `process` holds only
in that process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """`uses` is how often it may still be used, None without limit; `expires` is seconds since the epoch."""

    id: str
    scope: str
    user: str
    client: str = ""
    session: str = ""
    process: str = ""
    tool: str
    digest: str
    covers: Mapping[str, Any]
    granted_by: str
    granted_at: float
    expires: float | None = None
    uses: int | None = None

    @property
    def words(self) -> str:
        """What it covers, in words."""
        return str(self.covers.get("words", ""))

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "tool": self.tool,
            "covers": self.words,
            "user": self.user,
            "session": self.session,
            "client": self.client,
            "process_only": bool(self.process),
            "granted_by": self.granted_by,
            "granted_at": self.granted_at,
            "expires": self.expires,
            "uses": self.uses,
        }


class GrantStore(Protocol):
    """Each method is one transaction; expired and used grants are never returned. Grants and revocations are written
    to the record in the transaction that makes them."""

    async def add(self, grant: Grant, *, call_id: str = "") -> None:
        """Store it; the same yes given again renews its expiry and its uses. `call_id` is the approved call."""

    async def find(self, *, user: str, session: str, tool: str, process: str = "") -> Sequence[Grant]:
        """The grants that may cover a call of this tool in this process, oldest first."""
        ...

    async def use(self, grant: Grant) -> bool:
        """Count one use; False if it was revoked, has expired or was used up meanwhile."""
        ...

    async def list(self) -> Sequence[Grant]:
        """Oldest first."""
        ...

    async def revoke(self, id: str, *, by: str) -> bool:
        """By its id, or by a unique prefix of it; False if there is none."""
        ...

    async def revoke_all(self, *, by: str, session: str | None = None) -> int:
        """All grants, or those of one session; returns how many."""
        ...

    async def end(self, process: str) -> None:
        """Delete the grants that hold only in this process, which ends."""
