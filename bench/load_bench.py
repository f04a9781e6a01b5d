"""The HTTP door under load: callers, event listeners, long lists.

The server is a process of its own, so that its memory is its own; callers and listeners share this one.
"""

import asyncio
import os
import signal
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from bench.fill import fill
from bench.measure import Row, percentile
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace
from toolreeve.config.xdg import DATABASE
from toolreeve.core import json
from toolreeve.core.call import Role
from toolreeve.serve.tokens import new_stored

CALLERS = 64
LISTENERS = 200
SECONDS = 90.0
WARM_SECONDS = 30.0
"""Until bounded caches are full."""
DRAIN_SECONDS = 60.0
GROWTH_MB = 16
SETTINGS = "[serve]\nmax_connections_per_token = 600\nmax_connections_per_address = 600\n"
BODY = b'{"args":{"expression":"6*7"}}'
CALL = (
    b"POST /api/v1/tools/calculate/call HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY)
)
LISTEN = b"GET /api/v1/events?kinds=call.finished HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n\r\n"
FINISHED = b"event: call.finished\n"


@dataclass(slots=True)
class Load:
    """What happened: seconds of each call, failures, and the events that each listener read."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0
    seen: list[int] = field(default_factory=lambda: [0] * LISTENERS)
    memory: list[float] = field(default_factory=list)


async def load() -> list[Row]:
    found = Load()
    async with _server() as (port, process):
        slow = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        slow[1].write(LISTEN)
        async with asyncio.TaskGroup() as listeners:
            tasks = [listeners.create_task(_listen(port, number, found)) for number in range(LISTENERS)]
            await asyncio.sleep(2)
            await _call_all(port, process, found)
            await _drain(found)
            for task in tasks:
                task.cancel()
        slow[1].close()
    return _rows(found)


async def _call_all(port: int, process: psutil.Process, found: Load) -> None:
    end = time.monotonic() + SECONDS
    async with asyncio.TaskGroup() as group:
        group.create_task(_weigh(process, found, end))
        for _ in range(CALLERS):
            group.create_task(_call(port, found, end))


async def _weigh(process: psutil.Process, found: Load, end: float) -> None:
    """The server's memory every second, once it is warm."""
    await asyncio.sleep(WARM_SECONDS)
    while time.monotonic() < end:
        found.memory.append(process.memory_info().rss / 1e6)
        await asyncio.sleep(1)


