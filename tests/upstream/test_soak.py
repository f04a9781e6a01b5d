"""Twenty servers, five thousand calls, and servers that are killed at random all the while."""

import asyncio
import os
import random
import signal
from collections import Counter
from pathlib import Path

from tests.upstream.server_tables import descendants, light, tool
from tests.world import World
from toolreeve import ErrorCode, Toolreeve, ToolResult
from toolreeve.core.call import ToolCall

SERVERS = 20
CALLS = 5_000
CALLERS = 50
KILLED_EVERY = 60
OFFER = {"tools": [tool("echo"), tool("pid")]}
MOST_GROWTH = 8 << 20


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def memory() -> int:
    """Bytes of this process that are resident."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Killer:
    """Ends a server of its choice now and then; the same ones in every run."""

    def __init__(self, reeve: Toolreeve, seed: int) -> None:
        self._reeve, self._chance = reeve, random.Random(seed)
        self.killed = 0

    async def strike(self) -> None:
        name = f"s{self._chance.randrange(SERVERS)}"
        result = await self._reeve.call(f"{name}__pid")
        if result.success:
            try:
                os.kill(int(result.output), signal.SIGKILL)
                self.killed += 1
            except ProcessLookupError:
                return


async def work(reeve: Toolreeve, killer: Killer, numbers: range) -> list[ToolResult]:
    results = []
    for number in numbers:
        name = f"s{number % SERVERS}__echo"
        results.append(await reeve.run(ToolCall(tool=name, args={"number": number}, timeout=20.0)))
        if number % KILLED_EVERY == 0:
            await killer.strike()
    return results


async def round_of(reeve: Toolreeve, killer: Killer, start: int, end: int) -> list[ToolResult]:
    share = (end - start) // CALLERS
    jobs = [work(reeve, killer, range(first, first + share)) for first in range(start, end, share)]
    return [result for done in await asyncio.gather(*jobs) for result in done]


async def test_every_call_is_answered_and_nothing_leaks_while_servers_die(world: World) -> None:
    # Half of the servers may be called twice by the user's word; the other half must fail in plain words instead.
    tables = {f"s{number}": light(OFFER, danger="safe" if number % 2 else "low") for number in range(SERVERS)}
    before, children = descriptors(), descendants()

    async with world.reeve(mcp_servers=tables) as reeve:
        killer = Killer(reeve, seed=5)
        results = await round_of(reeve, killer, 0, CALLS // 2)
        held, settled = descriptors(), memory()
        results += await round_of(reeve, killer, CALLS // 2, CALLS)
        grown, opened = memory() - settled, descriptors() - held
        states = Counter(status.state for status in reeve.fleet.status())

    assert len(results) == CALLS
    assert killer.killed > CALLS // KILLED_EVERY // 2
    assert {result.error.code for result in results if result.error} <= {ErrorCode.UPSTREAM}
    assert all(_answers_its_own(result, number) for number, result in enumerate(results))
    assert states["failed"] == 0
    assert grown < MOST_GROWTH
    assert abs(opened) <= SERVERS * 5
    assert (descriptors(), descendants() - children) == (before, set())


def _answers_its_own(result: ToolResult, number: int) -> bool:
    return not result.success or result.data == {"number": number}
