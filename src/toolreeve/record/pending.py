"""Which questions still wait for a person, and which answers were used? Kept in the database: all processes agree.

A matter goes from pending to allowed or denied once, by whoever is first, and from there to used once: what it granted
is never granted a second time, not even to two who ask at the same moment, nor after a crash in between.
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
"""How long a matter that is over is still shown."""
MOST = 200
LARGEST = 1024 * 1024
POLLS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between looks, in case another process decides; the last one is repeated."""

PENDING, ALLOWED, DENIED, USED, EXPIRED = "pending", "allowed", "denied", "used", "expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRow:
    """`holder` is who asked; `question` is everything a person is shown, and the call itself."""

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
    """`lifetime` is how long a question waits, and also how long its answer can be used; `most` is how many of one
    holder wait at the same time. `journal` is told of every decision, in the transaction that makes it."""

    def __init__(
        self,
        store: Store,
        now: Callable[[], float],
        *,
        journal: Journal | None = None,
        lifetime: float = LIFETIME,
        most: int = MOST,
    ) -> None:
        self._store, self._now, self._journal = store, now, journal
        self._lifetime, self._most = lifetime, most
        self._waiting: set[asyncio.Future[None]] = set()

    async def file(
        self, *, binding: str, holder: str, tool: str, question: Mapping[str, Any]
    ) -> tuple[PendingRow, bool]:
        """The matter that waits, and whether it is new. Raises ToolError for what is too much to keep."""
        body = _body(tool, question)
        now = self._now()
        row = (os.urandom(5).hex(), binding, holder, tool, now, now + self._lifetime, PENDING, body, None)
        return await self._store.transact(partial(_file, row=row, now=now, most=self._most))

    async def take(self, *, binding: str, holder: str) -> PendingRow | None:
        """The oldest matter about this that was decided, used up by this. None is the common case, and cheap."""
        where = ("binding = ? AND holder = ?", (binding, holder))
        return await self._use(*where)

    async def claim(self, number: str, *, holder: str) -> PendingRow | None:
        """The matter with its answer, used up by this; None if it is not decided, or used by somebody else."""
        return await self._use("id = ? AND holder = ?", (number, holder))

    async def _use(self, where: str, values: tuple[str, ...]) -> PendingRow | None:
        find = partial(_decided, where=where, values=values, now=self._now())
        if await self._store.read(find) is None:
            return None
        return await self._store.transact(partial(_use, find=find))

    async def decide(self, number: str, answer: Mapping[str, Any]) -> bool:
        """False if somebody was faster, or it is too late."""
        done = await self._store.transact(partial(self._decide, number, answer))
        if done:
            self._wake()
        return done

    def _decide(self, number: str, answer: Mapping[str, Any], database: sqlite3.Connection) -> bool:
        now = self._now()
        if not _decide(database, number=number, answer=answer, now=now):
            return False
        matter = _find(database, number=number, now=now)
        if self._journal is not None and matter is not None:
            self._journal.write(database, [(APPROVAL, matter.question["call_id"], _told(matter, now))])
        return True

    async def find(self, number: str) -> PendingRow | None:
        """By its id, or by a beginning that no other has."""
        return await self._store.read(partial(_find, number=number, now=self._now()))

    async def list(self, *, pending_only: bool = True) -> Sequence[PendingRow]:
        """Oldest first."""
        found = await self._store.read(partial(_list, now=self._now()))
        return [matter for matter in found if not pending_only or matter.state == PENDING]

    async def wait(self, number: str, *, timeout: float) -> PendingRow | None:
        """The matter once it is no longer pending, or as it is when the time is over."""
        loop = asyncio.get_running_loop()
        end, looks = loop.time() + timeout, 0
        while True:
            matter = await self.find(number)
            left = end - loop.time()
            if matter is None or matter.state != PENDING or left <= 0:
                return matter
            await self._pause(min(left, POLLS[min(looks, len(POLLS) - 1)]))
            looks += 1

    async def consume(self, nonce: str, *, keep: float) -> bool:
        """Whether this is the first use of what is good for one; it is of no use to anybody after `keep` seconds."""
        return await self._store.transact(partial(_consume, nonce=nonce, keep=keep, now=self._now()))

    async def _pause(self, seconds: float) -> None:
        """Until somebody in this process decides something, or the time is over."""
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


