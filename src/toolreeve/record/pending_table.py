"""The table of questions to people: its rows, states and transactions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolreeve.record.chain import Line

PENDING = "pending"
ALLOWED = "allowed"
EDITED = "edited"
DENIED = "denied"
USED = "used"
EXPIRED = "expired"
WITHDRAWN = "withdrawn"
STATES = (PENDING, ALLOWED, EDITED, DENIED, USED, EXPIRED, WITHDRAWN)
ANSWERED = (ALLOWED, EDITED, DENIED)
"""Decided, and not used yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """`holder` is the principal that asked; `question` is everything a person is shown, and the call itself; `summary`
    what a list shows of it. `digest` identifies what was shown. `process` is where a call waits for the answer; empty
    if none does. `votes` are the approvals so far of a question that needs several, `feedback` what governors said.
    `changed` orders all changes of all rows."""

    id: str
    binding: str
    holder: str
    tool: str
    asked: float
    expires: float
    state: str
    question: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    digest: str = ""
    process: str = ""
    shown: float | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    votes: Sequence[Mapping[str, Any]] = field(default_factory=list)
    feedback: Sequence[Mapping[str, Any]] = field(default_factory=list)
    changed: int = field(default=0, compare=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "state": self.state,
            "tool": self.tool,
            "danger": self.question["danger"],
            "args": self.question["args"],
            "session": self.question["session"],
            "user": self.question["user"],
            "role": self.question["role"],
            "reason": self.question["verdict"][2],
            "asked": self.asked,
            "expires": self.expires,
            "answer": self.answer,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRow:
    """A row of a list: without the question and its arguments."""

    id: str
    tool: str
    asked: float
    expires: float
    state: str
    summary: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPage:
    """`cursor` continues the list; None at its end."""

    rows: Sequence[ListedRow]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """`states` empty means all. `after` is the position of the last row seen."""

    states: tuple[str, ...] = ()
    after: tuple[float, str] | None = None
    limit: int = 50
    newest_first: bool = False


class PendingTable(Protocol):
    """Each method is one transaction."""

    def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake`, from any thread, when another process may have changed a row."""

    async def file(
        self, row: PendingRow, *, most: int, reuse: bool, line: Line | None = None
    ) -> tuple[PendingRow, bool]:
        """Store it with `line`, or, if `reuse`, return the same question that is pending and that no call waits for.
        Raises ToolError beyond `most` of a holder."""
        ...

    async def use(self, *, number: str | None, binding: str | None, holder: str, now: float) -> PendingRow | None:
        """The oldest decided approval with this id or binding, now used."""
        ...

    async def decide(
        self, number: str, answer: Mapping[str, Any], *, line: Line, now: float, needed: int, use: bool
    ) -> str:
        """Store the answer and write `line` to the record. "decided"; "counted" if more approvals are needed;
        "repeated" if the same approver counted already; empty if it was decided before, or has expired. `use` takes a
        decided answer at once."""
        ...

    async def end(self, number: str, state: str, *, now: float, states: tuple[str, ...]) -> bool:
        """Move it to `state` if it is in one of `states`."""
        ...

    async def keep(self, number: str, *, process: str, expires: float, now: float) -> bool:
        """A pending question gets another deadline, and another process that waits for it."""
        ...

    async def mark_shown(self, number: str, *, now: float) -> None:
        """The first time is kept."""
        ...

    async def find(self, prefix: str, *, now: float) -> PendingRow | None:
        """By its id, or by a unique prefix of it."""
        ...

    async def state(self, number: str, *, now: float) -> str | None: ...

    async def page(self, query: ListQuery, *, now: float) -> Sequence[ListedRow]: ...

    async def changes(self, since: int, *, limit: int, now: float) -> Sequence[ListedRow]:
        """The rows that changed after `since`, in the order of their last change."""
        ...

    async def sweep(self, *, now: float) -> int:
        """Mark what has expired; returns how many."""
        ...

    async def count(self, *, now: float) -> int:
        """How many are pending."""
        ...

    async def last_change(self) -> int: ...

    async def record(self, line: Line) -> None: ...

    async def consume(self, nonce: str, *, until: float, now: float) -> bool:
        """Whether this is the first use of the nonce, which is remembered `until`."""
        ...
