"""Pending approvals, shared by all processes.

An approval goes from pending to allowed or denied once, by the first decision, and from there to used once: what it
grants is never granted twice, not even to two callers at the same moment, nor after a crash in between.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.chain import Line
from toolreeve.record.journal import APPROVAL, VERSION

LIFETIME = 24 * 3600.0
KEPT = 7 * 24 * 3600.0
"""How long a settled approval is still listed."""
MOST = 200
LARGEST = 1024 * 1024
POLLS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between polls, in case another process decides; the last one is repeated."""

PENDING = "pending"
ALLOWED = "allowed"
DENIED = "denied"
USED = "used"
EXPIRED = "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """`holder` is the principal that asked; `question` is everything a person is shown, and the call itself."""

    id: str
    binding: str
    holder: str
    tool: str
    asked: float
    expires: float
    state: str
    question: Mapping[str, Any]
    answer: Mapping[str, Any] | None

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


class PendingTable(Protocol):
    """Each method is one transaction."""

    async def file(self, row: PendingRow, *, most: int) -> tuple[PendingRow, bool]:
        """Store it, or return the same question that is pending already. Raises ToolError beyond `most` of a holder."""
        ...

    async def use(self, *, number: str | None, binding: str | None, holder: str, now: float) -> PendingRow | None:
        """The oldest decided approval with this id or binding, now used."""
        ...

    async def decide(self, number: str, answer: Mapping[str, Any], *, line: Line, now: float) -> bool:
        """Store the answer and write `line` to the record; False if it was decided already, or has expired."""
        ...

    async def find(self, prefix: str, *, now: float) -> PendingRow | None:
        """By its id, or by a unique prefix of it."""
        ...

    async def list(self, *, now: float) -> Sequence[PendingRow]:
        """Oldest first."""
        ...

    async def consume(self, nonce: str, *, until: float, now: float) -> bool:
        """Whether this is the first use of the nonce, which is remembered `until`."""
        ...


class PendingStore:
    """`lifetime` is how long a question stays open and its answer can be used; `most` is how many of one holder may be
    pending. Every decision is recorded, in the transaction that makes it."""

    def __init__(
        self, table: PendingTable, now: Callable[[], float], *, lifetime: float = LIFETIME, most: int = MOST
    ) -> None:
        self._table = table
        self._now = now
        self._lifetime = lifetime
        self._most = most
        self._waiting: set[asyncio.Future[None]] = set()

    async def file(
        self, *, binding: str, holder: str, tool: str, question: Mapping[str, Any]
    ) -> tuple[PendingRow, bool]:
        """The pending approval, and whether it is new. Raises ToolError if it is too large or there are too many."""
        _check(tool, question)
        now = self._now()
        row = PendingRow(
            id=os.urandom(5).hex(),
            binding=binding,
            holder=holder,
            tool=tool,
            asked=now,
            expires=now + self._lifetime,
            state=PENDING,
            question=question,
            answer=None,
        )
        return await self._table.file(row, most=self._most)

    async def take(self, *, binding: str, holder: str) -> PendingRow | None:
        """The oldest decided approval of this binding, now used. None is the common case, and cheap."""
        return await self._table.use(number=None, binding=binding, holder=holder, now=self._now())

    async def claim(self, number: str, *, holder: str) -> PendingRow | None:
        """The approval with its answer, now used; None if it is undecided or used already."""
        return await self._table.use(number=number, binding=None, holder=holder, now=self._now())

    async def decide(self, number: str, answer: Mapping[str, Any]) -> bool:
        """False if it was decided already, or has expired."""
        now = self._now()
        row = await self._table.find(number, now=now)
        if row is None or row.id != number:
            return False
        line = (APPROVAL, row.question["call_id"], _record(row, answer, now))
        done = await self._table.decide(number, answer, line=line, now=now)
        if done:
            self._wake()
        return done

    async def find(self, number: str) -> PendingRow | None:
        """By its id, or by a unique prefix of it."""
        return await self._table.find(number, now=self._now())

    async def list(self, *, pending_only: bool = True) -> Sequence[PendingRow]:
        """Oldest first."""
        found = await self._table.list(now=self._now())
        return [row for row in found if not pending_only or row.state == PENDING]

    async def wait(self, number: str, *, timeout: float) -> PendingRow | None:
        """The approval once it is no longer pending, or as it is after `timeout`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        polls = 0
        while True:
            row = await self.find(number)
            left = end - loop.time()
            if row is None or row.state != PENDING or left <= 0:
                return row
            await self._pause(min(left, POLLS[min(polls, len(POLLS) - 1)]))
            polls += 1

    async def consume(self, nonce: str, *, keep: float) -> bool:
        """Whether this is the first use of a single-use nonce, which is forgotten after `keep` seconds."""
        now = self._now()
        return await self._table.consume(nonce, until=now + keep, now=now)

    async def _pause(self, seconds: float) -> None:
        """Until a decision in this process, or for `seconds`."""
        woken = asyncio.get_running_loop().create_future()
        self._waiting.add(woken)
        try:
            await asyncio.wait([woken], timeout=seconds)
        finally:
            self._waiting.discard(woken)

    def _wake(self) -> None:
        for woken in list(self._waiting):
            woken.get_loop().call_soon_threadsafe(_settle, woken)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _record(row: PendingRow, answer: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The audit record of a decision."""
    question = row.question
    return {
        "v": VERSION,
        "ts": now,
        **{key: question[key] for key in ("session", "user", "role", "origin", "tool", "danger", "args")},
        "approval": row.id,
        "granted": answer.get("granted"),
        "approved_by": answer.get("by"),
        "scope": answer.get("scope"),
        "edited": answer.get("args"),
        "message": answer.get("note"),
    }


def _check(tool: str, question: Mapping[str, Any]) -> None:
    """Raises ToolError if the question cannot be stored."""
    try:
        body = json.dumps(question)
    except TypeError as problem:
        raise _unstorable(tool, str(problem)) from None
    if len(body) > LARGEST:
        raise _unstorable(tool, f"{len(body):,} bytes exceed the limit of {LARGEST:,}")


def _unstorable(tool: str, reason: str) -> ToolError:
    problem = f"Tool {tool!r} requires approval, nobody can be asked now, and the call cannot be kept for later"
    return ToolError(ErrorCode.LIMIT, f"{problem}: {reason}")
