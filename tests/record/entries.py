"""Entries of real tools for the journal, and a journal on a real file."""

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.record.backends import store_at, stored_bytes
from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import Failure, Success
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.core.tool import bind, tool
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.record.audit import Audit
from toolreeve.record.journal import Journal

NOW = 1_700_000_000.0
SCHEMA = {"type": "object"}


@tool(danger=DangerLevel.SAFE, input_schema=SCHEMA)
def peek(**_: Any) -> str:
    return ""


@tool(
    danger=DangerLevel.MEDIUM,
    input_schema=SCHEMA,
    effects=lambda args, _: [Effect(EffectKind.WRITE, str(args.get("path")))],
)
def poke(**_: Any) -> str:
    return ""


PEEK, POKE = bind(peek), bind(poke)


class NoFiles:
    """Files of a workspace that no test here looks into."""

    root = os.sep


def entry(args: dict[str, Any], *, changes: bool = False, **call: Any) -> Entry:
    """A call that travelled the road and succeeded. `changes`: it is not read-only."""
    which = POKE if changes else PEEK
    principal = Principal(user="ada", role=Role.ADMIN)
    made = Entry(ToolCall(tool=which.spec.name, args=args, principal=principal, **call), at=NOW, started=0.0)
    made.action = Action(made.call, which, args, NoFiles())  # type: ignore[arg-type]
    made.meta.verdict = Verdict(Decision.ALLOW, "mode", "safe tools are allowed")
    made.meta.attempts, made.meta.duration_ms = 1, 0.25
    made.outcome = Success({"content": "hello"}, "hello")
    return made


def failed(made: Entry, code: ErrorCode, message: str) -> Entry:
    made.outcome = Failure(code, message)
    return made


class JournalFile:
    """A store, its journal and its reader."""

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self.path = path
        self.store = store_at(path)
        self.journal = Journal(self.store, Redactor(secrets), lambda: NOW)
        self.audit = Audit(self.store)

    async def write(self, count: int) -> list[str]:
        """So many records of read-only calls, on disk; the answer is their call ids."""
        entries = [entry({"n": number}) for number in range(count)]
        for each in entries:
            assert self.journal.close(each) is None
        await self.store.flush()
        return [each.call.id for each in entries]

    def stored_bytes(self) -> bytes:
        return stored_bytes(self.path)


@asynccontextmanager
async def opened(path: Path, secrets: Iterable[str] = ()) -> AsyncIterator[JournalFile]:
    book = JournalFile(path, secrets)
    await book.store.start()
    await book.journal.start()
    try:
        yield book
    finally:
        await book.journal.stop()
        await book.store.close()
