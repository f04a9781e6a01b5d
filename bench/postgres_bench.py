"""PostgreSQL against SQLite: durable calls of one and two gateways, verification, approvals, filters."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from tests.record.postgres.server import PostgresServer

from bench.fill import entries
from bench.measure import Row, percentile
from toolreeve.core.call import new_id
from toolreeve.record.audit import Audit, Filter
from toolreeve.record.chain import Tail
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import RecordStore, open_store

ROUNDS = 3
SECONDS = 3.0
FILLED = 1_000_000
DECISIONS = 200
QUESTION = {"call_id": "c", "session": "s", "user": "ann", "role": "admin", "origin": "", "tool": "t", "danger": "low"}


def _server() -> PostgresServer:
    """As Debian configures it, but for the memory: every commit reaches the disk."""
    return PostgresServer(fsync="on", autovacuum="on", shared_buffers="512MB")


async def durable_gateways() -> list[Row]:
    """Each gateway is a process with 64 callers. SQLite and PostgreSQL take turns."""
    found: dict[tuple[str, int], list[float]] = {}
    server = _server()
    try:
        for _ in range(ROUNDS):
            for count in (1, 2):
                for backend in ("SQLite", "PostgreSQL"):
                    url = server.new_database() if backend == "PostgreSQL" else ""
                    rate = await asyncio.to_thread(_calls_a_second, url, count)
                    found.setdefault((backend, count), []).append(rate)
    finally:
        server.close()
    rates = {key: statistics.median(values) for key, values in found.items()}
    base = rates["SQLite", 1]
    targets = {1: 0.9, 2: 1.5}
    rows = []
    for (backend, count), rate in sorted(rates.items(), reverse=True):
        ratio = rate / base
        least = targets[count] if backend == "PostgreSQL" else None
        name = f"durable calls, {backend}, {count} gateway{'s' * (count > 1)} × 64"
        met = None if least is None else ratio >= least
        rows.append(Row(name=name, value=f"{rate:,.0f}/s", ratio=ratio, target=f"≥ {least}×" if least else "", met=met))
    return rows


def _calls_a_second(url: str, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        places = [folder if not url else f"{folder}/{number}" for number in range(count)]
        command = [sys.executable, "-m", "bench.gateway"]
        pipe = subprocess.PIPE
        gateways = [
            subprocess.Popen([*command, place, url, str(SECONDS)], stdin=pipe, stdout=pipe, text=True)
            for place in places
        ]
        for gateway in gateways:
            assert gateway.stdout is not None
            assert gateway.stdout.readline() == "ready\n"
        for gateway in gateways:
            assert gateway.stdin is not None
            gateway.stdin.write("go\n")
            gateway.stdin.flush()
        return sum(float(gateway.communicate(timeout=120)[0].split()[0]) for gateway in gateways)


@asynccontextmanager
async def _filled(server: PostgresServer, records: int) -> AsyncIterator[RecordStore]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "x.db", server.new_database())
        await store.start()
        rows = entries(records)
        tail = Tail(await store.change_chain(lambda chain: chain.next_head()))
        while chunk := [tail.add(*entry) for entry in islice(rows, 20_000)]:
            await store.change_chain(lambda chain, chunk=chunk: chain.append(chunk, tail.head))  # type: ignore[misc]
        await store.read(lambda database: database.execute("ANALYZE"))
        yield store
        await store.close()


async def large_record() -> list[Row]:
    server = _server()
    try:
        async with _filled(server, FILLED) as store:
            began = time.perf_counter()
            found = await Audit(store).verify()
            rate = found.records / (time.perf_counter() - began)
            pages = await _pages(store)
    finally:
        server.close()
    slowest = max(pages, key=lambda name: pages[name])
    worst = pages[slowest]
    return [
        Row(
            name=f"audit verify, PostgreSQL, {FILLED:,} records",
            value=f"{rate:,.0f} records/s",
            target="≥ 200,000/s",
            met=rate >= 200_000,
        ),
        Row(
            name=f"slowest first page of {len(pages)} filters, PostgreSQL, {FILLED:,} records",
            value=f"{worst * 1000:.1f} ms ({slowest})",
            target="≤ 20 ms",
            met=worst <= 0.02,
        ),
    ]


async def _pages(store: RecordStore) -> dict[str, float]:
    middle = time.time() - FILLED / 2
    filters = {
        "all": Filter(),
        "common tool": Filter(tool="read_file"),
        "rare tool": Filter(tool="rare"),
        "no such tool": Filter(tool="none"),
        "session": Filter(session="s7"),
        "user": Filter(user="local"),
        "no such user": Filter(user="nobody"),
        "failures": Filter(success=False),
        "code": Filter(code="E_TIMEOUT"),
        "kind": Filter(kind="intent"),
        "calls of a session": Filter(kind="call", session="s7"),
        "since the middle": Filter(since=middle),
        "until the middle": Filter(until=middle),
        "a minute in the middle": Filter(since=middle, until=middle + 60),
        "rare tool until the middle": Filter(tool="rare", until=middle),
        "session and common tool": Filter(session="s7", tool="read_file"),
        "rare tool and failures": Filter(tool="rare", success=False),
    }
    times: dict[str, float] = {}
    for name, wanted in filters.items():
        samples = []
        for _ in range(5):
            began = time.perf_counter()
            await store.audit.page(wanted, before=None, limit=100)
            samples.append(time.perf_counter() - began)
        times[name] = statistics.median(samples)
    return times


async def approvals_across_gateways() -> list[Row]:
    """From `decide` on one gateway to the end of `wait` on another."""
    server = _server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            url = server.new_database()
            stores = [open_store(Path(folder) / name / "x.db", url) for name in ("a", "b")]
            for store in stores:
                await store.start()
            times = await _decisions([PendingStore(store.pending, time.time) for store in stores])
            for store in stores:
                await store.close()
    finally:
        server.close()
    p50 = percentile(times, 0.5)
    return [
        Row(
            name="approval on one gateway until settled on another",
            value=f"{p50 * 1000:.1f} ms",
            p50=p50,
            p99=percentile(times, 0.99),
            target="≤ 10 ms",
            met=p50 <= 0.01,
        )
    ]


async def _decisions(gateways: Sequence[PendingStore]) -> list[float]:
    times = []
    for _ in range(DECISIONS):
        row, _ = await gateways[0].file(
            binding=new_id(), holder=new_id(), tool="t", question={**QUESTION, "args": {}, "verdict": [1, "", "", None]}
        )
        waiting = asyncio.ensure_future(gateways[0].wait(row.id, timeout=30))
        await asyncio.sleep(0.02)
        began = time.perf_counter()
        await gateways[1].decide(row.id, {"granted": True, "by": "Bea", "approver": "bea"})
        settled = await waiting
        times.append(time.perf_counter() - began)
        assert settled is not None
        assert settled.state == "allowed"
    return times
