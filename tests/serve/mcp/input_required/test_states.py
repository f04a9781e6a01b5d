"""A request state is valid once, for its holder and its request; attacks on it."""

import asyncio
from typing import Any

import pytest

from tests.serve.mcp.input_required.workers import YES, Clock, Worker, worker, written
from tests.world import World
from toolreeve.config import Mcp
from toolreeve.core.call import Principal, Role
from toolreeve.core.errors import ConfigError
from toolreeve.serve.mcp.door import new_handlers
from toolreeve.serve.mcp.protocol import WireError


async def test_a_call_that_asks_is_answered_with_the_form_and_a_state(world: World) -> None:
    async with worker(world) as one:
        asked = await one.call()

    assert asked["resultType"] == "input_required"
    assert list(asked["inputRequests"]) == ["approval"]
    assert asked["inputRequests"]["approval"]["method"] == "elicitation/create"
    assert "write_file" in asked["inputRequests"]["approval"]["params"]["message"]
    assert not written(world)


async def test_another_worker_with_the_same_key_takes_the_answer(world: World) -> None:
    async with worker(world) as one, worker(world) as other:
        asked = await one.call()
        done = await other.call(inputResponses=YES, requestState=asked["requestState"])

    assert (done["resultType"], done["isError"]) == ("complete", False)
    assert written(world)


async def test_a_worker_with_another_key_does_not(world: World) -> None:
    async with worker(world) as one, world.reeve() as reeve:
        asked = await one.call()
        other = Worker(reeve, Clock(), (b"another key, of at least 32 bytes",))
        await other.refused(inputResponses=YES, requestState=asked["requestState"])
        other.handlers.close()

    assert not written(world)


async def test_a_state_is_good_for_one_answer(world: World) -> None:
    async with worker(world) as one, worker(world) as other:
        state = (await one.call())["requestState"]
        await one.call(inputResponses=YES, requestState=state)
        (world.workspace / "a.txt").unlink()

        await one.refused(inputResponses=YES, requestState=state)
        await other.refused(inputResponses=YES, requestState=state)

    assert not written(world)


async def test_of_two_answers_at_once_one_counts(world: World) -> None:
    no = {"approval": {"action": "decline"}}
    async with worker(world) as one, worker(world) as other:
        state = (await one.call())["requestState"]
        results = await asyncio.gather(
            one.call(inputResponses=YES, requestState=state),
            other.call(inputResponses=no, requestState=state),
            one.call(inputResponses=YES, requestState=state),
            return_exceptions=True,
        )

    assert sum(isinstance(result, WireError) for result in results) == 2


@pytest.mark.parametrize(
    "thief",
    [
        {"principal": Principal(user="eve")},
        {"principal": Principal(user="local", role=Role.ADMIN)},
        {"credential": "token-2"},
    ],
)
async def test_a_state_is_of_use_only_to_whom_it_was_given(world: World, thief: dict[str, Any]) -> None:
    async with worker(world) as one:
        state = (await one.call())["requestState"]
        await one.refused(inputResponses=YES, requestState=state, **thief)
        assert (await one.call(inputResponses=YES, requestState=state))["isError"] is False, "nothing was used up"


@pytest.mark.parametrize(
    "other",
    [
        {"name": "write_file", "arguments": {"path": "a.txt", "content": "y"}},
        {"name": "write_file", "arguments": {"path": "b.txt", "content": "x"}},
        {"name": "write_file", "arguments": {"path": "a.txt", "content": "x", "append": True}},
        {"name": "delete_file", "arguments": {"path": "a.txt", "content": "x"}},
        {"name": "write_file"},
    ],
)
async def test_a_state_is_of_use_only_for_the_request_it_was_given_for(world: World, other: dict[str, Any]) -> None:
    async with worker(world) as one:
        state = (await one.call())["requestState"]
        await one.refused(other, inputResponses=YES, requestState=state)

    assert not written(world)


async def test_a_state_that_is_too_old_is_refused(world: World) -> None:
    clock = Clock()
    async with worker(world, clock) as one:
        state = (await one.call())["requestState"]
        clock.now += 601
        await one.refused(inputResponses=YES, requestState=state)


@pytest.mark.parametrize("forged", ["", "x", "AQ" * 60, 5, True, ["a"], {"approved_by": "me"}])
async def test_a_state_that_is_made_up_is_refused(world: World, forged: Any) -> None:
    async with worker(world) as one:
        await one.refused(inputResponses=YES, requestState=forged)

    assert not written(world)


async def test_a_configured_key_that_could_be_guessed_is_refused_when_the_door_opens(world: World) -> None:
    async with world.reeve(settings=world.settings(mcp=Mcp(state_key=("short",)))) as reeve:
        with pytest.raises(ConfigError, match="key 1 has 5 characters"):
            new_handlers(reeve)
