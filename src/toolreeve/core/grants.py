"""Grants: a person's standing yes, and the store that keeps them.

`covers` is what the yes is about, as JSON data that only `approval` reads; `digest` identifies it, so that the same yes
is stored once. A grant without a session holds in every session of its principal.
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
    tool: str
    digest: str
    covers: Mapping[str, Any]
    granted_by: str
    granted_at: float
    expires: float | None = None
    uses: int | None = None


class GrantStore(Protocol):
    """Each method is one transaction; expired and used grants are never returned."""

    async def add(self, grant: Grant) -> None:
        """Store it; the same yes given again renews its expiry and its uses."""

    async def find(self, *, user: str, session: str, tool: str) -> Sequence[Grant]:
        """The grants that may cover a call of this tool, oldest first."""
        ...

    async def use(self, grant: Grant) -> bool:
        """Count one use; False if it was revoked, has expired or was used up meanwhile."""
        ...

    async def list(self) -> Sequence[Grant]:
        """Oldest first."""
        ...

    async def revoke(self, id: str) -> bool:
        """By its id, or by a unique prefix of it; False if there is none."""
        ...

    async def revoke_all(self, *, session: str | None = None) -> int:
        """All grants, or those of one session; returns how many."""
        ...
