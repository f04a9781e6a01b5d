"""Runtimes with worker pools: shared limits, commands in a worker's sandbox, and a replayed call."""

import asyncio
import os

import nats as nats_py
import pytest

from tests.execution.workers.fleet import POOL, SECRET, Fleet
from tests.execution.workers.nats_server import NatsServer
from tests.scripted.scripted_world import yes
from toolreeve import Toolreeve
from toolreeve.config import Policy, from_settings
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.context import ProgramBounds
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import RateLimit
from toolreeve.core.result import Meta
from toolreeve.core.tool import tool
from toolreeve.core.trial import Confinement
from toolreeve.execution.workers.wire import call_subject
from toolreeve.runtime.remote import new_remote_executor

LOOK = ProgramBounds(confinement=Confinement.LOOK)


def commands(fleet: Fleet) -> Toolreeve:
    """A gateway whose commands run on workers, and a person who allows what is asked."""
    os.environ[SECRET] = fleet.gateway_key
    pool = {"tools": ["shell"], "key": f"${{secret:{SECRET}}}"}
    settings = fleet.settings(pools={POOL: pool})
    object.__setattr__(settings, "policy", Policy())
    return Toolreeve(settings=from_settings(settings), approve=yes)


async def test_gateways_share_a_rate(fleet: Fleet) -> None:
    @tool(danger="safe", rate=RateLimit(calls=3, per=60))
    def limited() -> str:
        """Limited."""
        return "ran"

    os.environ[SECRET] = fleet.gateway_key
    settings = [fleet.settings(limits="shared") for _ in range(2)]
    one, other = (Toolreeve(settings=from_settings(each), tools=[limited], approve=None) for each in settings)
    async with one, other:
        results = [await reeve.call("limited") for reeve in (one, other, one, other)]

    assert [result.success for result in results] == [True, True, True, False]
    assert results[3].error is not None
    assert results[3].error.code is ErrorCode.RATE_LIMITED


async def test_a_command_runs_in_the_sandbox_of_the_worker_and_cannot_be_undone(fleet: Fleet) -> None:
    fleet.start_worker()
    async with commands(fleet) as reeve:
        looked = await reeve.call("bash", command="echo looked")
        wrote = await reeve.call("bash", command="echo text > made.txt && cat made.txt")
        undone = await reeve.call("undo", call_id=wrote.meta.call_id)

    assert looked.output == "looked\n"
    assert looked.meta.sandbox != "none"
    assert wrote.success, wrote
    assert (fleet.workspace / "made.txt").read_text() == "text\n"
    assert wrote.meta.approved_by is not None
    assert wrote.meta.notices == ["this cannot be undone: it runs on the worker pool 'build'"]
    assert not undone.success


async def test_what_may_only_look_cannot_write_on_a_worker(fleet: Fleet) -> None:
    """The verdict's confinement travels with the call, and the worker's kernel enforces it."""
    fleet.start_worker()
    reeve = commands(fleet)
    executor = new_remote_executor(reeve.configuration, None, lambda _: None)  # type: ignore[arg-type]
    args = {"command": "echo x > made.txt"}
    call = ToolCall(tool="bash", args=args)
    action = Action(call, reeve.tools.resolve("bash"), args, reeve.internals.files)

    try:
        with pytest.raises(ToolError, match=r"Read-only file system|Permission denied"):
            await executor.run(action, Meta(call_id=call.id, tool="bash", session="s"), lambda: LOOK)
    finally:
        await executor.link.close()

    assert not (fleet.workspace / "made.txt").exists()


async def test_a_replayed_call_does_not_run_again(fleet: Fleet, nats: NatsServer) -> None:
    """Even for an attacker who may publish calls: without the gateway's leave, the delivery does not begin."""
    fleet.start_worker()
    spy = await nats_py.connect(nats.url)
    captured = await spy.subscribe(call_subject("once", POOL))
    try:
        async with fleet.gateway() as reeve:
            assert (await reeve.call("once", number=1)).success
            message = await captured.next_msg(timeout=10)
            replayed = {name: value for name, value in (message.headers or {}).items() if name != "Nats-Msg-Id"}
            await spy.jetstream().publish(message.subject, message.data, headers=replayed)
            async with asyncio.timeout(20):
                assert (await reeve.call("once", number=2)).success
        await spy.flush()
    finally:
        await spy.close()

    assert sorted(fleet.effects("once.log")) == [1, 2]
