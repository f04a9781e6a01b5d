"""Calls through real workers: a gateway here, a NATS server and workers as processes."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import nats as nats_py
import pytest

from tests.execution.workers.fleet import POOL, SECRET, Fleet
from tests.execution.workers.nats_server import NatsServer, free_port
from toolreeve.core.errors import ErrorCode, ToolreeveError
from toolreeve.execution.workers.signing import new_key, read_key
from toolreeve.execution.workers.wire import encode_refusal, stream_of


async def test_a_call_runs_on_a_worker_and_its_result_comes_back(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    async with fleet.gateway() as reeve:
        result = await reeve.call("where")

    assert result.output == worker.pid
    assert result.output != os.getpid()


async def test_errors_of_tools_come_back_as_they_were(fleet: Fleet) -> None:
    fleet.start_worker()
    async with fleet.gateway() as reeve:
        result = await reeve.call("fails", what="broken")

    assert result.error is not None
    assert (str(result.error.code), result.error.message) == ("E_TOOL_EXEC", "RuntimeError: broken")


async def test_large_results_come_in_pieces(fleet: Fleet) -> None:
    fleet.start_worker()
    async with fleet.gateway() as reeve:
        results = await asyncio.gather(*(reeve.call("large", bytes=size) for size in (10, 524_288, 3_000_000)))

    assert [len(result.output) for result in results] == [10, 524_288, 3_000_000]


async def test_progress_comes_from_the_worker_in_order(fleet: Fleet) -> None:
    fleet.start_worker()
    async with fleet.gateway() as reeve, reeve.bus.subscribe() as events:
        assert (await reeve.call("talk", times=5)).success
        seen = []
        async for event in events:
            if event.event == "tool_progress" and event.data["text"].startswith("step"):
                seen.append(event.data["text"])
            if len(seen) == 5:
                break

    assert seen == [f"step {number}" for number in range(5)]


async def test_a_tool_of_no_pool_runs_in_this_process(fleet: Fleet) -> None:
    async with fleet.gateway() as reeve:
        assert (await reeve.call("calculate", expression="6*7")).success


async def test_cancelling_reaches_the_worker(fleet: Fleet) -> None:
    fleet.start_worker()
    async with fleet.gateway() as reeve:
        call = asyncio.create_task(reeve.call("once", number=1, seconds=30))
        await until(lambda: fleet.effects("once.log") == [1])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await reeve.call("where")).success

    assert fleet.effects("ended.log") == []


async def test_a_killed_worker_leaves_an_unknown_outcome_and_the_call_is_not_run_again(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    async with fleet.gateway() as reeve:
        call = asyncio.create_task(reeve.call("once", number=7, seconds=60))
        await until(lambda: fleet.effects("once.log") == [7])
        fleet.start_worker()
        worker.kill()
        result = await call
        assert (await reeve.call("where")).success  # the other worker is there

        assert result.error is not None
        assert result.error.code is ErrorCode.WORKER_LOST
        assert "outcome unknown" in result.error.message
        assert not result.error.retryable
        assert fleet.effects("once.log") == [7]
        [record] = await reeve.audit.recent(last_n=1, filters={"tool": "once"})
        assert record["code"] == "E_WORKER_LOST"


async def test_an_idempotent_call_of_a_killed_worker_runs_on_another_one(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    async with fleet.gateway() as reeve:
        call = asyncio.create_task(reeve.call("again", number=8, seconds=3))
        await until(lambda: fleet.effects("again.log") == [8])
        fleet.start_worker()
        worker.kill()
        result = await call

    assert result.output == "again 8"
    assert fleet.effects("again.log") == [8, 8]


async def test_a_killed_nats_server_doubles_no_call(fleet: Fleet, nats: NatsServer) -> None:
    """It forgets what was acknowledged, and delivers again what it had delivered."""
    fleet.start_worker()
    fleet.start_worker()
    async with fleet.gateway() as reeve:
        assert (await reeve.call("where")).success
        calls = [asyncio.create_task(reeve.call("once", number=number, seconds=0.3)) for number in range(40)]
        for _ in range(2):
            done = len(fleet.effects("once.log"))
            await until(lambda done=done: len(fleet.effects("once.log")) > done)  # type: ignore[misc]
            nats.kill()
            nats.start()
        results = await asyncio.gather(*calls)

    effects = fleet.effects("once.log")
    assert sorted(effects) == sorted(set(effects))
    acknowledged = [number for number, result in enumerate(results) if result.success]
    assert set(acknowledged) <= set(fleet.effects("ended.log"))
    assert all(str(result.error.code).startswith("E_WORKER_") for result in results if not result.success)


async def test_a_caller_is_told_at_once_that_a_pool_has_no_worker(fleet: Fleet) -> None:
    async with fleet.gateway() as reeve, reeve.bus.subscribe() as events:
        calling = asyncio.create_task(reeve.call("where"))
        said = ""
        async for event in events:
            if event.event == "tool_progress":
                said = event.data["text"]
                break
        fleet.start_worker()
        result = await calling

    assert said == "pool 'build' has no worker: start one with `toolreeve worker --pool build`"
    assert result.success


async def test_a_worker_says_when_it_is_ready_and_drained(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    async with fleet.gateway() as reeve:
        assert (await reeve.call("where")).success
    worker.terminate()

    assert worker.wait(30) == 0
    said = [line for line in fleet.log().splitlines() if line.startswith("toolreeve: ")]
    assert said[0].startswith("toolreeve: worker of pool 'build', 16 calls at once, NATS at nats://")
    assert said[1].startswith("toolreeve: ready as ")
    assert said[-2:] == ["toolreeve: draining; calls that still run: 0", "toolreeve: drained: every call has ended"]


async def test_a_worker_that_drains_loses_no_call(fleet: Fleet) -> None:
    first = fleet.start_worker()
    async with fleet.gateway() as reeve:
        calls = [asyncio.create_task(reeve.call("once", number=number, seconds=0.2)) for number in range(60)]
        await until(lambda: len(fleet.effects("once.log")) > 10)
        fleet.start_worker()
        first.terminate()
        results = await asyncio.gather(*calls)

    assert [result.output for result in results] == [f"once {number}" for number in range(60)]
    assert first.wait(20) == 0
    assert sorted(fleet.effects("once.log")) == list(range(60))


async def test_a_call_that_no_worker_takes_has_not_run(fleet: Fleet) -> None:
    async with fleet.gateway(queue_timeout=2.5) as reeve:
        result = await reeve.call("once", number=1)

    assert result.error is not None
    assert result.error.code is ErrorCode.WORKER_UNAVAILABLE
    assert "within 2.5 s (workers.queue_timeout); pool 'build' has no worker: start one" in result.error.message
    assert fleet.effects("once.log") == []


async def test_a_busy_pool_says_that_it_is_busy(fleet: Fleet) -> None:
    fleet.start_worker("--capacity", "1")
    async with fleet.gateway(queue_timeout=4.0) as reeve:
        first = asyncio.create_task(reeve.call("once", number=1, seconds=6.0))
        await asyncio.to_thread(fleet.wait_for, lambda: fleet.effects("once.log") == [1])
        second = await reeve.call("once", number=2)
        assert (await first).success

    assert second.error is not None
    assert "the workers of pool 'build' are busy: 1 of 1 calls run" in second.error.message


async def test_a_worker_that_had_leave_is_not_believed_that_nothing_ran(fleet: Fleet, nats: NatsServer) -> None:
    hostile = await nats_py.connect(nats.url)
    try:
        async with fleet.gateway() as reeve:
            await reeve.internals.fleet()
            pull = await hostile.jetstream().pull_subscribe_bind(POOL, stream_of("once", POOL))
            calling = asyncio.create_task(reeve.call("once", number=1))
            (message,) = await pull.fetch(1, timeout=10)
            reply = (message.headers or {})["Toolreeve-Reply"]
            assert (await hostile.request(f"{reply}.begin.evil")).data == b"+"
            await hostile.publish(f"{reply}.result.evil.0.1", encode_refusal("nothing ran"))
            result = await calling
    finally:
        await hostile.close()

    assert result.error is not None
    assert result.error.code is ErrorCode.WORKER_LOST
    assert "refused once after it had leave to run it; outcome unknown" in result.error.message


async def test_a_full_queue_refuses_further_calls(fleet: Fleet) -> None:
    async with fleet.gateway(queue_limit=3, queue_timeout=3.0) as reeve:
        results = await asyncio.gather(*(reeve.call("once", number=number) for number in range(5)))

    messages = [result.error.message for result in results if result.error is not None]
    assert sum("3 calls wait already (workers.queue_limit)" in message for message in messages) == 2
    assert sum("no worker took the call" in message for message in messages) == 3


async def test_a_worker_with_another_key_refuses_and_says_so(fleet: Fleet) -> None:
    fleet.start_worker(env={SECRET: new_key("hmac")[0]})
    async with fleet.gateway() as reeve:
        result = await reeve.call("once", number=1)

    assert result.error is not None
    assert "not signed with a key of this worker's pool (workers.pools)" in result.error.message
    assert fleet.effects("once.log") == []


async def test_ed25519_keys_work_and_a_worker_holds_only_the_public_half(tmp_path: Path, nats: NatsServer) -> None:
    fleet = Fleet(tmp_path, nats.url, kind="ed25519")
    try:
        fleet.start_worker()
        async with fleet.gateway() as reeve:
            assert (await reeve.call("once", number=1)).success
    finally:
        fleet.stop()

    assert fleet.worker_key.startswith("ed25519-public:")
    with pytest.raises(ToolreeveError, match="a gateway signs calls"):
        read_key(fleet.worker_key).sign(b"")


async def test_a_worker_with_other_tools_refuses_and_names_both_versions(fleet: Fleet) -> None:
    fleet.start_worker()
    async with fleet.gateway() as reeve:
        assert (await reeve.call("where")).success
        fleet.tools.write_text(
            fleet.tools.read_text().replace("number: int, seconds", "number: int, more: int = 0, seconds")
        )
    async with fleet.gateway() as newer:
        result = await newer.call("once", number=1)

    assert result.error is not None
    assert "'once' is defined otherwise here" in result.error.message


async def test_a_server_without_jetstream_is_named(tmp_path: Path) -> None:
    server = NatsServer(tmp_path / "plain", jetstream=False).start()
    fleet = Fleet(tmp_path, server.url)
    try:
        async with fleet.gateway() as reeve:
            result = await reeve.call("once", number=1)
    finally:
        server.stop()

    assert result.error is not None
    assert result.error.code is ErrorCode.WORKER_UNAVAILABLE
    assert "start nats-server with -js" in result.error.message


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, f"nats://127.0.0.1:{free_port()}")
    async with fleet.gateway() as reeve:
        result = await reeve.call("once", number=1)

    assert result.error is not None
    assert f"NATS at {fleet.url} (workers.url): " in result.error.message
    assert "Connect call failed" in result.error.message


async def until(ready: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not ready():  # noqa: ASYNC110 - another process tells by its files
            await asyncio.sleep(0.01)
