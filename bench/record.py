"""Cost of the record: durable calls against one flush per call, and verification."""

import asyncio
import os
import sqlite3
import tempfile
import time
from pathlib import Path

from bench.fill import fill
from bench.measure import Row
from bench.road import runtime
from toolreeve import DangerLevel, Toolreeve, tool
from toolreeve.config import Settings, State, Workspace
from toolreeve.config.xdg import DATABASE
from toolreeve.record.audit import Audit
from toolreeve.record.store import Store

CONCURRENT = 64


@tool(danger=DangerLevel.LOW, read_only=False)
async def touch() -> None:
    """Claim to change something, so that the call must be durable before it is answered."""


async def durable_calls() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        flushes = _flushes_a_second(place / "flush")
        commits = _commits_a_second(place / "commits.db")
        (place / "work").mkdir()
        settings = Settings(workspace=Workspace(dir=str(place / "work")), state=State(dir=str(place / "state")))
        async with Toolreeve(settings=settings, tools=[touch]) as reeve:
            await calls_a_second(reeve, seconds=0.5)
            calls = await calls_a_second(reeve, seconds=4)
    return [
        Row(name="one fsync a call", value=f"{flushes:,.0f}/s"),
        Row(name="one SQLite commit a call", value=f"{commits:,.0f}/s"),
        Row(
            name=f"durable calls, {CONCURRENT} at once, against fsync",
            value=f"{calls:,.0f}/s",
            ratio=calls / flushes,
            target="≥ 20×",
            met=calls / flushes >= 20,
        ),
        Row(name="… against a commit a call", value=f"{calls:,.0f}/s", ratio=calls / commits),
    ]


async def calls_a_second(reeve: Toolreeve, *, seconds: float) -> float:
    ends = time.perf_counter() + seconds

    async def caller() -> int:
        count = 0
        while time.perf_counter() < ends:
            result = await reeve.call("touch")
            assert result.success, result.to_text()
            count += 1
        return count

    began = time.perf_counter()
    counts = await asyncio.gather(*(caller() for _ in range(CONCURRENT)))
    return sum(counts) / (time.perf_counter() - began)


def _flushes_a_second(path: Path, *, seconds: float = 1.0) -> float:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        os.pwrite(descriptor, b"x" * 400, count * 400)
        os.fsync(descriptor)
        count += 1
    os.close(descriptor)
    return count / (time.perf_counter() - began)


def _commits_a_second(path: Path, *, seconds: float = 1.0) -> float:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE t (seq INTEGER PRIMARY KEY, body BLOB)")
    began, count = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        database.execute("INSERT INTO t (body) VALUES (?)", (b"x" * 400,))
        count += 1
    database.close()
    return count / (time.perf_counter() - began)


async def verify() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toolreeve.db"
        await fill(path, 400_000)
        store = Store(path, read_only=True)
        await store.start()
        began = time.perf_counter()
        found = await Audit(store).verify()
        rate = found.records / (time.perf_counter() - began)
        await store.close()
    assert found.ok
    return [Row(name="audit verify", value=f"{rate:,.0f} records/s", target="≥ 200,000/s", met=rate >= 200_000)]


async def audit_delay() -> list[Row]:
    """How long a read-only call may be unwritten, seen by another connection to the file."""
    async with runtime() as (reeve, workspace):
        await reeve.call("nothing")
        database = workspace.parent / "state" / DATABASE
        began = time.perf_counter()
        call = await reeve.call("nothing")
        await asyncio.to_thread(_await_record, database, call.meta.call_id)
        waited = time.perf_counter() - began
    return [
        Row(name="read-only call until on disk", value=f"{waited * 1000:.0f} ms", target="≤ 100 ms", met=waited <= 0.1)
    ]


def _await_record(database: Path, call_id: str) -> None:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    while not connection.execute("SELECT 1 FROM audit WHERE call_id = ?", (call_id,)).fetchone():
        time.sleep(0.001)
    connection.close()
