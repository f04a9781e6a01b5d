"""Facts about information flow: what people said and decided, across processes.

The words of a user, values that a person vouched for, recipients that are known, and labels of file contents. Nothing
here comes from a model or from what a tool returned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from toolreeve.core.labels import Labels


class FactKind(StrEnum):
    SAID = "said"
    """The user's own words."""
    TRUSTED = "trusted"
    """A value that a person declassified."""
    SOURCE = "source"
    """A call whose result a person trusts for the rest of the task."""
    KNOWN = "known"
    """A recipient that a person approved to be kept, in every session of the principal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFact:
    """`session` is empty for what holds in every session of the user. `at` and `expires` are seconds since 1970."""

    id: str
    kind: FactKind
    user: str
    value: str
    by: str
    at: float
    session: str = ""
    tool: str = ""
    parameter: str = ""
    expires: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class FlowTable(Protocol):
    """Each method is one transaction; expired facts are never returned. Declassifying, known recipients and
    revocations are written to the audit log in the transaction that makes them."""

    async def add(self, facts: Sequence[FlowFact]) -> None: ...

    async def find(self, *, user: str, session: str) -> Sequence[FlowFact]:
        """What holds in this session, oldest first."""
        ...

    async def list(self, *, user: str | None = None) -> Sequence[FlowFact]:
        """All but the words, oldest first."""
        ...

    async def revoke(self, id: str, *, by: str) -> FlowFact | None:
        """By its id, or by a unique prefix of it; None if there is none."""
        ...

    async def labels_read(
        self, *, user: str, session: str, after: int, held: Sequence[str]
    ) -> tuple[frozenset[str], int]:
        """The labels of what this session's calls returned, by the records after that number and without the calls
        `held`; and the number of its last record."""
        ...

    async def label_content(self, digests: Sequence[str], labels: Labels, *, call_id: str, at: float) -> None:
        """Label these contents; earlier labels are joined, never replaced."""
        ...

    async def has_content_labels(self) -> bool: ...

    async def labels_of(self, digests: Sequence[str]) -> dict[str, Labels]: ...
