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
from toolreeve.core.kept_commits import KeptCommits
from toolreeve.record.blobs import LARGEST
from toolreeve.record.changes import ChangeOwner, ChangeTable, NotedChange

MOST_KEPT_BYTES = 1024 * 1024 * 1024
LONGEST_KEPT = 30 * 24 * 3600.0
MAX_SWEPT = 256
PRUNE_EVERY = 256
MAX_UNWRITTEN = 1_000
MAX_LISTED = 200
NO_CALL = "last"
"""In place of the last call, if there is none."""
UNNAMED = "unnamed"
COMMITTED = "commit"
REVERTED = "uncommit"
COMMIT = "commit:"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoOutcome:
    """The outcome for one file: restored, removed (there was none before), unchanged (already as before), conflict, not
    kept, or failed."""

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
        commits: KeptCommits | None = None,
    ) -> None:
        self._changes = changes
        self._contents = contents
        self._commits = commits
        self._now = now
        self._redact = redact
        self._most_bytes = most_bytes
        self._unwritten: dict[int, Change] = {}
        self._undoing: set[str] = set()
        self.noted_at = 0.0

    def save(self, descriptor: int) -> None:
        self._contents.save(descriptor)

    async def note(self, call: ToolCall, change: Change) -> None:
        self.noted_at = self._now()
        written = self._writable(change)
        # The undo can itself be undone by its call only: as part of the session it would undo itself.
        session = "" if call.id in self._undoing else call.session
        owner = ChangeOwner(user=call.principal.user, session=call.session)
        number = await self._changes.note(written, call_id=call.id, session=session, owner=owner, at=self._now())
        if written != change:
            self._remember(number, change)
        fresh = self._contents.fresh_bytes + (0 if self._commits is None else self._commits.fresh_bytes)
        if number % PRUNE_EVERY == 0 or fresh > self._most_bytes // 8:
            await self.prune()

    async def changes(
        self, *, call_id: str | None = None, session: str | None = None, owner: ChangeOwner | None = None
    ) -> Sequence[NotedChange]:
        """The changes of a call or a session that have not been undone, newest first."""
        return self._named(await self._changes.standing(call_id=call_id, session=session, owner=owner))

    async def replaced(self, change: Change) -> bytes | None:
        """The content that a change replaced, empty where there was none; None if it is not kept."""
        if change.before is None:
            return b""
        kind, _, digest = change.before.partition(":")
        return await asyncio.to_thread(self._contents.load, digest) if kind == "sha256" and change.kept else None

    async def last_call(self, reaches: Callable[[str], bool]) -> str:
        """The last call with changes that can be undone, all of paths that `reaches` accepts: other workspaces share
        the record. An undo does not count. `NO_CALL` if there is none."""
        for call_id in await self._changes.last_calls(MAX_LISTED):
            changes = await asyncio.to_thread(self.standing, call_id=call_id, session=None)
            if changes and all(reaches(change.path) for change in changes):
                return call_id
        return NO_CALL

    def check(self, call: ToolCall, *, call_id: str | None, session: str | None) -> None:
        """Raises ToolError if the call may undo nothing of this: it is another's, or has no changes. Blocks."""
        owner = _owner(call)
        if owner is not None and not self._changes.read_standing(call_id=call_id, session=session, owner=owner):
            raise _nothing(call_id, session)

    def standing(self, *, call_id: str | None, session: str | None) -> Sequence[Change]:
        """As `changes`, and also before the first start. Blocks: for a thread."""
        noted = self._named(self._changes.read_standing(call_id=call_id, session=session))
        return [change for each in noted for change in self._paths(each.change)]

    def _paths(self, change: Change) -> Sequence[Change]:
        """A change a path: a commit of a trial has many."""
        if (commit := _commit_of(change)) is None or self._commits is None:
            return [change]
        return self._commits.changes(commit, undo=change.kind == COMMITTED)

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
        """Without the commits that were noted and then not made."""
        named = [dataclasses.replace(each, change=self._unwritten.get(each.id, each.change)) for each in noted]
        return [each for each in named if self._is_standing(each.change)]

    def _is_standing(self, change: Change) -> bool:
        commit = _commit_of(change)
        if commit is None or self._commits is None:
            return commit is None
        return self._commits.is_standing(commit, undo=change.kind == COMMITTED)

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
            return [outcome for each in noted for outcome in await self._undo(call, files, each, force=force)]
        finally:
            self._undoing.discard(call.id)

    def _conflicts(self, noted: Sequence[NotedChange], files: Files) -> list[UndoOutcome]:
        """The changes that cannot be undone. Simulates each step, so that several changes of one file are compared with
        each other and only the newest with the disk."""
        view = _FileView(files.fingerprint) if self._commits is None else self._commits.view(files.fingerprint)
        blocked: list[UndoOutcome] = []
        for each in noted:
            change = each.change
            if (commit := _commit_of(change)) is not None:
                found = view.conflicts(commit, undo=change.kind == COMMITTED)
                blocked += (UndoOutcome(path=path, outcome="conflict", reason=reason) for path, reason in found)
                view.toggle(commit)
                continue
            if reason := self._conflict(change, view.fingerprint):
                blocked.append(UndoOutcome(path=change.path, outcome="conflict", reason=reason))
            if change.kind == "move":
                view.set(change.path, change.after)
                view.set(change.to, change.before)
            else:
                view.set(change.path, change.before)
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

    async def _undo(self, call: ToolCall, files: Files, noted: NotedChange, *, force: bool) -> Sequence[UndoOutcome]:
        change = noted.change
        if change.kind == UNNAMED:
            return [UndoOutcome(path=change.path, outcome="not kept", reason="its name was not recorded")]
        try:
            if (commit := _commit_of(change)) is not None:
                return await self._undo_commit(call, noted, commit)
            outcome = await self._reverse(call, files, change, force=force)
            for directory in reversed(change.made):
                await files.remove_directory(directory)
            await self._changes.mark_undone(noted.id)
        except ToolError as problem:
            return [UndoOutcome(path=change.path, outcome="failed", reason=problem.message)]
        return [UndoOutcome(path=change.path, outcome=outcome)]

    async def _undo_commit(self, call: ToolCall, noted: NotedChange, commit: str) -> Sequence[UndoOutcome]:
        """As a whole. The undo is a change as well: undone, it makes the commit again."""
        if self._commits is None:
            raise ToolError(ErrorCode.WRITE_ERROR, "the former content was not kept", retryable=False)
        undo = noted.change.kind == COMMITTED
        paths = await asyncio.to_thread(self._commits.changes, commit, undo=undo)
        await self.note(call, dataclasses.replace(noted.change, kind=REVERTED if undo else COMMITTED))
        await asyncio.to_thread(self._commits.toggle, commit, undo=undo)
        await self._changes.mark_undone(noted.id)
        outcomes = [UndoOutcome(path=each.path, outcome=_outcome(each)) for each in paths[:MAX_LISTED]]
        if len(paths) > MAX_LISTED:
            more = f"and {len(paths) - MAX_LISTED} more paths"
            outcomes.append(UndoOutcome(path=noted.change.path, outcome="restored", reason=more))
        return outcomes

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
        return _outcome(change)

    async def _put_back(self, call: ToolCall, files: Files, path: str, change: Change) -> None:
        kind, _, rest = (change.before or "").partition(":")
        if kind == "link":
            await files.link(call, path, rest)
            return
        content = await self.replaced(change)
        if content is None:
            raise ToolError(ErrorCode.WRITE_ERROR, f"{path}: the former content was not kept", retryable=False)
        await files.write(call, path, content, mode=change.mode)

    async def prune(self) -> None:
        """Drop changes that are too old, and the oldest beyond the size limit."""
        before = self._now() - LONGEST_KEPT
        sizes = dict(await asyncio.to_thread(self._contents.sizes))
        if self._commits is not None:
            kept = await asyncio.to_thread(self._commits.sizes)
            sizes |= {f"{COMMIT}{commit}": size for commit, size in kept.items()}
        wanted = await self._changes.forget(before=before, sizes=sizes, most_bytes=self._most_bytes)
        await asyncio.to_thread(self._contents.prune, wanted)
        if self._commits is not None:
            commits = {each.removeprefix(COMMIT) for each in wanted if each.startswith(COMMIT)}
            await asyncio.to_thread(self._commits.prune, commits)

    async def sweep(self, files: Sweeper) -> None:
        """Remove temporary files that killed processes left beside the files they were about to replace."""
        for change in await self._changes.recent(MAX_SWEPT):
            if change.temp and not _is_running(change.temp):
                files.sweep(str(Path(change.path).parent), change.temp)


class _FileView:
    """The files as they would be after some changes were undone (`TreeView`), without commits."""

    def __init__(self, disk: Callable[[str], str | None]) -> None:
        self._disk = disk
        self._known: dict[str, str | None] = {}

    def fingerprint(self, path: str) -> str | None:
        if path not in self._known:
            self._known[path] = self._disk(path)
        return self._known[path]

    def set(self, path: str, fingerprint: str | None) -> None:
        self._known[path] = fingerprint

    def conflicts(self, commit: str, *, undo: bool) -> Sequence[tuple[str, str]]:  # noqa: ARG002
        return [(commit, "the former content was not kept")]

    def toggle(self, commit: str) -> None:
        """There are none."""


def _outcome(change: Change) -> str:
    """Of a change that was undone."""
    return "removed" if change.before is None else "restored"


def _commit_of(change: Change) -> str | None:
    """The commit of a trial that a row stands for."""
    return (change.before or "").removeprefix(COMMIT) if change.kind in (COMMITTED, REVERTED) else None


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
    if call_id == NO_CALL:
        return ToolError(ErrorCode.INVALID_PARAMS, "no call in this workspace has file changes left to undo")
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
