"""Approvals in memory, for programs without a runtime and its database."""

# ruff: noqa: ARG002

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolreeve.approval.pending import PENDING, Record
from toolreeve.core.call import new_question_id


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryApproval:
    id: str
    binding: str
    holder: str
    asked: float = 0.0
    expires: float = 0.0
    state: str = PENDING
    question: Mapping[str, Any] = field(default_factory=dict)
    answer: Record | None = None
    digest: str = ""
    shown: float | None = None
    votes: Sequence[Record] = ()


class MemoryApprovals:
    """`approval.pending.PendingApprovals` of one process. A settled question is forgotten."""

    def __init__(self) -> None:
        self._rows: dict[str, MemoryApproval] = {}
        self._decided: dict[str, asyncio.Event] = {}

    async def file(
        self, *, binding: str, holder: str, tool: str, question: Record, **more: Any
    ) -> tuple[MemoryApproval, bool]:
        for row in self._rows.values():
            if (row.binding, row.holder, row.state) == (binding, holder, PENDING):
                return row, False
        opened = await self.open(binding=binding, holder=holder, tool=tool, question=question, timeout=0, **more)
        return opened, True

    async def open(
        self, *, binding: str, holder: str, tool: str, question: Record, timeout: float, **more: Any
    ) -> MemoryApproval:
        number = more.get("number") or new_question_id()
        digest = more.get("digest", "")
        row = MemoryApproval(id=number, binding=binding, holder=holder, question=question, digest=digest)
        self._rows[number] = row
        self._decided[number] = asyncio.Event()
        return row

    async def settled(
        self, *, binding: str, holder: str, tool: str, question: Record, answer: Record, **more: Any
    ) -> MemoryApproval:
        number = more.get("number") or new_question_id()
        return MemoryApproval(id=number, binding=binding, holder=holder, state="used", answer=answer)

    async def take(self, *, binding: str, holder: str) -> MemoryApproval | None:
        for row in self._rows.values():
            if (row.binding, row.holder) == (binding, holder) and row.answer is not None:
                return await self.claim(row.id, holder=holder)
        return None

    async def claim(self, number: str, *, holder: str) -> MemoryApproval | None:
        row = self._rows.get(number)
        if row is None or row.holder != holder or row.answer is None:
            return None
        self._forget(number)
        return replace(row, state="used")

    async def find(self, number: str) -> MemoryApproval | None:
        return self._rows.get(number)

    async def vote(self, number: str, answer: Record, *, use: bool = False) -> str:
        row = self._rows.get(number)
        if row is None or row.state != PENDING:
            return ""
        granted = answer["granted"] is True
        if granted and any(vote["approver"] == answer["approver"] for vote in row.votes):
            return "repeated"
        row = self._rows[number] = replace(row, votes=(*row.votes, answer))
        if granted and len(row.votes) < row.question.get("approvals", 1):
            return "counted"
        self._rows[number] = replace(row, state="allowed" if granted else "denied", answer=answer)
        self._decided[number].set()
        if use:
            self._forget(number)
        return "decided"

    async def refuse(self, row: Any, answer: Record, why: str) -> None:
        """Nothing is recorded without a database."""

    async def wait(self, number: str, *, timeout: float) -> MemoryApproval | None:
        if (decided := self._decided.get(number)) is not None:
            try:
                await asyncio.wait_for(decided.wait(), timeout)
            except TimeoutError:
                return self._rows.get(number)
        return self._rows.get(number)

    async def expire(self, number: str) -> bool:
        return self._forget(number, only_pending=True)

    async def withdraw(self, number: str) -> bool:
        return self._forget(number)

    async def keep(self, number: str) -> bool:
        return number in self._rows

    def _forget(self, number: str, *, only_pending: bool = False) -> bool:
        row = self._rows.get(number)
        if row is None or (only_pending and row.state != PENDING):
            return False
        self._rows.pop(number, None)
        self._decided.pop(number, None)
        return True
