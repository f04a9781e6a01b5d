"""What is written about a call, and when? An intent before it changes anything, the outcome before it is answered.

A call that only reads is written shortly after its answer; any other is not answered before its record is on disk,
and does not begin before its intent is. Nothing is written that the redactor has not seen. Arguments are copied when
the entry is closed, so that what the caller does with them later does not reach the record.
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ToolError
from toolreeve.core.result import Failure, Success
from toolreeve.core.verdict import Decision
from toolreeve.record.chain import CheckpointFile, Tail, insert, read_head, write_head
from toolreeve.record.database import StoreError
from toolreeve.record.outline import MAX_TEXT, snapshot
from toolreeve.record.presence import Presence
from toolreeve.record.redact import Redactor
from toolreeve.record.store import Store

logger = logging.getLogger(__name__)

VERSION = 1
INTENT, CALL, LOST, APPROVAL = "intent", "call", "lost", "approval"
RECORDS_PER_CHECKPOINT = 1_000

_Body = dict[str, Any]
_Line = tuple[str, str, _Body]  # kind, call id, body


class Journal:
    """Attach one to a store before the store is used; `start` and `stop` it between the store's start and close."""

    def __init__(self, store: Store, redactor: Redactor, now: Callable[[], float]) -> None:
        self._store, self._redactor, self._now = store, redactor, now
        self._file = CheckpointFile(store.path)
        self._presence = Presence(store.path)
        self._intents: dict[str, _Body] = {}
        self._unmarked = 0
        self._contradicted = False
        store.attach(self)

    async def start(self) -> None:
        """Take a place among the processes, and close the calls of those that died as lost. Raises StoreError."""
        try:
            dead = await self._store.transact(self._begin)
        except (sqlite3.Error, OSError, ToolError) as problem:
            raise StoreError(f"{self._store.path}: the record cannot be continued: {problem}") from problem
        for name in dead:
            self._presence.forget(name)

    async def stop(self) -> None:
        """Write all that waits and bring the checkpoint up to date."""
        await self._store.flush()
        await self._store.transact(self._mark)
        self._presence.leave()

    async def intend(self, entry: Entry) -> None:
        """Returns once the intent is on disk. Raises ToolError(AUDIT_ERROR): then the call must not begin."""
        action = entry.action
        body = self.describe(entry)
        body["danger"] = None if action is None else action.danger.value
        body["effects"] = [] if action is None else [str(effect) for effect in action.effects]
        body["process"] = self._presence.name
        self._intents[entry.call.id] = body
        try:
            await self._store.append((INTENT, entry.call.id, body), kept=False)
        except ToolError:
            del self._intents[entry.call.id]
            raise
        entry.intended = True

    def close(self, entry: Entry) -> asyncio.Future[None] | None:
        """Record the outcome. None: it will be written shortly. Otherwise await it before the call is answered.

        The future raises ToolError(AUDIT_ERROR) if the disk refused; the record is then kept and tried again.
        """
        body = self.describe(entry)
        action, call_id = entry.action, entry.call.id
        if (action is None or action.read_only) and not entry.intended:
            if self._store.defer((CALL, call_id, body)):
                return None
        elif intent := self._intents.get(call_id):
            body["args"] = intent["args"]  # as intended, whatever the tool did to its own
        return self._store.append((CALL, call_id, body), kept=True)

    async def note(self, kind: str, body: Mapping[str, Any], *, call_id: str = "") -> None:
        """Record something that is not a call: a decision, a change of policy, an undo. Returns when it is on disk."""
        noted = {"v": VERSION, "ts": self._now(), **self._redactor.value(body)}
        await self._store.append((kind, call_id, noted), kept=False)

    def describe(self, entry: Entry) -> _Body:
        """One literal for intents and outcomes alike: building it is most of what a closed call costs its loop."""
        call, meta, action, outcome = entry.call, entry.meta, entry.action, entry.outcome
        principal, verdict = call.principal, meta.verdict
        failure = outcome if type(outcome) is Failure else None
        return {
            "v": VERSION,
            "ts": entry.at,
            "session": call.session,
            "user": principal.user,
            "role": principal.role._value_,
            "origin": call.origin,
            "tool": meta.tool,
            "args": snapshot(call.args if action is None else action.args),
            "decision": {
                "effect": _EFFECTS[verdict.decision],
                "layer": verdict.layer,
                "rule": verdict.rule,
                "reason": verdict.reason,
            },
            "approved_by": meta.approved_by,
            "success": None if outcome is None else failure is None,
            "code": "" if failure is None else failure.code._value_,
            "message": "" if failure is None else failure.message,
            "duration_ms": meta.duration_ms,
            "attempts": meta.attempts,
            "cached": meta.cached,
            "truncated": meta.truncated,
            "labels": list(meta.labels),
            "output_length": 0 if outcome is None else _length(outcome),
        }

    def write(self, connection: sqlite3.Connection, lines: Sequence[_Line]) -> None:
        """Called by the store, in its thread and inside its transaction."""
        tail = Tail(read_head(connection))
        rows = [tail.add(_storable(call_id), _storable(kind), self.encode(body)) for kind, call_id, body in lines]
        insert(connection, rows)
        write_head(connection, tail.head)

    def committed(self, connection: sqlite3.Connection, lines: Sequence[_Line]) -> None:
        """Called by the store, in its thread, once the lines are on disk."""
        if self._intents:
            for kind, call_id, _ in lines:
                if kind is CALL:
                    self._intents.pop(call_id, None)
        self._unmarked += len(lines)
        if self._unmarked >= RECORDS_PER_CHECKPOINT:
            self._mark(connection)

    def encode(self, body: _Body) -> bytes:
        """The bytes that are hashed and stored. Total: nothing that a call can hold prevents its record."""
        try:
            encoded = json.dumps(body)
            if len(encoded) <= MAX_TEXT and not self._redactor.suspects(encoded):
                return encoded
        except TypeError:
            pass  # what JSON cannot say is made sayable below
        shown = {key: self._redactor.value(value) for key, value in body.items() if type(value) not in _NUMBERS}
        body.update(shown)
        return json.dumps(body)

    def _mark(self, connection: sqlite3.Connection) -> None:
        self._unmarked = 0
        if not self._intents:
            self._presence.settled(read_head(connection).seq)
        if not self._file.save(connection) and not self._contradicted:
            self._contradicted = True
            logger.error("%s contradicts the database: run `toolreeve audit verify`", self._file.path)

    def _begin(self, connection: sqlite3.Connection) -> list[str]:
        self._presence.enter(read_head(connection).seq)
        self._mark(connection)
        dead = list(self._presence.dead())
        lost = [line for name, seq in dead for line in self._lost(connection, name, seq)]
        if lost:
            self.write(connection, lost)
        return [name for name, _ in dead]

    def _lost(self, connection: sqlite3.Connection, process: str, seq: int) -> Iterator[_Line]:
        for call_id, body in connection.execute(_OPEN_INTENTS, (seq,)).fetchall():
            intent = json.loads(body)
            if intent.get("process") == process:
                yield LOST, call_id, {**intent, "ts": self._now(), "success": None, "message": _LOST}


_OPEN_INTENTS = """
    SELECT call_id, body FROM audit AS intent WHERE seq > ? AND kind = 'intent' AND NOT EXISTS (
        SELECT 1 FROM audit AS outcome WHERE outcome.call_id = intent.call_id AND outcome.kind IN ('call', 'lost')
    )
"""
_LOST = "the process ended before the outcome was known: the call may have happened; it is not repeated"
_EFFECTS = {decision: decision.word for decision in Decision}
_SIZED = (str, list, dict)
_NUMBERS = frozenset({int, float, bool, type(None)})


def _length(outcome: Success | Failure) -> int:
    """How much came out: characters of a text, items of a list, fields of the rest."""
    value = outcome.main if type(outcome) is Success and outcome.main is not None else outcome.data
    return len(value) if isinstance(value, _SIZED) else 0


def _storable(name: str) -> str:
    """A text that the table takes, whatever the caller gave: a line that cannot be written would hold up all others."""
    text = name if isinstance(name, str) else repr(name)
    return text if text.isascii() else text.encode(errors="replace").decode()
