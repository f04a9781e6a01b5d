"""A call that needs approval runs only when approved, with the approved arguments."""

from typing import Any

from tests.pipeline.tools import change
from tests.world import World
from toolreeve import ErrorCode


async def test_a_call_that_needs_approval_is_refused_without_a_channel(world: World) -> None:
    async with world.reeve(tools=[change]) as reeve:
        result = await reeve.call("change")

    assert result.error is not None
    assert result.error.code is ErrorCode.PERMISSION
    assert "Tool 'change' (danger=medium) requires approval" in result.error.message


async def test_an_approved_call_runs_and_says_who_approved(world: World) -> None:
    async def approve(request: Any) -> bool:
        return bool(request.tool == "change")

    async with world.reeve(tools=[change], approve=approve) as reeve:
        result = await reeve.call("change", what="it")

    assert result.output == "changed it"
    assert result.meta.approved_by


async def test_a_refused_call_does_not_run(world: World) -> None:
    async def refuse(_: Any) -> bool:
        return False

    async with world.reeve(tools=[change], approve=refuse) as reeve:
        result = await reeve.call("change")

    assert result.error is not None
    assert result.error.code is ErrorCode.APPROVAL_DENIED
    assert result.meta.attempts == 0


async def test_edited_arguments_are_validated_again(world: World) -> None:
    async def edit(request: Any) -> Any:
        return request.allow(args={"what": ["not", "text"]})

    async with world.reeve(tools=[change], approve=edit) as reeve:
        result = await reeve.call("change", what="it")

    assert result.error is not None
    assert result.error.code is ErrorCode.INVALID_PARAMS


async def test_edited_arguments_are_the_ones_that_run_and_are_recorded(world: World) -> None:
    async def edit(request: Any) -> Any:
        return request.allow(args={"what": "something else"})

    async with world.reeve(tools=[change], approve=edit) as reeve:
        result = await reeve.call("change", what="it")
        records = await reeve.audit.show(result.meta.call_id)

    assert result.output == "changed something else"
    assert records[-1].body["args"] == {"what": "something else"}
