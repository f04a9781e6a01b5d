"""Cost of the road: a file read, a no-op, many tools, a long audit log."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.fill import fill
from bench.measure import Row, compare, micros
from bench.noop import nothing
from toolreeve import Toolreeve
from toolreeve.config import Settings, State, Workspace


@asynccontextmanager
async def runtime() -> AsyncIterator[tuple[Toolreeve, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        settings = Settings(workspace=Workspace(dir=str(place / "work")), state=State(dir=str(place / "state")))
        async with Toolreeve(settings=settings, tools=[nothing]) as reeve:
            yield reeve, place / "work"


def _measure(tools: int, state: Path) -> float:
    command = [sys.executable, "-m", "bench.noop", str(tools), str(state)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


async def read_file() -> list[Row]:
    async with runtime() as (reeve, workspace):
        path = workspace / "file.txt"
        path.write_text("x" * 4096)
        name = str(path)

        def plain() -> str:
            with open(name, encoding="utf-8") as file:
                return file.read()

        assert (await reeve.call("read_file", path="file.txt")).data["content"] == plain()
        base, ours = await compare(plain, lambda: reeve.call("read_file", path="file.txt"))
    ratio = ours.p50 / base.p50
    return [
        Row(name="open().read() of 4 KB", value=micros(base.p50), p50=base.p50, p99=base.p99),
        Row(
            name="read_file of 4 KB through the road",
            value=micros(ours.p50),
            ratio=ratio,
            p50=ours.p50,
            p99=ours.p99,
            target="≤ 4×",
            met=ratio <= 4,
        ),
    ]


async def no_op() -> list[Row]:
    """In processes that take turns: a slow moment of the machine hits all, and none pays for what another holds."""
    with tempfile.TemporaryDirectory() as folder:
        empty, long = Path(folder) / "empty", Path(folder) / "long"
        await fill(long / "toolreeve.db", 1_000_000)
        kinds = {"10 tools": (10, empty), "5,000 tools": (5000, empty), "1,000,000 records": (10, long)}
        rounds = [{name: await asyncio.to_thread(_measure, *kind) for name, kind in kinds.items()} for _ in range(5)]
    costs = {name: statistics.median(each[name] for each in rounds) for name in kinds}
    base = costs["10 tools"]
    by_tools = statistics.median(each["5,000 tools"] / each["10 tools"] for each in rounds)
    by_records = statistics.median(each["1,000,000 records"] / each["10 tools"] for each in rounds)
    return [
        Row(name="no-op through the road, CPU", value=micros(base), p50=base, target="≤ 60 µs", met=base <= 60e-6),
        Row(
            name="… with 5,000 tools against 10",
            value=micros(costs["5,000 tools"]),
            ratio=by_tools,
            target="≤ 1.1×",
            met=by_tools <= 1.1,
        ),
        Row(
            name="… with 1,000,000 records against none",
            value=micros(costs["1,000,000 records"]),
            ratio=by_records,
            target="≤ 1.2×",
            met=by_records <= 1.2,
        ),
    ]
