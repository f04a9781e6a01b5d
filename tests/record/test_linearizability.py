"""Budgets, approvals and grants of several gateways: some order explains every answer."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.record.backends import store_at
from tests.record.linearizability import Operation, is_linearizable, observed
from tests.record.sql.test_grants import grant
from tests.record.test_pending import QUESTION, YES
from toolreeve.record.budget import BudgetStore
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import RecordStore

pytestmark = pytest.mark.usefixtures("database")
GATEWAYS = 4
LIMIT = 10.0


@asynccontextmanager
async def gateways(path: Path) -> AsyncIterator[list[RecordStore]]:
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(GATEWAYS):
            store = store_at(path / "t.db")
            await store.start()
            stack.push_async_callback(store.close)
            stores.append(store)
        yield stores


def budget(spent: float, request: Any) -> tuple[Any, float]:
    name, amount = request
    match name:
        case "reserve":
            return (True, spent + amount) if spent + amount <= LIMIT else (False, spent)
        case "settle":
            return None, max(0.0, spent - amount)
        case _:
            return spent, spent


async def test_a_budget_is_one_number(tmp_path: Path) -> None:
    dice = random.Random(3)

    async def act(ledger: BudgetStore) -> list[Operation]:
        done = []
        for _ in range(8):
            amount = float(dice.randrange(1, 4))
            match dice.choice(["reserve", "reserve", "settle", "spent"]):
                case "reserve":
                    done.append(await observed(("reserve", amount), ledger.reserve("day", amount, LIMIT)))
                case "settle":
                    done.append(await observed(("settle", amount), ledger.settle("day", amount, 0.0)))
                case _:
                    done.append(await observed(("spent", 0.0), ledger.spent("day")))
        return done

    async with gateways(tmp_path) as stores:
        await BudgetStore(stores[0].budget).reserve("day", 0.0, LIMIT)
        histories = await asyncio.gather(*(act(BudgetStore(store.budget)) for store in stores))

    history = [operation for each in histories for operation in each]
    assert is_linearizable(history, budget, 0.0)
    assert not is_linearizable([*history, Operation(1e9, 1e9 + 1, ("spent", 0.0), 99.0)], budget, 0.0)


def approval(state: str, request: str) -> tuple[Any, str]:
    match request:
        case "decide":
            return (True, "allowed") if state == "pending" else (False, state)
        case "withdraw":
            return (True, "withdrawn") if state in ("pending", "allowed") else (False, state)
        case "claim":
            return (True, "used") if state == "allowed" else (False, state)
        case _:
            return state, state


@pytest.mark.parametrize("seed", range(4))
async def test_an_approval_has_one_state(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)

    async def claim(pending: PendingStore, number: str) -> bool:
        return await pending.claim(number, holder="ann") is not None

    async def state(pending: PendingStore, number: str) -> str:
        row = await pending.find(number)
        assert row is not None
        return row.state

    async def act(pending: PendingStore, number: str) -> list[Operation]:
        acts: dict[str, Callable[[], Awaitable[Any]]] = {
            "decide": lambda: pending.decide(number, {**YES, "approver": "bea"}),
            "claim": lambda: claim(pending, number),
            "withdraw": lambda: pending.withdraw(number),
            "state": lambda: state(pending, number),
        }
        chosen = dice.choices(list(acts), weights=[2, 3, 1, 3], k=5)
        return [await observed(name, acts[name]()) for name in chosen]

    async with gateways(tmp_path) as stores:
        desks = [PendingStore(store.pending, lambda: 1000.0) for store in stores]
        row, _ = await desks[0].file(binding="b", holder="ann", tool="write_file", question=QUESTION)
        histories = await asyncio.gather(*(act(desk, row.id) for desk in desks))

    assert is_linearizable([each for history in histories for each in history], approval, "pending")


async def test_a_grant_is_used_as_often_as_it_says(tmp_path: Path) -> None:
    async with gateways(tmp_path) as stores:
        tables = [store.grants(lambda: 1000.0) for store in stores]
        given = grant(uses=5)
        await tables[0].add(given)
        history = await asyncio.gather(*(observed("use", table.use(given)) for table in tables for _ in range(4)))

    assert is_linearizable(history, lambda left, _: (left > 0, max(0, left - 1)), 5)
    assert [each.answer for each in history].count(True) == 5