def _told(matter: PendingRow, now: float) -> dict[str, Any]:
    """What the record says about a decision."""
    question, answer = matter.question, matter.answer or {}
    return {
        "v": VERSION,
        "ts": now,
        **{key: question[key] for key in ("session", "user", "role", "origin", "tool", "danger", "args")},
        "approval": matter.id,
        "granted": answer.get("granted"),
        "approved_by": answer.get("by"),
        "scope": answer.get("scope"),
        "edited": answer.get("args"),
        "message": answer.get("note"),
    }


_COLUMNS = "id, binding, holder, tool, asked, expires, state, question, answer"


def _matter(row: tuple[Any, ...], now: float) -> PendingRow:
    number, binding, holder, tool, asked, expires, state, question, answer = row
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
    reason = ""
    try:
        body = json.dumps(question)
    except TypeError as problem:
        body, reason = b"", str(problem)
    if len(body) > LARGEST:
        reason = f"{len(body):,} bytes are more than {LARGEST:,}"
    if reason:
        unkept = f"Tool {tool!r} requires approval, nobody can be asked now, and the call cannot be kept for later"
        raise ToolError(ErrorCode.LIMIT, f"{unkept}: {reason}")
    return body


def _file(database: sqlite3.Connection, *, row: tuple[Any, ...], now: float, most: int) -> tuple[PendingRow, bool]:
    _, binding, holder, tool, *_ = row
    database.execute("DELETE FROM approvals WHERE expires < ?", (now - KEPT,))
    waiting = f"FROM approvals WHERE state = '{PENDING}' AND expires > ? AND holder = ?"
    same = database.execute(f"SELECT {_COLUMNS} {waiting} AND binding = ?", (now, holder, binding)).fetchone()
    if same is not None:
        return _matter(same, now), False
    if database.execute(f"SELECT count(*) {waiting}", (now, holder)).fetchone()[0] >= most:
        raise ToolError(
            ErrorCode.LIMIT,
            f"Tool {tool!r} requires approval, and {most} calls wait for theirs already",
            suggestions=("a person must answer them first",),
        )
    database.execute(f"INSERT INTO approvals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608
    return _matter(row, now), True


def _decided(database: sqlite3.Connection, *, where: str, values: tuple[str, ...], now: float) -> PendingRow | None:
    row = database.execute(
        f"SELECT {_COLUMNS} FROM approvals"  # noqa: S608
        f" WHERE state IN ('{ALLOWED}', '{DENIED}') AND expires > ? AND {where} ORDER BY asked LIMIT 1",
        (now, *values),
    ).fetchone()
    return None if row is None else _matter(row, now)


def _use(database: sqlite3.Connection, *, find: Callable[[sqlite3.Connection], PendingRow | None]) -> PendingRow | None:
    """Found and marked in one transaction: of two who try, one gets it."""
    if (matter := find(database)) is not None:
        database.execute(f"UPDATE approvals SET state = '{USED}' WHERE id = ?", (matter.id,))  # noqa: S608
    return matter


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
    return _matter(rows[0], now) if number and len(rows) == 1 else None


def _list(database: sqlite3.Connection, *, now: float) -> Sequence[PendingRow]:
    rows = database.execute(f"SELECT {_COLUMNS} FROM approvals ORDER BY asked").fetchall()  # noqa: S608
    return [_matter(row, now) for row in rows]


def _consume(database: sqlite3.Connection, *, nonce: str, keep: float, now: float) -> bool:
    database.execute("DELETE FROM spent_states WHERE until < ?", (now,))
    added = database.execute("INSERT INTO spent_states VALUES (?, ?) ON CONFLICT DO NOTHING", (nonce, now + keep))
    return added.rowcount == 1
