"""Runs the benchmarks, prints a table, saves it as JSON. `python -m bench.run [NAME…]`"""

import asyncio
import json
import platform
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import (
    a2a_bench,
    agent_day,
    agent_loop,
    commit_bench,
    connector_bench,
    load_bench,
    network_bench,
    postgres_bench,
    record,
    road,
    sandbox,
    scripted,
    shell_bench,
    startup,
    trial_bench,
    worker_bench,
)
from bench.measure import Row
from bench.protocol import compare

BENCHMARKS: Mapping[str, Callable[[], Awaitable[list[Row]]]] = {
    "startup": startup.startup,
    "read_file": road.read_file,
    "no_op": road.no_op,
    "durable": record.durable_calls,
    "delay": record.audit_delay,
    "verify": record.verify,
    "gateways": postgres_bench.durable_gateways,
    "large_record": postgres_bench.large_record,
    "approvals": postgres_bench.approvals_across_gateways,
    "network": network_bench.network,
    "shell": shell_bench.analysis_cost,
    "sandbox": sandbox.sandbox,
    "trial": trial_bench.trials,
    "commit": commit_bench.commits,
    "day": agent_day.days,
    "agent": agent_loop.agent_loops,
    "scripted": scripted.scripted,
    "load": load_bench.load,
    "pages": load_bench.pages,
    "connectors": connector_bench.connectors,
    "workers": worker_bench.workers,
    "a2a": a2a_bench.a2a,
    "mcp": compare.protocol,
}
RESULTS = Path(__file__).parent / "results" / "latest.json"


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; known are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names or BENCHMARKS:
        print(f"… {name}", file=sys.stderr)
        rows += asyncio.run(_measure(BENCHMARKS[name]))
    _show(rows)
    _save(rows)
    return 0


async def _measure(benchmark: Callable[[], Awaitable[list[Row]]]) -> list[Row]:
    return await benchmark()


def _show(rows: list[Row]) -> None:
    table = Table("what", "measured", "ratio", "p50", "p99", "promised", "", title="Toolreeve benchmarks")
    for row in rows:
        mark = {True: "✓", False: "✗", None: ""}[row.met]
        table.add_row(row.name, row.value, _times(row.ratio), _micros(row.p50), _micros(row.p99), row.target, mark)
    Console(width=120).print(table)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}×"


def _micros(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:,.1f} µs"


def _save(rows: list[Row]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
