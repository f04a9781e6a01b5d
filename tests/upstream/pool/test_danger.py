"""How dangerous a tool is: by the user's word, and by its server's only where the user trusts it."""

from typing import Any

import pytest

from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve import ErrorCode
from toolreeve.core.danger import DangerLevel


@pytest.mark.parametrize(
    ("annotations", "configured", "level", "read_only"),
    [
        ({"readOnlyHint": True}, {}, DangerLevel.HIGH, False),
        ({"readOnlyHint": True}, {"trusted": True}, DangerLevel.LOW, True),
        ({"destructiveHint": False}, {"trusted": True}, DangerLevel.MEDIUM, False),
        ({}, {"trusted": True}, DangerLevel.HIGH, False),
        ({"readOnlyHint": "yes"}, {"trusted": True}, DangerLevel.HIGH, False),
        ({"readOnlyHint": True}, {"trusted": True, "danger": {"t*": "critical"}}, DangerLevel.CRITICAL, True),
        ({}, {"danger": "safe"}, DangerLevel.SAFE, True),
        ({}, {"danger": {"t": "low", "*": "critical"}}, DangerLevel.LOW, False),
    ],
)
async def test_danger_is_what_the_user_says_then_what_a_trusted_server_says(
    world: World, annotations: dict[str, Any], configured: dict[str, Any], level: DangerLevel, *, read_only: bool
) -> None:
    server = light({"tools": [tool("t", annotations=annotations)]}, **configured)

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        spec = reeve.tools.resolve("s__t").spec

    assert (spec.danger, spec.read_only) == (level, read_only)


async def test_a_tool_of_an_untrusted_server_is_not_run_unasked_whatever_it_says(world: World) -> None:
    server = light({"tools": [tool("echo", annotations={"readOnlyHint": True, "destructiveHint": False})]})

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__echo")

    assert result.error is not None
    assert result.error.code in (ErrorCode.APPROVAL_DENIED, ErrorCode.PERMISSION, ErrorCode.APPROVAL_TIMEOUT)
