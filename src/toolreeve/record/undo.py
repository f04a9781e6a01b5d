"""How are file changes taken back? What each change replaced is kept, and noted durably before the change is made.

Changes are taken back newest first, through the same guard that made them, by a call that can itself be taken back.
Nothing is touched unless everything can be taken back, or the caller insists; what became of each file is told. A name
that holds a secret is not written down: such a change can be taken back by the process that made it, and by no other.
"""

import asyncio
import dataclasses
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from toolreeve.core import json
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Change, Files
from toolreeve.record.blobs import LARGEST, Blobs
from toolreeve.record.store import Store

MOST_KEPT_BYTES = 1024 * 1024 * 1024
LONGEST_KEPT = 30 * 24 * 3600.0
MOST_SWEPT = 256
PRUNE_EVERY = 256
MOST_UNWRITTEN = 1_000
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A change as it stands in the table."""

    id: int
    change: Change


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoOutcome:
    """What became of one file: restored, unchanged (it is already as before), conflict, not kept, or failed."""

    path: str
    outcome: str
    reason: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"path": self.path, "outcome": self.outcome} | ({"reason": self.reason} if self.reason else {})


class Sweeper(Protocol):
    """What removes the temporary name of a change that was killed half-way."""

    def sweep(self, directory: str, temp: str) -> None: ...


class Undo:
    """Keeps what changes replace (`core.files.Keep`), and brings it back."""

    largest = LARGEST

    def __init__(
        self,
        store: Store,
        directory: Path,
        now: Callable[[], float],
        *,
        redact: Callable[[str], str],
        most_bytes: int = MOST_KEPT_BYTES,
    ) -> None:
        self._store, self._now, self._redact, self._most_bytes = store, now, redact, most_bytes
        self._blobs = Blobs(directory, now)
        self._unwritten: dict[int, Change] = {}

    def save(self, descriptor: int) -> None:
        self._blobs.save(descriptor)

    async def note(self, call: ToolCall, change: Change) -> None:
        written = self._writable(change)
        row = (call.id, call.session, self._now(), json.dumps(dataclasses.asdict(written)))

        def insert(connection: sqlite3.Connection) -> int:
            added = connection.execute("INSERT INTO undo (call_id, session, at, change) VALUES (?, ?, ?, ?)", row)
            return added.lastrowid or 0

        number = await self._store.transact(insert)
        if written != change:
            self._remember(number, change)
        if number % PRUNE_EVERY == 0 or self._blobs.fresh_bytes > self._most_bytes // 8:
            await self.prune()

    async def changes(self, *, call_id: str | None = None, session: str | None = None) -> Sequence[Noted]:
        """The changes of a call or a session that have not been taken back, newest first."""
        return self._named(await self._store.read(_selection(call_id, session)))

    def standing(self, *, call_id: str | None, session: str | None) -> Sequence[Change]:
        """As `changes`, at once, and also before the first start: then nothing has been changed yet."""
        if not self._store.path.exists():
            return []
        return [noted.change for noted in self._named(self._store.read_now(_selection(call_id, session)))]

    def _writable(self, change: Change) -> Change:
        """The change without secrets in its names."""
        shown = dataclasses.replace(
            change,
            path=self._redact(change.path),
            to=self._redact(change.to),
            before=self._without_secret(change.before),
            after=self._without_secret(change.after),
            made=tuple(map(self._redact, change.made)),
        )
        return change if shown == change else dataclasses.replace(shown, kind=UNNAMED)

    def _without_secret(self, fingerprint: str | None) -> str | None:
        is_link = fingerprint is not None and fingerprint.startswith("link:")
        return self._redact(fingerprint) if fingerprint is not None and is_link else fingerprint

    def _remember(self, number: int, change: Change) -> None:
        self._unwritten[number] = change
        if len(self._unwritten) > MOST_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]

    def _named(self, noted: Sequence[Noted]) -> list[Noted]:
        return [dataclasses.replace(each, change=self._unwritten.get(each.id, each.change)) for each in noted]

    async def restore(
        self,
        call: ToolCall,
        files: Files,
        *,
        call_id: str | None = None,
        session: str | None = None,
        force: bool = False,
    ) -> Sequence[UndoOutcome]:
        """Take back a call's or a session's changes. Raises ToolError(WRITE_ERROR), and changes nothing, where a file
        was changed since or is no longer kept, unless forced: then those that can be taken back are."""
        if (call_id is None) == (session is None):
            raise ToolError(ErrorCode.INVALID_PARAMS, "give either the id of a call or a session")
        noted = await self.changes(call_id=call_id, session=session)
        if not noted:
            what = f"the call {call_id!r}" if call_id is not None else f"the session {session!r}"
            raise ToolError(ErrorCode.INVALID_PARAMS, f"{what} has no file changes that can be taken back")
        blocked = await asyncio.to_thread(self._conflicts, noted, files)
        if blocked and not force:
            raise _refused(blocked)
        # Taken back once more by the call alone: as part of the session it would undo itself.
        own = dataclasses.replace(call, session="")
        return [await self._take_back(own, files, each, force=force) for each in noted]

    def _conflicts(self, noted: Sequence[Noted], files: Files) -> list[UndoOutcome]:
        """The changes that cannot be taken back. Follows what each step would leave behind, so that several changes
        of one file are compared with each other and only the newest with the disk."""
        state: dict[str, str | None] = {}

        def now(path: str) -> str | None:
            if path not in state:
                state[path] = files.fingerprint(path)
            return state[path]

        blocked: list[UndoOutcome] = []
        for each in noted:
            change = each.change
            if reason := self._conflict(change, now):
                blocked.append(UndoOutcome(path=change.path, outcome="conflict", reason=reason))
            if change.kind == "move":
                state[change.path], state[change.to] = change.after, change.before
            else:
                state[change.path] = change.before
        return blocked

    def _conflict(self, change: Change, now: Callable[[str], str | None]) -> str:
        if change.kind == UNNAMED:
            return "its name holds a secret and was not written down; only the process that changed it can take it back"
        place = change.to or change.path
        if now(change.path) == change.before and not change.to:
            return ""
        if change.to and now(change.path) is not None:
            return "something else stands there now" if now(place) == change.after else "changed since"
        if now(place) != change.after:
            return "changed since" if change.after is not None else "something else stands there now"
        if change.before is not None and not self._is_kept(change):
            return "what was there before was not kept: it was too large, or is too long ago"
        return ""

    def _is_kept(self, change: Change) -> bool:
        kind, _, digest = (change.before or "").partition(":")
        return kind == "link" or (change.kept and kind == "sha256" and self._blobs.has(digest))

    async def _take_back(self, call: ToolCall, files: Files, noted: Noted, *, force: bool) -> UndoOutcome:
        change = noted.change
        if change.kind == UNNAMED:
            return UndoOutcome(path=change.path, outcome="not kept", reason="its name was not written down")
        try:
            outcome = await self._reverse(call, files, change, force=force)
            for directory in reversed(change.made):
                await files.remove_directory(directory)
            await self._mark(noted.id)
        except ToolError as problem:
            return UndoOutcome(path=change.path, outcome="failed", reason=problem.message)
        return UndoOutcome(path=change.path, outcome=outcome)

    async def _reverse(self, call: ToolCall, files: Files, change: Change, *, force: bool) -> str:
        if change.kind == "move":
            await files.move(call, change.to, change.path, overwrite=force)
            if change.before is not None:
                await self._put_back(call, files, change.to, change)
            return "restored"
        if await asyncio.to_thread(files.fingerprint, change.path) == change.before:
            return "unchanged"
        if change.before is None:
            await files.delete(call, change.path)
        else:
            await self._put_back(call, files, change.path, change)
        return "restored"

    async def _put_back(self, call: ToolCall, files: Files, path: str, change: Change) -> None:
        kind, _, rest = (change.before or "").partition(":")
        if kind == "link":
            await files.link(call, path, rest)
            return
        content = self._blobs.load(rest) if kind == "sha256" else None
        if content is None:
            raise ToolError(ErrorCode.WRITE_ERROR, f"{path}: what was there before is not kept", retryable=False)
        await files.write(call, path, content, mode=change.mode)

    async def _mark(self, number: int) -> None:
        def mark(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE undo SET undone = 1 WHERE id = ?", (number,))

        await self._store.transact(mark)

    async def prune(self) -> None:
        """Forget what is too old, and the oldest of what is too much."""
        sizes = self._blobs.sizes()

        def forget(connection: sqlite3.Connection) -> set[str]:
            connection.execute("DELETE FROM undo WHERE at < ?", (self._now() - LONGEST_KEPT,))
            wanted: dict[str, None] = {}
            total = 0
            for number, body in connection.execute("SELECT id, change FROM undo ORDER BY id DESC").fetchall():
                digest = (_change(body).before or "").removeprefix("sha256:")
                total += sizes.get(digest, 0) if digest not in wanted else 0
                if total > self._most_bytes:
                    connection.execute("DELETE FROM undo WHERE id <= ?", (number,))
                    break
                wanted[digest] = None
            return set(wanted)

        self._blobs.prune(await self._store.transact(forget))

    async def sweep(self, files: Sweeper) -> None:
        """Remove temporary names that killed processes left beside the files they were about to replace."""

        def select(connection: sqlite3.Connection) -> list[Change]:
            rows = connection.execute("SELECT change FROM undo ORDER BY id DESC LIMIT ?", (MOST_SWEPT,))
            return [_change(body) for (body,) in rows]

        for change in await self._store.read(select):
            if change.temp and not _lives(change.temp):
                files.sweep(str(Path(change.path).parent), change.temp)


def _selection(call_id: str | None, session: str | None) -> Callable[[sqlite3.Connection], list[Noted]]:
    column, value = ("call_id", call_id) if call_id is not None else ("session", session)
    query = f"SELECT id, change FROM undo WHERE {column} = ? AND NOT undone ORDER BY id DESC"  # noqa: S608

    def select(connection: sqlite3.Connection) -> list[Noted]:
        return [Noted(id=number, change=_change(body)) for number, body in connection.execute(query, (value,))]

    return select


def _change(body: bytes) -> Change:
    fields: dict[str, Any] = json.loads(body)
    return Change(**fields | {"made": tuple(fields["made"])})


def _lives(temp: str) -> bool:
    """Whether the process that made a temporary name still runs: its name says `.toolreeve-<process>-…`."""
    process = temp.split("-")[1]
    return process.isdecimal() and Path(f"/proc/{process}").exists()


def _refused(blocked: Sequence[UndoOutcome]) -> ToolError:
    told = "; ".join(f"{each.path}: {each.reason}" for each in blocked[:10])
    return ToolError(
        ErrorCode.WRITE_ERROR,
        f"{told}. Nothing was changed; undo with force to take back what can be",
        detail=[each.to_dict() for each in blocked],
        retryable=False,
    )
