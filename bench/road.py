"""What does the road cost? A file read, a tool that does nothing, many tools, a long audit log."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.fill import fill
from bench.measure import Row, compare, cpu_each, micros
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
    costs = {}
    for label, tools, records in (("10 tools", 10, 0), ("5,000 tools", 5000, 0), ("1,000,000 records", 10, 1_000_000)):
        async with runtime(tools=tools, records=records) as (reeve, _):
            await cpu_each(lambda reeve=reeve: reeve.call("nothing"), rounds=1)  # type: ignore[misc]
            costs[label] = await cpu_each(lambda reeve=reeve: reeve.call("nothing"))  # type: ignore[misc]
    base = costs["10 tools"]
    by_tools, by_records = costs["5,000 tools"] / base, costs["1,000,000 records"] / base
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
