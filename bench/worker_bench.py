"""Calls through workers against bare JetStream: one at a time, and many at once."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import nats
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig
from tests.execution.workers.fleet import SECRET, Fleet
from tests.execution.workers.nats_server import NatsServer

from bench.measure import Row, percentile
from toolreeve.config import from_settings
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.result import Meta
from toolreeve.runtime.build import new_registry
from toolreeve.runtime.remote import new_remote_executor

ROUNDS = 5
ALONE = 150
AT_ONCE = 32
MANY = 1_500
WORKERS = 2
STREAM = "BARE"

Call = Callable[[], Awaitable[object]]


async def workers() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        server = NatsServer(place / "nats").start()
        try:
            async with contextlib.AsyncExitStack() as stack:
                calls = {"bare JetStream": await stack.enter_async_context(_bare(server.url))}
                for kind in ("hmac", "ed25519"):
                    once, again = await stack.enter_async_context(_ours(place / kind, server.url, kind))
                    calls |= {f"worker, {kind}": again, f"worker, {kind}, leave to begin": once}
                return await _compare(calls)
        finally:
            server.stop()


async def _compare(calls: dict[str, Call]) -> list[Row]:
    """In alternating rounds, so that a slow moment of the machine hits all."""
    alone: dict[str, list[list[float]]] = {name: [] for name in calls}
    rates: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            alone[name].append([await _timed(call) for _ in range(ALONE)])
        for name, call in calls.items():
            rates[name].append(await _rate(call))
    p50 = {name: median(percentile(times, 0.5) for times in rounds) for name, rounds in alone.items()}
    p99 = {name: median(percentile(times, 0.99) for times in rounds) for name, rounds in alone.items()}
    return [_row(name, p50, p99, rates) for name in calls]


def _row(name: str, p50: dict[str, float], p99: dict[str, float], rates: dict[str, list[float]]) -> Row:
    ratio = p50[name] / p50["bare JetStream"]
    most = {"worker, hmac": 1.5, "worker, ed25519": 1.5}.get(name, 2.0)
    rate = f"{median(rates[name]):,.0f} calls/s with {AT_ONCE} at once (best {max(rates[name]):,.0f})"
    if name == "bare JetStream":
        return Row(name=name, value=rate, p50=p50[name], p99=p99[name])
    target = f"≤ {most:g} × bare, alone"
    return Row(name=name, value=rate, ratio=ratio, p50=p50[name], p99=p99[name], target=target, met=ratio <= most)


async def _timed(call: Call) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


async def _rate(call: Call) -> float:
    left = iter(range(MANY))

    async def caller() -> None:
        for _ in left:
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(AT_ONCE)))
    return MANY / (time.perf_counter() - began)


@contextlib.asynccontextmanager
async def _ours(place: Path, url: str, kind: str) -> AsyncIterator[tuple[Call, Call]]:
    """The executor of a gateway, without its road, and workers as processes. Each kind of key has its own pool."""
    place.mkdir()
    fleet = Fleet(place, url, kind=kind, ack_wait=10.0, pool=kind)
    os.environ[SECRET] = fleet.gateway_key
    configuration = from_settings(fleet.settings())
    registry = new_registry(configuration, ())
    executor = new_remote_executor(configuration, None, lambda _: None)  # type: ignore[arg-type]

    def calling(tool: str) -> Call:
        bound = registry.resolve(tool)

        async def call() -> None:
            made = Action(ToolCall(tool=tool, args={}), bound, {"value": 1}, None)  # type: ignore[arg-type]
            await executor.run(made, Meta(call_id=made.call.id, tool=tool, session="s"))

        return call

    try:
        for _ in range(WORKERS):
            fleet.start_worker("--capacity", "64")
        await executor.connect()
        for tool in ("echo_once", "echo_again"):
            await calling(tool)()
        yield calling("echo_once"), calling("echo_again")
    finally:
        await executor.link.close()
        fleet.stop()


@contextlib.asynccontextmanager
async def _bare(url: str) -> AsyncIterator[Call]:
    """The least that a work queue with a reply can be."""
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(StreamConfig(name=STREAM, subjects=["bare"], retention=RetentionPolicy.WORK_QUEUE))
    await stream.add_consumer(STREAM, ConsumerConfig(durable_name="w", ack_policy=AckPolicy.EXPLICIT))
    waiting: dict[str, asyncio.Future[bytes]] = {}

    async def replied(message: Any) -> None:
        waiting.pop(message.subject).set_result(message.data)

    inbox = client.new_inbox()
    await client.subscribe(f"{inbox}.*", cb=replied)
    command = [sys.executable, "-m", "bench.worker_bench", url]
    processes = [subprocess.Popen(command) for _ in range(WORKERS)]  # noqa: ASYNC220 - they are only started
    numbers = iter(range(10**9))

    async def call() -> None:
        reply = f"{inbox}.{next(numbers)}"
        waiting[reply] = future = asyncio.get_running_loop().create_future()
        await stream.publish("bare", b'{"value":1}', headers={"Reply": reply})
        await future

    try:
        await call()
        yield call
    finally:
        for process in processes:
            process.kill()
            process.wait()
        await client.close()


async def serve_bare(url: str) -> None:
    client = await nats.connect(url)
    inbox = client.new_inbox()
    request = json.dumps({"batch": 64, "expires": 5_000_000_000}).encode()
    asked = 0

    async def pull() -> None:
        nonlocal asked
        asked += 64
        await client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.w", request, inbox)

    async def arrived(message: Any) -> None:
        nonlocal asked
        if message.reply:
            asked -= 1
            await client.publish(message.headers["Reply"], message.data)
            await message.ack()
        else:
            asked = 0
        if asked <= 32:
            await pull()

    await client.subscribe(inbox, cb=arrived)
    await pull()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve_bare(sys.argv[1]))
