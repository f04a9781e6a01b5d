"""Journal: writes the intent and the outcome of every call.

A read-only call is written shortly after its result is returned. Any other does not begin before its intent is on disk,
and its result is not returned before its outcome is. Nothing is written that the redactor has not seen. Arguments are
copied when the entry is closed, so that later changes by the caller do not reach the record.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

from toolreeve.core import json
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ToolError
from toolreeve.core.result import UNDECIDED, Failure, Success
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.core.snapshot import MAX_TEXT, snapshot
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.record.chain import ChainError, ChainStore, Head, Line, Tail, WitnessedRecord
from toolreeve.record.chain import Entry as ChainEntry
from toolreeve.record.engine import StoreError
from toolreeve.record.gaps import ACCEPTED, GAP, WITNESSED, Finding, examine, first_look
from toolreeve.record.liveness import Liveness
from toolreeve.record.witness import EarlierFile, Sighting, Untrusted, Witness

logger = logging.getLogger(__name__)

VERSION = 1
INTENT = "intent"
CALL = "call"
LOST = "lost"
GOVERNOR = "governor"
APPROVAL = "approval"
GRANT = "grant"
RECORDS_PER_MARK = 1_000
SYNC_SECONDS = 1.0

T = TypeVar("T")
_Body = dict[str, Any]


class JournalStore(Protocol):
    """The part of a store that a journal writes to; `record.store.Store` says how."""

    @property
    def path(self) -> Path: ...

    @property
    def place(self) -> str: ...

    def liveness(self) -> Liveness: ...

    def attach(self, log: "Journal") -> None: ...

    def append(self, line: Line, *, kept: bool) -> "asyncio.Future[None]": ...

    def defer(self, line: Line) -> bool: ...

    async def flush(self) -> None: ...

    async def in_thread(self, work: Callable[..., T], *args: Any) -> T: ...

    async def change_chain(self, work: Callable[[ChainStore], T]) -> T: ...


class Journal:
    """Attach one to a store before the store is used; `start` and `stop` it between the store's start and close.

    `findings` are the gaps that its witness revealed since the start: each is on record, and passed to `on_gap`.
    """

    def __init__(
        self,
        store: JournalStore,
        redactor: Redactor,
        now: Callable[[], float],
        *,
        workspace: str = "",
        clock: Callable[[], float] = time.monotonic,
        on_gap: Callable[[Finding], None] | None = None,
        liveness: Liveness | None = None,
    ) -> None:
        self._store = store
        self._redactor = redactor
        self._now = now
        self._workspace = workspace
        self._clock = clock
        self._on_gap = on_gap
        self.findings: list[Finding] = []
        self._witness = Witness(store.path)
        self._earlier = EarlierFile(store.path)
        self._identity: bytes | None = None
        self._synced = 0
        self._synced_written = 0
        self._synced_at = clock()
        self._remade = False
        self._liveness = store.liveness() if liveness is None else liveness
        self._intents: dict[str, _Body] = {}
        self._unmarked = 0
        self.unsynced = False
        store.attach(self)

    async def start(self) -> None:
        """Register this process, and close the open calls of dead processes as lost. Raises StoreError."""
        try:
            dead = await self._store.change_chain(self._begin)
        except (ChainError, OSError, ToolError) as problem:
            raise StoreError(f"{self._store.place}: the record cannot be continued: {problem}") from problem
        for name in dead:
            await self._store.in_thread(self._liveness.forget, name)

    async def stop(self) -> None:
        """Write everything pending and sync the witness."""
        await self._store.flush()
        self._synced_at = -SYNC_SECONDS  # the next commit syncs the witness
        await self._store.change_chain(self._mark)
        await self._store.change_chain(self.note_synced)
        await self._store.in_thread(self._liveness.leave)

    async def accept(self, gap: int, *, user: str, reason: str) -> None:
        """A person accepts this gap: it stays on record, but is no longer a problem."""
        await self.note(ACCEPTED, {"gap": gap, "user": user, "reason": reason})

    async def intend(self, entry: Entry) -> None:
        """Returns once the intent is on disk. Raises ToolError(AUDIT_ERROR): then the call must not begin."""
        body = self.describe(entry)
        body["process"] = self._liveness.name
        self._intents[entry.call.id] = body
        try:
            await self._store.append((INTENT, entry.call.id, body), kept=False)
        except ToolError:
            del self._intents[entry.call.id]
            raise
        entry.intended = True

    def close(self, entry: Entry) -> "asyncio.Future[None] | None":
        """Record the outcome. None: it is written shortly. Otherwise await the future before returning the result.

        The future raises ToolError(AUDIT_ERROR) if the write failed; the record is then kept and retried.
        """
        body = self.describe(entry)
        action = entry.action
        call_id = entry.call.id
        if (action is None or action.read_only) and not entry.intended:
            if self._store.defer((CALL, call_id, body)):
                return None
        elif intent := self._intents.get(call_id):
            body["args"] = intent["args"]  # as intended, even if the tool changed them
        return self._store.append((CALL, call_id, body), kept=True)

    async def note(self, kind: str, body: Mapping[str, Any], *, call_id: str = "") -> None:
        """Record an event that is not a call: a decision, a policy change, an undo. Returns when it is on disk."""
        noted = {"v": VERSION, "ts": self._now(), **self._redactor.value(body)}
        await self._store.append((kind, call_id, noted), kept=False)

    async def note_with(self, kind: str, body: Mapping[str, Any], work: Callable[[ChainStore], None]) -> None:
        """Do `work` on the chain and record it, in one transaction. Raises what `work` raises; then nothing is done."""
        noted = {"v": VERSION, "ts": self._now(), **self._redactor.value(body)}

        def done(chain: ChainStore) -> None:
            work(chain)
            self.write(chain, [(kind, "", noted)])

        await self._store.change_chain(done)

    @property
    def process(self) -> str:
        """The name of this process, unique among all that share the record."""
        return self._liveness.name

    async def is_alive(self, process: str) -> bool:
        """Whether a process that shares the record is running."""
        return await self._store.in_thread(self._liveness.is_alive, process)

    def describe(self, entry: Entry) -> _Body:
        """One literal for intents and outcomes alike: building it is most of what closing a call costs the loop."""
        call = entry.call
        meta = entry.meta
        action = entry.action
        outcome = entry.outcome
        principal = call.principal
        verdict = meta.verdict
        failure = outcome if type(outcome) is Failure else None
        body: _Body = {
            "v": VERSION,
            "ts": entry.at,
            "session": call.session,
            "user": principal.user,
            "role": principal.role._value_,
            "origin": call.origin,
            "client": call.client,
            "workspace": self._workspace,
            "tool": meta.tool,
            "args": snapshot(call.args if action is None else action.args),
            "danger": None if action is None else action.danger._value_,
            "effects": [] if action is None else [str(effect) for effect in action.recorded_effects],
            "decision": _decision(verdict),
            "approved_by": meta.approved_by,
            "success": None if outcome is None else failure is None,
            "code": "" if failure is None else failure.code._value_,
            "message": "" if failure is None else failure.message,
            "duration_ms": meta.duration_ms,
            "waited_ms": meta.waited_ms,
            "stages_ms": [round((end - start) * 1000, 3) for start, end in pairwise(entry.marks)],
            "attempts": meta.attempts,
            "cached": meta.cached,
            "truncated": meta.truncated,
            "labels": list(meta.labels),
            "output_length": 0 if outcome is None else _length(outcome),
        }
        if action is not None and action.spent:
            body["cost"] = action.spent
        if meta.command is not None:
            body["runs"] = meta.ran_in.value
        if meta.trial is not None:
            body["trial"] = dict(meta.trial)
        if entry.shadow is not None:
            body["would"] = _decision(entry.shadow)
        if entry.crash:
            body["traceback"] = _last_part(entry.crash)
        if meta.quarantined:
            body["quarantined"] = list(meta.quarantined)
        return body

    def write(self, chain: ChainStore, lines: Sequence[Line]) -> None:
        """Called by the store, in its thread and inside its transaction."""
        self._write(chain, chain.next_head(), lines)
        self.note_synced(chain)

    def entries(self, lines: Sequence[Line]) -> list[ChainEntry]:
        return [(_storable(call_id), _storable(kind), self.encode(body)) for kind, call_id, body in lines]

    def committed(self, chain: ChainStore, lines: Sequence[Line]) -> None:
        """Called by the store, in its thread, once the lines are on disk and before they are acknowledged."""
        if self._intents:
            for kind, call_id, _ in lines:
                if kind is CALL:
                    self._intents.pop(call_id, None)
        if self._remade:
            self._keep_identity(chain)
        self._advance(chain, sync=self._clock() - self._synced_at >= SYNC_SECONDS)
        self._unmarked += len(lines)
        if self._unmarked >= RECORDS_PER_MARK:
            self._mark(chain)

    def idle(self, chain: ChainStore) -> None:
        """Called by the store, in its thread, when nothing was written for a second and `unsynced` is set."""
        self._advance(chain, sync=True)

    def encode(self, body: _Body) -> bytes:
        """The bytes that are hashed and stored. Total: nothing that a call can hold prevents its record."""
        try:
            encoded = json.dumps(body)
            if len(encoded) <= MAX_TEXT and not self._redactor.suspects(encoded):
                return encoded
        except TypeError:
            pass  # values that JSON cannot represent are replaced below
        redacted = {key: self._redactor.value(value) for key, value in body.items() if type(value) not in _NUMBERS}
        body.update(redacted)
        return json.dumps(body)

    def _write(self, chain: ChainStore, head: Head, lines: Sequence[Line]) -> None:
        tail = Tail(head)
        rows = [tail.add(*entry) for entry in self.entries(lines)]
        chain.append(rows, tail.head)

    def _mark(self, chain: ChainStore) -> None:
        self._unmarked = 0
        head = chain.stored_head()
        if head is not None and not self._intents:
            self._liveness.settled(head.seq)

    def _begin(self, chain: ChainStore) -> list[str]:
        self._settle(chain)
        self._liveness.enter(chain.next_head().seq)
        return self.bury(chain)

    def bury(self, chain: ChainStore) -> list[str]:
        """Inside a transaction: close the open calls of dead processes as lost; returns their names."""
        dead = list(self._liveness.dead())
        lost = [line for name, seq in dead for line in self._lost(chain, name, seq)]
        if lost:
            self.write(chain, lost)
        return [name for name, _ in dead]

    def note_synced(self, chain: ChainStore) -> None:
        """Called by the store, inside its transaction."""
        if self._synced > self._synced_written:
            chain.set_synced(self._synced)
            self._synced_written = self._synced

    def _advance(self, chain: ChainStore, *, sync: bool) -> None:
        """Advance the witness to everything committed, by any process."""
        head = chain.stored_head()
        if head is None or self._identity is None:
            return
        try:
            self._witness.advance(Sighting(self._identity, head, self._now()), sync=sync)
        except Untrusted as trouble:
            self._resettle(chain, trouble)
        self.unsynced = not sync
        if sync:
            self._synced = head.seq
            self._synced_at = self._clock()

    def _resettle(self, chain: ChainStore, trouble: Untrusted) -> None:
        with chain.transaction():
            self._settle(chain, trouble)

    def examine(self, chain: ChainStore) -> None:
        """Called by the store, inside its transaction, if the database may have lost records."""
        self._settle(chain)

    def _settle(self, chain: ChainStore, trouble: Untrusted | None = None) -> None:
        """Inside a transaction: record what the witness reveals, and only then create a new one."""
        known = chain.witnessed()
        if known is None:
            raise ChainError("the identity was removed from the database; run `toolreeve audit verify`")
        self._identity = known.identity
        if known.since is None:
            finding = first_look(chain, known, self._witness.look, self._earlier)
        else:
            finding = examine(chain, known, self._witness.look, name="the witness")
        if finding is None and trouble is not None and trouble.kind == "rolled back":
            finding = Finding(kind=trouble.kind, text=f"the witness is {trouble.kind}: {trouble}")
        if finding is not None:
            self._note_gap(chain, finding)
        elif known.since is not None:
            return
        self._make_witness(chain, known)

    def _note_gap(self, chain: ChainStore, finding: Finding) -> None:
        """Numbers of lost records are not reused: the gap gets the number after the last of them."""
        self.findings.append(finding)
        logger.error("%s: %s. Run `toolreeve audit verify`", self._store.place, finding.text)
        if self._on_gap is not None:
            self._on_gap(finding)
        head = chain.next_head()
        body = {"v": VERSION, "ts": self._now(), **finding.to_body()}
        self._write(chain, Head(max(head.seq, finding.last), head.hash), [(GAP, "", body)])

    def _make_witness(self, chain: ChainStore, known: WitnessedRecord) -> None:
        """Before the commit: a process killed in between leaves a witness ahead, which the next start reports."""
        if known.since is None and chain.next_head().seq:
            what = "one more machine keeps a witness" if known.shared else "the first witness of a record that had none"
            body = {"v": VERSION, "ts": self._now(), "message": what}
            self._write(chain, chain.next_head(), [(WITNESSED, "", body)])
        head = chain.next_head()
        self._witness.make(Sighting(known.identity, head, self._now()))
        chain.set_witnessed(head.seq)
        self._remade = True

    def _keep_identity(self, chain: ChainStore) -> None:
        """Checkpoint the WAL into the database, so that removing both WAL and witness is noticed."""
        chain.empty_log()
        self._earlier.path.unlink(missing_ok=True)
        self._remade = False

    def _lost(self, chain: ChainStore, process: str, seq: int) -> Iterator[Line]:
        for call_id, body in chain.open_intents(seq):
            intent = json.loads(body)
            if intent.get("process") == process:
                yield LOST, call_id, {**intent, "ts": self._now(), "success": None, "message": _LOST}


_LOST = "the process ended before the outcome was known: the call may have happened; it is not repeated"
_EFFECTS = {decision: decision.word for decision in Decision}
_SIZED = (str, list, dict)
_NUMBERS = frozenset({int, float, bool, type(None)})


def _decision(verdict: Verdict) -> dict[str, str | None] | None:
    """None for a call that ended before it was decided."""
    if verdict is UNDECIDED:
        return None
    return {
        "effect": _EFFECTS[verdict.decision],
        "layer": verdict.layer,
        "rule": verdict.rule,
        "reason": verdict.reason,
    }


def _length(outcome: Success | Failure) -> int:
    """Size of the output: characters of a text, items of a list, fields of an object."""
    value = outcome.main if type(outcome) is Success and outcome.main is not None else outcome.data
    return len(value) if isinstance(value, _SIZED) else 0


def _storable(name: str) -> str:
    """Text that the table accepts, whatever the caller passed: an unwritable line would hold up all others."""
    text = name if isinstance(name, str) else repr(name)
    text = text if text.isascii() else text.encode(errors="replace").decode()
    return text.replace("\0", "\ufffd")


def _last_part(traceback: str) -> str:
    """As much as the record keeps of a text; the end says what went wrong."""
    return traceback if len(traceback) <= MAX_TEXT else f"…{traceback[1 - MAX_TEXT :]}"
