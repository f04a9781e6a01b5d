"""Limits that several gateways share, in a real NATS."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.execution.actions import NO_FILES, act
from tests.execution.workers.nats_server import NatsServer
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import Caching, CircuitBreaker, RateLimit
from toolreeve.core.result import Output
from toolreeve.core.tool import bind, tool
from toolreeve.execution.limiters import LocalConcurrency
from toolreeve.execution.workers.limiters import (
    LEASE_SECONDS,
    SharedBreakers,
    SharedCaches,
    SharedConcurrency,
    SharedRates,
    SharedState,
)
from toolreeve.execution.workers.link import NatsLink, NatsSettings

SETTINGS = CircuitBreaker(failure_threshold=2, recovery_timeout=60, monitoring_period=30)


class Clock:
    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
async def states(nats: NatsServer) -> AsyncIterator[list[SharedState]]:
    """Of four gateways."""
    links = [NatsLink(NatsSettings(urls=(nats.url,)), name="test") for _ in range(4)]
    for link in links:
        await link.connect()

    async def connected(link: NatsLink) -> NatsLink:
        return link

    yield [SharedState(partial(connected, link)) for link in links]
    for link in links:
        await link.close()


async def test_a_rate_is_exact_for_all_gateways_together(states: list[SharedState]) -> None:
    rates = [SharedRates(state) for state in states]
    limit = RateLimit(calls=25, per=60)

    waits = await asyncio.gather(*(each.take("tool:ann", limit, 1_000.0) for each in rates * 15))

    assert sum(wait == 0 for wait in waits) == 25
    assert {wait for wait in waits if wait} == {60.0}
    assert await rates[0].take("tool:ann", limit, 1_061.0) == 0.0
    assert await rates[0].take("tool:bob", limit, 1_000.0) == 0.0


async def test_places_are_shared_and_given_back(states: list[SharedState]) -> None:
    clock = Clock()
    gateways = [SharedConcurrency(state, LocalConcurrency(None), clock) for state in states]
    running = most = 0

    async def call(gateway: SharedConcurrency) -> None:
        nonlocal running, most
        release = await gateway.acquire("tool", 3)
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        release()

    await asyncio.gather(*(call(gateway) for gateway in gateways * 5))

    assert most == 3


async def test_the_place_of_a_dead_gateway_is_free_after_its_lease(states: list[SharedState]) -> None:
    clock = Clock()
    dead, alive = (SharedConcurrency(state, LocalConcurrency(None), clock) for state in states[:2])
    await dead.acquire("tool", 1)
    waiting = asyncio.create_task(alive.acquire("tool", 1))
    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done

    clock.at += LEASE_SECONDS + 1

    async with asyncio.timeout(10):
        (await waiting)()


async def test_a_breaker_opens_for_all_gateways_and_one_of_them_probes(states: list[SharedState]) -> None:
    clock = Clock()
    one, other = (SharedBreakers(state, clock) for state in states[:2])
    for gateway in (one, other):
        await (await gateway.enter("tool", SETTINGS)).leave(failed=True, completed=True)

    with pytest.raises(ToolError) as refusal:
        await one.enter("tool", SETTINGS)
    assert refusal.value.code is ErrorCode.CIRCUIT_OPEN
    assert one.states() == {"tool": "open"}

    clock.at += 61
    probe = await other.enter("tool", SETTINGS)
    with pytest.raises(ToolError, match="a probe call is running"):
        await one.enter("tool", SETTINGS)
    await probe.leave(failed=False, completed=True)
    await one.enter("tool", SETTINGS)


async def test_the_probe_of_a_dead_gateway_does_not_keep_a_breaker_open(states: list[SharedState]) -> None:
    clock = Clock()
    one, dead = (SharedBreakers(state, clock) for state in states[:2])
    for _ in range(2):
        await (await one.enter("tool", SETTINGS)).leave(failed=True, completed=True)
    clock.at += 61
    await dead.enter("tool", SETTINGS)

    clock.at += 61

    await (await one.enter("tool", SETTINGS)).leave(failed=False, completed=True)
    assert one.states() == {"tool": "closed"}


async def test_a_result_is_cached_for_all_gateways_until_it_expires(states: list[SharedState]) -> None:
    clock = Clock()
    one, other = (SharedCaches(state, clock) for state in states[:2])
    made = bind(tool(danger="medium", caching=Caching(ttl=10))(act))
    called = Action(ToolCall(tool="act", args={}), made, {}, NO_FILES)

    slot = await one.open(called)
    assert slot is not None
    assert slot.output is None
    await slot.store(Output(data={"n": 1}, cost=0.5))

    found = await other.open(called)
    assert found is not None
    assert found.output == Output(data={"n": 1}, cost=0.0)
    clock.at += 11
    expired = await other.open(called)
    assert expired is not None
    assert expired.output is None


async def test_nats_that_is_gone_is_named(states: list[SharedState], nats: NatsServer) -> None:
    rates = SharedRates(states[0])
    await rates.take("tool", RateLimit(calls=1), 1_000.0)
    nats.kill()

    with pytest.raises(ToolError, match=r"shared limits \(workers\.limits\)"):
        await rates.take("tool", RateLimit(calls=1), 1_000.0)
