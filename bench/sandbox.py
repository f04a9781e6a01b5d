"""Cost of the sandbox: `bash -c true` against a plain asyncio spawn, sequential and concurrent."""

import asyncio
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.measure import Row, percentile
from toolreeve.core.errors import ToolError
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

PROGRAM = ("/bin/bash", "-c", "true")
ROUNDS = 10
CALLS = 40
AT_ONCE = 16
TIMEOUTS = int(os.environ.get("TOOLREEVE_BENCH_TIMEOUTS", "1000"))
DAEMONS = "sleep 600 & setsid sleep 600 & (setsid nohup sleep 600 >/dev/null 2>&1 &) & sleep 600"
Work = Callable[[], Awaitable[object]]


async def _plain() -> None:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    await process.communicate()


async def _times(work: Work, calls: int) -> list[float]:
    taken = []
    for _ in range(calls):
        began = time.perf_counter()
        await work()
        taken.append(time.perf_counter() - began)
    return taken


async def _rate(work: Work) -> float:
    """Commands a second with many at once."""
    left = list(range(AT_ONCE * 12))

    async def one_after_another() -> None:
        while left:
            left.pop()
            await work()

    began = time.perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
    return AT_ONCE * 12 / (time.perf_counter() - began)


def _memory(pid: int) -> int:
    """Bytes that a process and all below it have for themselves."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = next(
        int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if "Pss:" in line
    )
    return own * 1024 + sum(_memory(int(child)) for child in children)


def _below() -> int:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sum(_memory(int(child)) for child in children)


async def sandbox() -> list[Row]:
    with tempfile.TemporaryDirectory() as workspace:
        held = Sandbox(Layout(workspace=workspace, readable=(sys.base_prefix, sys.prefix)), Strictness())
        try:
            return await _measure(held, workspace)
        finally:
            await held.close()


async def _measure(held: Sandbox, workspace: str) -> list[Row]:
    request = ProcessRequest(argv=PROGRAM, directory=workspace)

    async def confined() -> None:
        await held.run(request)

    (first,) = await _times(confined, 1)
    idle = _below()
    rows = [
        Row(
            name="first command, sandbox built for it",
            value=f"{first * 1000:.0f} ms",
            target="≤ 150 ms",
            met=first <= 0.15,
        ),
        Row(name="memory of the idle sandbox", value=f"{idle / 2**20:.1f} MB", target="≤ 12 MB", met=idle <= 12 << 20),
    ]
    rows += await _one_by_one(confined)
    rows += await _many(confined)
    rows.append(_at_work())
    return [*rows, *await _killing(held, workspace)]


async def _one_by_one(confined: Work) -> list[Row]:
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(ROUNDS):
        ours += await _times(confined, CALLS)
        plain += await _times(_plain, CALLS)
    rows = [Row(name="plain spawn", value=f"{percentile(plain, 0.5) * 1000:.2f} ms", p50=percentile(plain, 0.5))]
    for share, most in ((0.5, 1.15), (0.99, 1.3)):
        mine, theirs = percentile(ours, share), percentile(plain, share)
        rows.append(
            Row(
                name=f"bash -c true in the full sandbox, p{share * 100:.0f}",
                value=f"{mine * 1000:.2f} ms",
                ratio=mine / theirs,
                target=f"≤ {most}×",
                met=mine / theirs <= most,
            )
        )
    return rows


async def _many(confined: Work) -> list[Row]:
    ours: list[float] = []
    plain: list[float] = []
    for _ in range(5):
        ours.append(await _rate(confined))
        plain.append(await _rate(_plain))
    mine, theirs = statistics.median(ours), statistics.median(plain)
    return [
        Row(
            name=f"commands a second, {AT_ONCE} at once",
            value=f"{mine:.0f}/s against {theirs:.0f}/s",
            ratio=mine / theirs,
            target="≥ 1.0×",
            met=mine >= theirs,
        )
    ]


def _at_work() -> Row:
    """After many at once every slot is still there."""
    used, promised = _below(), (12 + 2.5 * AT_ONCE) * 2**20
    return Row(
        name=f"memory of the sandbox, {AT_ONCE} at once",
        value=f"{used / 2**20:.1f} MB",
        target=f"≤ 12 + {AT_ONCE} × 2.5 MB",
        met=used <= promised,
    )


async def _killing(held: Sandbox, workspace: str) -> list[Row]:
    """Commands with daemons that run out of time: how late is it told, and what is left?"""
    request = ProcessRequest(
        argv=("/bin/bash", "-c", DAEMONS), directory=workspace, limits=ProcessLimits(timeout=0.05, processes=20)
    )

    async def killed() -> None:
        with contextlib.suppress(ToolError):
            await held.run(request)

    late = [await _cancelled(held, workspace) for _ in range(40)]
    await asyncio.gather(*(killed() for _ in range(AT_ONCE)))
    before = _descriptors()
    for _ in range(TIMEOUTS // AT_ONCE):
        await asyncio.gather(*(killed() for _ in range(AT_ONCE)))
    left = sum(1 for path in Path("/proc").glob("[0-9]*/cmdline") if _read(path) == b"sleep\x00600\x00")
    descriptors = max(0, _descriptors() - before - 5 * AT_ONCE)
    median = statistics.median(late)
    return [
        Row(name="kill to report", value=f"{median * 1000:.1f} ms", target="≤ 20 ms", met=median <= 0.02),
        Row(
            name=f"left after {TIMEOUTS} timeouts with daemons",
            value=f"{left} processes, {descriptors} descriptors",
            target="0",
            met=left == 0 and descriptors == 0,
        ),
    ]


async def _cancelled(held: Sandbox, workspace: str) -> float:
    """Seconds from the kill of a command with daemons until its caller goes on."""
    begun = asyncio.Event()
    request = ProcessRequest(argv=("/bin/bash", "-c", f"echo begun; {DAEMONS}"), directory=workspace)
    task = asyncio.create_task(held.run(request, lambda _, __: begun.set()))
    await begun.wait()
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait({task})
    return time.perf_counter() - began


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
