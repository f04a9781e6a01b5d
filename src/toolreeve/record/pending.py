"""Stored approvals: every question to a person, shared by all processes.

A question goes from pending to allowed, edited or denied once, by the first decision, or it expires or is withdrawn;
an answer is used once. What it grants is never granted twice, not even to two callers at the same moment, nor after a
crash in between. All decisions, and answers that came too late, are recorded.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.core import json
from toolreeve.core.call import new_question_id
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.record.chain import Line
from toolreeve.record.journal import APPROVAL, VERSION
from toolreeve.record.pending_table import (
    ANSWERED,
    EXPIRED,
    PENDING,
    STATES,
    USED,
    WITHDRAWN,
    ListedPage,
    ListedRow,
    ListQuery,
    PendingRow,
    PendingTable,
)

LIFETIME = 24 * 3600.0
KEPT = 7 * 24 * 3600.0
"""How long a settled approval is still listed."""
MOST = 200
LARGEST = 1024 * 1024
LARGEST_LIVE = 32 * 1024 * 1024
"""Bytes of a question that a call waits for; one that is kept for later may have `LARGEST`."""
MOST_LISTED = 500
POLLS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between polls, in case another process decides; the last one is repeated."""

HERE = "here"


class PendingStore:
    """`lifetime` is how long a question that no call waits for stays open and its answer can be used; `most` is how
    many of one holder may be pending. `process` names this process. Every decision is recorded, in the transaction that
    makes it."""

    def __init__(
        self,
        table: PendingTable,
        now: Callable[[], float],
        *,
        lifetime: float = LIFETIME,
        most: int = MOST,
        process: str = "",
    ) -> None:
        self._table = table
        self._now = now
        self.lifetime = lifetime
        self._most = most
        self._process = process
        self._waiting: set[asyncio.Future[None]] = set()
        table.listen(self._wake)

    async def file(
        self, *, binding: str, holder: str, tool: str, question: Mapping[str, Any], **more: Any
    ) -> tuple[PendingRow, bool]:
        """Store a question that no call waits for. The row, and whether it is new: the same question is stored once.
        Raises ToolError if it is too large or there are too many."""
        return await self._file(
            self._row(binding=binding, holder=holder, tool=tool, question=question, **more), reuse=True
        )

    async def open(
        self, *, binding: str, holder: str, tool: str, question: Mapping[str, Any], timeout: float, **more: Any
    ) -> PendingRow:
        """Store a question that a call waits for during `timeout`; the same question that was stored before, if no call
        waits for that one."""
        row = self._row(binding=binding, holder=holder, tool=tool, question=question, **more)
        row = replace(row, process=self._process or HERE, expires=row.asked + timeout)
        found, new = await self._file(row, reuse=True)
        if new or await self.keep(found.id, process=row.process, seconds=timeout):
            return found
        return (await self._file(row, reuse=False))[0]

    async def settled(
        self,
        *,
        binding: str,
        holder: str,
        tool: str,
        question: Mapping[str, Any],
        answer: Mapping[str, Any],
        **more: Any,
    ) -> PendingRow:
        """Store a question together with the answer that a policy or a governor gave, which is used at once."""
        row = self._row(binding=binding, holder=holder, tool=tool, question=question, **more)
        answer = {**answer, "at": row.asked}
        row = replace(row, state=USED, answer=answer)
        line = (APPROVAL, question["call_id"], _record(row, answer, row.asked))
        found, _ = await self._file(row, reuse=False, line=line)
        return found

    def _row(
        self,
        *,
        binding: str,
        holder: str,
        tool: str,
        question: Mapping[str, Any],
        number: str = "",
        digest: str = "",
        summary: Mapping[str, Any] | None = None,
        feedback: Sequence[Mapping[str, Any]] = (),
    ) -> PendingRow:
        now = self._now()
        return PendingRow(
            id=number or new_question_id(),
            binding=binding,
            holder=holder,
            tool=tool,
            asked=now,
            expires=now + self.lifetime,
            state=PENDING,
            question=question,
            answer=None,
            digest=digest,
            summary=summary or {},
            feedback=list(feedback),
        )

    async def _file(self, row: PendingRow, *, reuse: bool, line: Line | None = None) -> tuple[PendingRow, bool]:
        _check(row.tool, row.question, LARGEST_LIVE if row.process or row.answer is not None else LARGEST)
        filed = await self._table.file(row, most=self._most, reuse=reuse, line=line)
        self._wake()
        return filed

    async def take(self, *, binding: str, holder: str) -> PendingRow | None:
        """The oldest decided approval of this binding, now used. None is the common case, and cheap."""
        return await self._table.use(number=None, binding=binding, holder=holder, now=self._now())

    async def claim(self, number: str, *, holder: str) -> PendingRow | None:
        """The approval with its answer, now used; None if it is undecided or used already."""
        row = await self._table.use(number=number, binding=None, holder=holder, now=self._now())
        self._wake()
        return row

    async def decide(self, number: str, answer: Mapping[str, Any], *, use: bool = False) -> bool:
        """Whether this answer counts. `use` takes the decided answer at once, for the call that waits."""
        return bool(await self.vote(number, answer, use=use))

    async def vote(self, number: str, answer: Mapping[str, Any], *, use: bool = False) -> str:
        """ "decided", "counted" or "repeated", as `PendingTable.decide`; empty, and the answer is recorded as too late,
        if it was decided before or has expired."""
        now = self._now()
        row = await self._table.find(number, now=now)
        if row is None or row.id != number:
            return ""
        answer = {**answer, "at": now}
        line = (APPROVAL, row.question["call_id"], _record(row, answer, now))
        needed = row.question.get("approvals", 1)
        done = await self._table.decide(number, answer, line=line, now=now, needed=needed, use=use)
        if done:
            self._wake()
        else:
            await self.refuse(row, answer, "too late")
        return done

    async def refuse(self, row: PendingRow, answer: Mapping[str, Any], why: str) -> None:
        """Record an answer that does not count, and why."""
        now = self._now()
        body = _record(row, answer, now) | {"granted": None, "refused": why, "answer": answer.get("granted")}
        await self._table.record((APPROVAL, row.question["call_id"], body))

    async def expire(self, number: str) -> bool:
        """Nobody answered in time. False if it is not pending any more."""
        return await self._end(number, EXPIRED, (PENDING,))

    async def withdraw(self, number: str) -> bool:
        """The call will not be made: nothing that was or will be answered allows it."""
        return await self._end(number, WITHDRAWN, (PENDING, *ANSWERED))

    async def _end(self, number: str, state: str, states: tuple[str, ...]) -> bool:
        done = await self._table.end(number, state, now=self._now(), states=states)
        if done:
            self._wake()
        return done

    async def keep(self, number: str, *, process: str = "", seconds: float | None = None) -> bool:
        """A pending question stays open for `seconds`, by default its whole lifetime, and no call waits for it unless
        `process` says where. False if it is not pending any more."""
        now = self._now()
        expires = now + (self.lifetime if seconds is None else seconds)
        return await self._table.keep(number, process=process, expires=expires, now=now)

    async def mark_shown(self, row: PendingRow) -> None:
        if row.shown is None and row.state == PENDING:
            await self._table.mark_shown(row.id, now=self._now())

    async def find(self, number: str) -> PendingRow | None:
        """By its id, or by a unique prefix of it."""
        return await self._table.find(number, now=self._now())

    async def list(self, *, pending_only: bool = True) -> Sequence[PendingRow]:
        """Oldest first, with their questions."""
        states = (PENDING,) if pending_only else ()
        found: list[PendingRow] = []
        cursor: str | None = None
        while True:
            page = await self.page(states=states, cursor=cursor, limit=MOST_LISTED)
            rows = [await self.find(row.id) for row in page.rows]
            found += [row for row in rows if row is not None]
            cursor = page.cursor
            if cursor is None:
                return found

    async def page(
        self, *, states: Sequence[str] = (), cursor: str | None = None, limit: int = 50, newest_first: bool = False
    ) -> ListedPage:
        """Raises ToolreeveError for an unknown state or an invalid cursor."""
        if unknown := [state for state in states if state not in STATES]:
            raise ToolreeveError(f"state {unknown[0]!r} is not one of {', '.join(STATES)}")
        now = self._now()
        await self._table.sweep(now=now)
        limit = max(1, min(limit, MOST_LISTED))
        query = ListQuery(states=tuple(states), after=_read_cursor(cursor), limit=limit + 1, newest_first=newest_first)
        rows = await self._table.page(query, now=now)
        more = len(rows) > limit
        rows = rows[:limit]
        return ListedPage(rows=rows, cursor=f"{rows[-1].asked!r}:{rows[-1].id}" if more else None)

    async def count(self) -> int:
        """How many are pending."""
        return await self._table.count(now=self._now())

    async def last_change(self) -> int:
        return await self._table.last_change()

    async def changes(self, since: int | None = None) -> AsyncIterator[ListedRow]:
        """Every row that changes after `since`, in any process, forever; `changed` of the last one continues there."""
        last = await self._table.last_change() if since is None else since
        polls = 0
        while True:
            now = self._now()
            await self._table.sweep(now=now)
            rows = await self._table.changes(last, limit=MOST_LISTED, now=now)
            for row in rows:
                last = row.changed
                yield row
            polls = 0 if rows else polls + 1
            if not rows:
                await self._pause(POLLS[min(polls, len(POLLS)) - 1])

    async def wait(self, number: str, *, timeout: float) -> PendingRow | None:
        """The approval once it is no longer pending, or as it is after `timeout`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        polls = 0
        while True:
            woken = self._expect()
            state = await self._table.state(number, now=self._now())
            left = end - loop.time()
            if state != PENDING or left <= 0:
                self._waiting.discard(woken)
                return await self.find(number)
            await self._pause(min(left, POLLS[min(polls, len(POLLS) - 1)]), woken)
            polls += 1

    async def consume(self, nonce: str, *, keep: float) -> bool:
        """Whether this is the first use of a single-use nonce, which is forgotten after `keep` seconds."""
        now = self._now()
        return await self._table.consume(nonce, until=now + keep, now=now)

    def _expect(self) -> "asyncio.Future[None]":
        """Done with the next change in this process. Made before the row is read, so that no change is missed."""
        woken = asyncio.get_running_loop().create_future()
        self._waiting.add(woken)
        return woken

    async def _pause(self, seconds: float, woken: "asyncio.Future[None] | None" = None) -> None:
        """Until a change in this process, or for `seconds`."""
        woken = woken or self._expect()
        try:
            await asyncio.wait([woken], timeout=seconds)
        finally:
            self._waiting.discard(woken)

    def _wake(self) -> None:
        for woken in list(self._waiting):
            try:
                woken.get_loop().call_soon_threadsafe(_settle, woken)
            except RuntimeError:
                self._waiting.discard(woken)  # its loop has closed: no caller is left


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def _read_cursor(cursor: str | None) -> tuple[float, str] | None:
    if cursor is None:
        return None
    asked, _, number = cursor.partition(":")
    try:
        return float(asked), number
    except ValueError:
        raise ToolreeveError(f"cursor {cursor!r:.80} is invalid: pass the one that the list returned") from None


def _record(row: PendingRow, answer: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The audit record of a decision."""
    question = row.question
    channel = answer.get("channel")
    return {
        "v": VERSION,
        "ts": now,
        **{key: question[key] for key in ("session", "user", "role", "origin", "tool", "danger", "args")},
        "workspace": row.summary.get("workspace") or "",
        "approval": row.id,
        "granted": answer.get("granted"),
        "approved_by": answer.get("by"),
        **({"channel": channel} if channel else {}),
        "scope": answer.get("scope"),
        "edited": answer.get("args"),
        "message": answer.get("note"),
    }


def _check(tool: str, question: Mapping[str, Any], most: int) -> None:
    """Raises ToolError if the question cannot be stored."""
    try:
        body = json.dumps(question)
    except TypeError as problem:
        raise _unstorable(tool, str(problem)) from None
    if len(body) > most:
        raise _unstorable(tool, f"{len(body):,} bytes exceed the limit of {most:,}")


def _unstorable(tool: str, reason: str) -> ToolError:
    return ToolError(
        ErrorCode.LIMIT, f"Tool {tool!r} requires approval, and the call cannot be kept for later: {reason}"
    )
