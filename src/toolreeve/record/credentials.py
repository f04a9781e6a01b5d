"""Stored credentials of the HTTP server: tokens, browser sessions and one-time links.

Only digests are stored: a reader of the database learns no token.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

TOKEN = "token"  # noqa: S105 - a kind
SESSION = "session"
LINK = "link"


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """`kind` is token, session (of a browser) or link (for one login). `expires` is None for never."""

    id: str
    kind: str
    digest: bytes
    name: str
    user: str
    role: str
    scopes: tuple[str, ...]
    tools: tuple[str, ...] = ()
    created: float
    expires: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "user": self.user,
            "role": self.role,
            "scopes": list(self.scopes),
            "tools": list(self.tools),
            "created": self.created,
            "expires": self.expires,
        }


class CredentialTable(Protocol):
    """Each method is one transaction."""

    async def add(self, credential: StoredCredential) -> None: ...

    async def list(self, *, now: float) -> Sequence[StoredCredential]:
        """Those that have not expired, oldest first."""
        ...

    async def revoke(self, number: str) -> StoredCredential | None:
        """Delete the one with this id, and those made with it; None if there is none."""
        ...

    async def redeem(self, digest: bytes, *, now: float) -> StoredCredential | None:
        """Delete and return the link with this digest: of two callers, one gets it."""
        ...