async def _call(port: int, found: Load, end: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < end:
        began = time.perf_counter()
        writer.write(CALL)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        found.seconds.append(time.perf_counter() - began)
        found.errors += not head.startswith(b"HTTP/1.1 200") or b'"success":true' not in body
    writer.close()


async def _listen(port: int, number: int, found: Load) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(LISTEN)
    rest = b""
    try:
        while piece := await reader.read(1 << 16):
            text = rest + piece
            found.seen[number] += text.count(FINISHED)
            rest = text[-(len(FINISHED) - 1) :]
    finally:
        writer.close()


async def _drain(found: Load) -> None:
    """Until everybody has read everything, or nothing more comes."""
    end = time.monotonic() + DRAIN_SECONDS
    while min(found.seen) < len(found.seconds) and time.monotonic() < end:  # noqa: ASYNC110 - the clock is awaited
        await asyncio.sleep(0.2)


PATHS = {
    "inbox, 100,000 stored approvals": ("/api/v1/approvals?state=pending&limit=200", 0.050),
    "inbox, answered ones": ("/api/v1/approvals?state=settled", 0.050),
    "audit, 1,000,000 records": ("/api/v1/audit?limit=50", 0.100),
    "audit, by a rare tool": ("/api/v1/audit?limit=50&tool=rare", 0.100),
    "audit, by a session": ("/api/v1/audit?limit=50&session=s7", 0.100),
    "audit, failed ones": ("/api/v1/audit?limit=50&success=false", 0.100),
    "calls": ("/api/v1/calls?limit=200", 0.100),
}
ASKED = 300
SMALLEST = 5_000
"""Bytes of a page that is not empty."""
TOKEN = "a-token-that-sees-the-calls-of-everybody"


async def pages() -> list[Row]:
    """The first page of long lists, by the 99th percentile."""
    rows = []
    states: list[Path] = []

    async def prepare(state: Path, workspace: Path) -> None:
        states.append(state)
        await _fill(state, workspace)

    async with _server(prepare) as (port, _):
        await _ask(port)
        _copy_question(states[0] / DATABASE)
        for name, (path, most) in PATHS.items():
            seconds = await _fetch(port, path)
            p99 = percentile(seconds, 0.99)
            value = f"p50 {percentile(seconds, 0.5) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"
            rows.append(Row(name=f"page: {name}", value=value, target=f"≤ {most * 1000:.0f} ms", met=p99 <= most))
    return rows


async def _ask(port: int) -> None:
    """One question that waits."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"args": {"path": "a.txt", "content": "text\n" * 100}})
    head = f"POST /api/v1/tools/write_file/call HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    status = await reader.readline()
    assert b" 409 " in status, status
    writer.close()


async def _fetch(port: int, path: str) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    seconds = []
    for _ in range(ASKED):
        began = time.perf_counter()
        writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {TOKEN}\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
        seconds.append(time.perf_counter() - began)
        assert head.startswith(b"HTTP/1.1 200"), head
    assert len(body) > SMALLEST, f"{path} is empty"
    writer.close()
    return seconds


async def _fill(state: Path, workspace: Path) -> None:
    """A record of a million calls, and a token that may read all of it."""
    await fill(state / DATABASE, 1_000_000)
    settings = Settings(workspace=Workspace(dir=str(workspace)), state=State(dir=str(state)))
    async with Toolreeve(settings=settings, mcp_servers={}) as reeve:
        token = new_stored(TOKEN, kind="token", user="bench", role=Role.ADMIN, now=time.time())
        await reeve.internals.store.credentials.add(token)


def _copy_question(path: Path) -> None:
    """Many copies of the question: half of them wait, half are answered."""
    database = sqlite3.connect(path)
    columns = [row[1] for row in database.execute("PRAGMA table_info(approvals)")]
    changed = {
        "id": "printf('%032x', n)",
        "asked": "asked - n",
        "expires": "expires + 86400",
        "state": "iif(n % 2, 'pending', 'denied')",
        "changed": "changed + n",
    }
    values = ", ".join(changed.get(name, name) for name in columns)
    database.execute(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000) "
        f"INSERT INTO approvals ({', '.join(columns)}) SELECT {values} FROM numbers, (SELECT * FROM approvals LIMIT 1)"
    )
    database.commit()
    database.close()


Prepare = Callable[[Path, Path], Awaitable[None]]


@asynccontextmanager
async def _server(prepare: Prepare | None = None) -> AsyncIterator[tuple[int, psutil.Process]]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "config/toolreeve/toolreeve.toml")
        settings.parent.mkdir(parents=True)
        settings.write_text(SETTINGS)
        env = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": f"{folder}/config", "XDG_STATE_HOME": f"{folder}/state"}
        workspace = Path(folder, "work")
        workspace.mkdir()
        if prepare is not None:
            state = Path(folder, "state/toolreeve")
            state.mkdir(mode=0o700, parents=True)
            await prepare(state, workspace)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "toolreeve", "serve", "--port", "0"),
            cwd=workspace,
            env=env,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        first = (await process.stderr.readline()).decode()
        port = int(first.split("http://127.0.0.1:")[1].split("/")[0])
        draining = asyncio.create_task(process.stderr.read())
        await asyncio.sleep(1)
        try:
            yield port, psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()
            await draining


def _rows(found: Load) -> list[Row]:
    calls = len(found.seconds)
    quantiles = statistics.quantiles(found.seconds, n=100)
    lost = sum(calls - each for each in found.seen)
    half = len(found.memory) // 2
    growth = statistics.median(found.memory[half:]) - statistics.median(found.memory[:half])
    name = f"load: {CALLERS} callers and {LISTENERS} listeners, {SECONDS:g} s"
    return [
        Row(
            name=name,
            value=f"{calls / SECONDS:,.0f} calls/s, p50 {quantiles[49] * 1000:.0f} ms, "
            f"p99 {quantiles[98] * 1000:.0f} ms, {calls * LISTENERS / SECONDS:,.0f} events/s",
        ),
        Row(name="load: failed calls", value=str(found.errors), target="0", met=found.errors == 0),
        Row(name="load: events lost by those who read", value=str(lost), target="0", met=lost == 0),
        Row(
            name="load: memory, second half against first",
            value=f"{growth:+.1f} MB of {max(found.memory):.0f}",
            target=f"≤ {GROWTH_MB} MB",
            met=growth <= GROWTH_MB,
        ),
    ]
