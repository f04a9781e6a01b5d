import asyncio
import math
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record.backends import store_at, url_of
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.limits import RateLimit
from toolreeve.record.budget import BudgetStore, ceiling, charge
from toolreeve.record.store import RecordStore

pytestmark = pytest.mark.usefixtures("database")

NOW = 1.7e9


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RecordStore]:
    store = store_at(tmp_path / "record.db")
    await store.start()
    yield store
    await store.close()


async def test_a_hundred_concurrent_calls_cannot_overspend(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)

    admitted = await asyncio.gather(*(ledger.reserve("session:a", 0.1, 1.0) for _ in range(100)))

    assert admitted.count(True) == 10
    assert await ledger.spent("session:a") == 1.0


async def test_settling_gives_back_what_was_not_spent(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)
    assert await ledger.reserve("a", 0.8, 1.0)
    assert not await ledger.reserve("a", 0.5, 1.0)

    await ledger.settle("a", 0.8, 0.3)

    assert await ledger.spent("a") == 0.3
    assert await ledger.reserve("a", 0.7, 1.0)


async def test_what_was_really_spent_is_counted_even_beyond_the_limit(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)
    await ledger.reserve("a", 0.5, 1.0)

    await ledger.settle("a", 0.5, 2.5)

    assert await ledger.spent("a") == 2.5
    assert not await ledger.reserve("a", 0.01, 1.0)


async def test_scopes_do_not_touch_each_other(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)

    assert await ledger.reserve("a", 1, 1)
    assert await ledger.reserve("b", 1, 1)
    assert await ledger.spent("never heard of") == 0


async def test_without_a_limit_everything_fits_and_is_counted(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)

    assert await ledger.reserve("a", 1_000_000, None)
    assert await ledger.spent("a") == 1_000_000


async def test_cents_do_not_drift(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)

    for _ in range(30):
        assert await ledger.reserve("a", 0.1, 3.0)

    assert await ledger.spent("a") == 3.0
    assert not await ledger.reserve("a", 0.000001, 3.0)


async def test_no_number_of_tiny_costs_is_free(store: RecordStore) -> None:
    ledger = BudgetStore(store.budget)

    assert await ledger.reserve("a", 1e-7, 1e-6)
    assert not await ledger.reserve("a", 1e-7, 1e-6)


@given(st.integers(min_value=0, max_value=10**12))
def test_an_amount_of_whole_millionths_is_charged_exactly(micros: int) -> None:
    assert charge(micros / 1_000_000) == ceiling(micros / 1_000_000) == micros


@pytest.mark.parametrize("amount", [-0.01, math.nan, math.inf, 1e10])
async def test_an_invalid_amount_is_refused(store: RecordStore, amount: float) -> None:
    ledger = BudgetStore(store.budget)

    with pytest.raises(ToolreeveError, match="a cost must lie between"):
        await ledger.reserve("a", amount, 1.0)
    with pytest.raises(ToolreeveError, match="a cost must lie between"):
        await ledger.settle("a", 0.0, amount)
    assert await ledger.spent("a") == 0


@pytest.mark.parametrize("limit", [-1.0, math.nan])
async def test_an_invalid_limit_is_refused(store: RecordStore, limit: float) -> None:
    with pytest.raises(ToolreeveError, match="a budget limit must be"):
        await BudgetStore(store.budget).reserve("a", 0.1, limit)


async def test_spending_and_calls_survive_a_restart(tmp_path: Path) -> None:
    limit = RateLimit(calls=2, per=60)
    for _ in range(2):
        store = store_at(tmp_path / "record.db")
        await store.start()
        assert await BudgetStore(store.budget).reserve("a", 0.5, 1.0)
        assert await BudgetStore(store.budget).take("fetch:ann", limit, NOW) == 0
        await store.close()

    store = store_at(tmp_path / "record.db")
    await store.start()
    assert await BudgetStore(store.budget).spent("a") == 1.0
    assert not await BudgetStore(store.budget).reserve("a", 0.5, 1.0)
    assert await BudgetStore(store.budget).take("fetch:ann", limit, NOW + 1) == pytest.approx(59, abs=0.01)
    await store.close()


async def test_a_hundred_concurrent_calls_cannot_exceed_the_rate(store: RecordStore) -> None:
    ledger, limit = BudgetStore(store.budget), RateLimit(calls=7, per=60)

    waits = await asyncio.gather(*(ledger.take("fetch:ann", limit, NOW) for _ in range(100)))

    assert waits.count(0.0) == 7
    assert await ledger.take("fetch:bob", limit, NOW) == 0
    assert await ledger.take("fetch:ann", limit, NOW + 61) == 0


async def test_a_refused_call_does_not_lengthen_the_wait(store: RecordStore) -> None:
    ledger, limit = BudgetStore(store.budget), RateLimit(calls=1, per=60)
    await ledger.take("a", limit, NOW)

    for later in (10, 20, 30):
        await ledger.take("a", limit, NOW + later)

    assert await ledger.take("a", limit, NOW + 61) == 0


SPENDER = """
import asyncio, sys
from pathlib import Path
from toolreeve.core.limits import RateLimit
from toolreeve.record.budget import BudgetStore
from toolreeve.record.store import open_store

async def main() -> None:
    store = open_store(Path(sys.argv[1]), sys.argv[2])
    await store.start()
    ledger = BudgetStore(store.budget)
    spent = await asyncio.gather(*(ledger.reserve("shared", 0.25, 10.0) for _ in range(60)))
    taken = await asyncio.gather(*(ledger.take("shared", RateLimit(calls=30, per=60), 1.7e9) for _ in range(60)))
    print(spent.count(True), taken.count(0.0), flush=True)
    if len(sys.argv) > 3:
        sys.stdin.read()
    await store.close()

asyncio.run(main())
"""


def spender(path: Path, *extra: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SPENDER, str(path), url_of(path), *extra],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_two_processes_together_cannot_overspend_or_exceed_the_rate(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    store = store_at(path)
    await store.start()
    processes = [spender(path), spender(path)]

    counts = [tuple(map(int, process.communicate(timeout=60)[0].split())) for process in processes]

    assert [sum(column) for column in zip(*counts, strict=True)] == [40, 30]
    assert await BudgetStore(store.budget).spent("shared") == 10.0
    await store.close()


async def test_what_a_killed_process_had_reserved_stays_counted(tmp_path: Path) -> None:
    path = tmp_path / "record.db"
    process = spender(path, "wait")
    assert process.stdout is not None
    assert process.stdout.readline() == "40 30\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)

    store = store_at(path)
    await store.start()

    assert await BudgetStore(store.budget).spent("shared") == 10.0
    assert not await BudgetStore(store.budget).reserve("shared", 0.25, 10.0)
    await store.close()
