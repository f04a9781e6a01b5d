"""What does the road cost? A file read, a tool that does nothing, many tools, a long audit log."""

import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from bench.fill import fill
from bench.measure import ROUNDS, Row, compare, cpu_each, micros
from toolreeve import DangerLevel, Toolreeve, tool
from toolreeve.config import Settings, State, Workspace
from toolreeve.core.tool import FunctionTool


@tool(danger=DangerLevel.SAFE)
async def nothing() -> None:
    """Do nothing."""


@asynccontextmanager
async def runtime(*, tools: int = 1, records: int = 0) -> AsyncIterator[tuple[Toolreeve, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "work").mkdir()
        settings = Settings(workspace=Workspace(dir=str(place / "work")), state=State(dir=str(place / "state")))
        if records:
            await fill(place / "state" / "toolreeve.db", records)
        others = [_another(number) for number in range(tools - 1)]
        async with Toolreeve(settings=settings, tools=[nothing, *others]) as reeve:
            yield reeve, place / "work"


def _another(number: int) -> FunctionTool:
    return tool(name=f"other_{number}", danger=DangerLevel.SAFE)(nothing.function)


async def read_file() -> list[Row]:
    async with runtime() as (reeve, workspace):
        path = workspace / "file.txt"
        path.write_text("x" * 4096)
        name = str(path)

        def plain() -> str:
            with open(name, encoding="utf-8") as file:
                return file.read()

        assert (await reeve.call("read_file", path="file.txt")).data["content"] == plain()  # type: ignore[index]
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
    """The three runtimes take turns, so that a slow moment of the machine hits all of them."""
    async with (
        runtime(tools=10) as (few, _),
        runtime(tools=5000) as (many, _),
        runtime(tools=10, records=1_000_000) as (long, _),
    ):
        kinds = {"10 tools": few, "5,000 tools": many, "1,000,000 records": long}
        rounds = []
        for _ in range(ROUNDS + 1):
            rounds.append({name: await cpu_each(partial(reeve.call, "nothing")) for name, reeve in kinds.items()})
    costs = {name: statistics.median(each[name] for each in rounds[1:]) for name in kinds}
    base = costs["10 tools"]
    by_tools = statistics.median(each["5,000 tools"] / each["10 tools"] for each in rounds[1:])
    by_records = statistics.median(each["1,000,000 records"] / each["10 tools"] for each in rounds[1:])
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
