"""Pending approvals in the database, shared by all processes.

An approval goes from pending to allowed or denied once, by the first decision, and from there to used once: what it
grants is never granted twice, not even to two callers at the same moment, nor after a crash in between.
"""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from json import loads as read  # exact also for integers beyond 64 bits
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.record.journal import APPROVAL, VERSION, Journal
from toolreeve.record.store import Store

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


class PendingStore:
    """`lifetime` is how long a question stays open and its answer can be used; `most` is how many of one holder may be
    pending. `journal` records every decision, in the transaction that makes it."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], float],
        *,
        journal: Journal | None = None,
        lifetime: float = LIFETIME,
        most: int = MOST,
    ) -> None:
        self._store = store
        self._now = now
        self._journal = journal
        self._lifetime = lifetime
        self._most = most
        self._waiting: set[asyncio.Future[None]] = set()

    async def file(
        self, *, binding: str, holder: str, tool: str, question: Mapping[str, Any]
    ) -> tuple[PendingRow, bool]:
        """The pending approval, and whether it is new. Raises ToolError if it is too large or there are too many."""
        body = _body(tool, question)
        now = self._now()
        row = (os.urandom(5).hex(), binding, holder, tool, now, now + self._lifetime, PENDING, body, None)
        return await self._store.transact(partial(_file, row=row, now=now, most=self._most))

    async def take(self, *, binding: str, holder: str) -> PendingRow | None:
        """The oldest decided approval of this binding, now used. None is the common case, and cheap."""
        return await self._use("binding = ? AND holder = ?", (binding, holder))

    async def claim(self, number: str, *, holder: str) -> PendingRow | None:
        """The approval with its answer, now used; None if it is undecided or used already."""
        return await self._use("id = ? AND holder = ?", (number, holder))

    async def _use(self, where: str, values: tuple[str, ...]) -> PendingRow | None:
        find = partial(_decided, where=where, values=values, now=self._now())
        if await self._store.read(find) is None:
            return None
        return await self._store.transact(partial(_use, find=find))

    async def decide(self, number: str, answer: Mapping[str, Any]) -> bool:
        """False if it was decided already, or has expired."""
        done = await self._store.transact(partial(self._decide, number, answer))
        if done:
            self._wake()
        return done

    def _decide(self, number: str, answer: Mapping[str, Any], database: sqlite3.Connection) -> bool:
        now = self._now()
        if not _decide(database, number=number, answer=answer, now=now):
            return False
        row = _find(database, number=number, now=now)
        if self._journal is not None and row is not None:
            self._journal.write(database, [(APPROVAL, row.question["call_id"], _record(row, now))])
        return True

    async def find(self, number: str) -> PendingRow | None:
        """By its id, or by a unique prefix of it."""
        return await self._store.read(partial(_find, number=number, now=self._now()))

    async def list(self, *, pending_only: bool = True) -> Sequence[PendingRow]:
        """Oldest first."""
        found = await self._store.read(partial(_list, now=self._now()))
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
        return await self._store.transact(partial(_consume, nonce=nonce, keep=keep, now=self._now()))

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


def _record(row: PendingRow, now: float) -> dict[str, Any]:
    """The audit record of a decision."""
    question = row.question
    answer = row.answer or {}
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


_COLUMNS = "id, binding, holder, tool, asked, expires, state, question, answer"


def _row(columns: tuple[Any, ...], now: float) -> PendingRow:
    number, binding, holder, tool, asked, expires, state, question, answer = columns
    return PendingRow(
        id=number,
        binding=binding,
        holder=holder,
        tool=tool,
        asked=asked,
        expires=expires,
        state=EXPIRED if state != USED and expires <= now else state,
        question=read(question),
        answer=None if answer is None else read(answer),
    )


def _body(tool: str, question: Mapping[str, Any]) -> bytes:
    try:
        body = json.dumps(question)
    except TypeError as problem:
        raise _unstorable(tool, str(problem)) from None
    if len(body) > LARGEST:
        raise _unstorable(tool, f"{len(body):,} bytes exceed the limit of {LARGEST:,}")
    return body


def _unstorable(tool: str, reason: str) -> ToolError:
    problem = f"Tool {tool!r} requires approval, nobody can be asked now, and the call cannot be kept for later"
    return ToolError(ErrorCode.LIMIT, f"{problem}: {reason}")


def _file(database: sqlite3.Connection, *, row: tuple[Any, ...], now: float, most: int) -> tuple[PendingRow, bool]:
    _, binding, holder, tool, *_ = row
    database.execute("DELETE FROM approvals WHERE expires < ?", (now - KEPT,))
    waiting = f"FROM approvals WHERE state = '{PENDING}' AND expires > ? AND holder = ?"
    same = database.execute(f"SELECT {_COLUMNS} {waiting} AND binding = ?", (now, holder, binding)).fetchone()
    if same is not None:
        return _row(same, now), False
    if database.execute(f"SELECT count(*) {waiting}", (now, holder)).fetchone()[0] >= most:
        raise ToolError(
            ErrorCode.LIMIT,
            f"Tool {tool!r} requires approval, and {most} approvals are pending already",
            suggestions=("answer pending approvals first (`toolreeve approvals`)",),
        )
    database.execute(f"INSERT INTO approvals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
    return _row(row, now), True


def _decided(database: sqlite3.Connection, *, where: str, values: tuple[str, ...], now: float) -> PendingRow | None:
    row = database.execute(
        f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608
        f" WHERE state IN ('{ALLOWED}', '{DENIED}') AND expires > ? AND {where} ORDER BY asked LIMIT 1",
        (now, *values),
    ).fetchone()
    return None if row is None else _row(row, now)


def _use(database: sqlite3.Connection, *, find: Callable[[sqlite3.Connection], PendingRow | None]) -> PendingRow | None:
    """Found and marked in one transaction: of two callers, one gets it."""
    if (row := find(database)) is not None:
        database.execute(f"UPDATE approvals SET state = '{USED}' WHERE id = ?", (row.id,))  # noqa: S608
    return row


def _decide(database: sqlite3.Connection, *, number: str, answer: Mapping[str, Any], now: float) -> bool:
    state = ALLOWED if answer["granted"] is True else DENIED
    changed = database.execute(
        f"UPDATE approvals SET state = ?, answer = ? WHERE id = ? AND state = '{PENDING}' AND expires > ?",  # noqa: S608
        (state, json.dumps(answer), number, now),
    )
    return changed.rowcount == 1


def _find(database: sqlite3.Connection, *, number: str, now: float) -> PendingRow | None:
    rows = database.execute(
        f"SELECT {_COLUMNS} FROM approvals WHERE substr(id, 1, ?) = ? LIMIT 2",  # noqa: S608
        (len(number), number),
    ).fetchall()
    return _row(rows[0], now) if number and len(rows) == 1 else None


def _list(database: sqlite3.Connection, *, now: float) -> Sequence[PendingRow]:
    rows = database.execute(f"SELECT {_COLUMNS} FROM approvals ORDER BY asked").fetchall()  # noqa: S608
    return [_row(row, now) for row in rows]


def _consume(database: sqlite3.Connection, *, nonce: str, keep: float, now: float) -> bool:
    database.execute("DELETE FROM spent_states WHERE until < ?", (now,))
    added = database.execute("INSERT INTO spent_states VALUES (?, ?) ON CONFLICT DO NOTHING", (nonce, now + keep))
    return added.rowcount == 1
