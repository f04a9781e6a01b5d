"""Undo: keeps what file changes replace, and restores it.

What each change replaces is stored, and the change noted durably, before it is made. Changes are undone newest first,
through the same guard that made them, by a call that can itself be undone. Nothing is touched unless everything can be
undone or the caller forces it; the outcome is reported for each file. A name that holds a secret is not written down:
such a change can be undone only by the process that made it.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from toolreeve.core.call import RecordScope, ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Change, Files
from toolreeve.record.blobs import LARGEST
from toolreeve.record.changes import ChangeOwner, ChangeTable, NotedChange

MOST_KEPT_BYTES = 1024 * 1024 * 1024
LONGEST_KEPT = 30 * 24 * 3600.0
MAX_SWEPT = 256
PRUNE_EVERY = 256
MAX_UNWRITTEN = 1_000
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoOutcome:
    """The outcome for one file: restored, unchanged (already as before), conflict, not kept, or failed."""

    path: str
    outcome: str
    reason: str = ""

    def to_dict(self) -> dict[str, str]:
        shown = {"path": self.path, "outcome": self.outcome}
        if self.reason:
            shown["reason"] = self.reason
        return shown


class Sweeper(Protocol):
    """Removes the temporary file of a change that was interrupted."""

    def sweep(self, directory: str, temp: str) -> None: ...


class ContentStore(Protocol):
    """Former contents of files, by digest. `Blobs` keeps them in a directory; another backend may do otherwise.

    All methods block and are called in a thread. A content is durable when `save` returns. `fresh_bytes` is about how
    much was added since the last pruning; a young content is not pruned, because a change may be about to refer to it.
    """

    fresh_bytes: int

    def save(self, descriptor: int) -> str: ...

    def load(self, digest: str) -> bytes | None: ...

    def has(self, digest: str) -> bool: ...

    def sizes(self) -> Mapping[str, int]: ...

    def prune(self, wanted: Collection[str]) -> None: ...


class Undo:
    """Stores what changes replace (`core.files.Keep`), and restores it."""

    largest = LARGEST

    def __init__(
        self,
        changes: ChangeTable,
        contents: ContentStore,
        now: Callable[[], float],
        *,
        redact: Callable[[str], str],
        most_bytes: int = MOST_KEPT_BYTES,
    ) -> None:
        self._changes = changes
        self._contents = contents
        self._now = now
        self._redact = redact
        self._most_bytes = most_bytes
        self._unwritten: dict[int, Change] = {}
        self._undoing: set[str] = set()

    def save(self, descriptor: int) -> None:
        self._contents.save(descriptor)

    async def note(self, call: ToolCall, change: Change) -> None:
        written = self._writable(change)
        # The undo can itself be undone by its call only: as part of the session it would undo itself.
        session = "" if call.id in self._undoing else call.session
        owner = ChangeOwner(user=call.principal.user, session=call.session)
        number = await self._changes.note(written, call_id=call.id, session=session, owner=owner, at=self._now())
        if written != change:
            self._remember(number, change)
        if number % PRUNE_EVERY == 0 or self._contents.fresh_bytes > self._most_bytes // 8:
            await self.prune()

    async def changes(
        self, *, call_id: str | None = None, session: str | None = None, owner: ChangeOwner | None = None
    ) -> Sequence[NotedChange]:
        """The changes of a call or a session that have not been undone, newest first."""
        return self._named(await self._changes.standing(call_id=call_id, session=session, owner=owner))

    def check(self, call: ToolCall, *, call_id: str | None, session: str | None) -> None:
        """Raises ToolError if the call may undo nothing of this: it is another's, or has no changes. Blocks."""
        owner = _owner(call)
        if owner is not None and not self._changes.read_standing(call_id=call_id, session=session, owner=owner):
            raise _nothing(call_id, session)

    def standing(self, *, call_id: str | None, session: str | None) -> Sequence[Change]:
        """As `changes`, and also before the first start. Blocks: for a thread."""
        return [noted.change for noted in self._named(self._changes.read_standing(call_id=call_id, session=session))]

    def _writable(self, change: Change) -> Change:
        """The change with secrets in its names redacted."""
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
        if fingerprint is not None and fingerprint.startswith("link:"):
            return self._redact(fingerprint)
        return fingerprint

    def _remember(self, number: int, change: Change) -> None:
        self._unwritten[number] = change
        if len(self._unwritten) > MAX_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]

    def _named(self, noted: Sequence[NotedChange]) -> list[NotedChange]:
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
        """Undo a call's or a session's changes. If a file was changed since or is no longer kept, raises
        ToolError(WRITE_ERROR) and changes nothing; with `force`, undoes the rest."""
        if (call_id is None) == (session is None):
            raise ToolError(ErrorCode.INVALID_PARAMS, "give either a call id or a session, not both")
        noted = await self.changes(call_id=call_id, session=session, owner=_owner(call))
        if not noted:
            raise _nothing(call_id, session)
        blocked = await asyncio.to_thread(self._conflicts, noted, files)
        if blocked and not force:
            raise _refused(blocked)
        self._undoing.add(call.id)
        try:
            return [await self._undo(call, files, each, force=force) for each in noted]
        finally:
            self._undoing.discard(call.id)

    def _conflicts(self, noted: Sequence[NotedChange], files: Files) -> list[UndoOutcome]:
        """The changes that cannot be undone. Simulates each step, so that several changes of one file are compared with
        each other and only the newest with the disk."""
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
                state[change.path] = change.after
                state[change.to] = change.before
            else:
                state[change.path] = change.before
        return blocked

    def _conflict(self, change: Change, now: Callable[[str], str | None]) -> str:
        if change.kind == UNNAMED:
            return "its name holds a secret and was not recorded; only the process that changed it can undo this"
        place = change.to or change.path
        if now(change.path) == change.before and not change.to:
            return ""
        if change.to and now(change.path) is not None:
            return "another file is there now" if now(place) == change.after else "changed since"
        if now(place) != change.after:
            return "changed since" if change.after is not None else "another file is there now"
        if change.before is not None and not self._is_kept(change):
            return "the former content was not kept: it was too large, or too old"
        return ""

    def _is_kept(self, change: Change) -> bool:
        kind, _, digest = (change.before or "").partition(":")
        return kind == "link" or (change.kept and kind == "sha256" and self._contents.has(digest))

    async def _undo(self, call: ToolCall, files: Files, noted: NotedChange, *, force: bool) -> UndoOutcome:
        change = noted.change
        if change.kind == UNNAMED:
            return UndoOutcome(path=change.path, outcome="not kept", reason="its name was not recorded")
        try:
            outcome = await self._reverse(call, files, change, force=force)
            for directory in reversed(change.made):
                await files.remove_directory(directory)
            await self._changes.mark_undone(noted.id)
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
        content = await asyncio.to_thread(self._contents.load, rest) if kind == "sha256" else None
        if content is None:
            raise ToolError(ErrorCode.WRITE_ERROR, f"{path}: the former content was not kept", retryable=False)
        await files.write(call, path, content, mode=change.mode)

    async def prune(self) -> None:
        """Drop changes that are too old, and the oldest beyond the size limit."""
        before = self._now() - LONGEST_KEPT
        sizes = await asyncio.to_thread(self._contents.sizes)
        wanted = await self._changes.forget(before=before, sizes=sizes, most_bytes=self._most_bytes)
        await asyncio.to_thread(self._contents.prune, wanted)

    async def sweep(self, files: Sweeper) -> None:
        """Remove temporary files that killed processes left beside the files they were about to replace."""
        for change in await self._changes.recent(MAX_SWEPT):
            if change.temp and not _is_running(change.temp):
                files.sweep(str(Path(change.path).parent), change.temp)


def _owner(call: ToolCall) -> ChangeOwner | None:
    """Whose changes the call may undo; None for everybody's."""
    match call.sees:
        case RecordScope.ALL:
            return None
        case RecordScope.USER:
            return ChangeOwner(user=call.principal.user)
        case RecordScope.SESSION:
            return ChangeOwner(user=call.principal.user, session=call.session)


def _nothing(call_id: str | None, session: str | None) -> ToolError:
    what = f"the call {call_id!r}" if call_id is not None else f"the session {session!r}"
    return ToolError(ErrorCode.INVALID_PARAMS, f"{what} has no file changes that this caller can undo")


def _is_running(temp: str) -> bool:
    """Whether the process that made a temporary file, named `.toolreeve-<process>-…`, still runs."""
    process = temp.split("-")[1]
    return process.isdecimal() and Path(f"/proc/{process}").exists()


def _refused(blocked: Sequence[UndoOutcome]) -> ToolError:
    shown = "; ".join(f"{each.path}: {each.reason}" for each in blocked[:10])
    return ToolError(
        ErrorCode.WRITE_ERROR,
        f"{shown}. Nothing was changed; undo with force to restore the rest",
        detail=[each.to_dict() for each in blocked],
        retryable=False,
    )
