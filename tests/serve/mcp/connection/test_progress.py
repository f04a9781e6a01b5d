"""Progress and log notifications of a running call."""

import json
from typing import Any

import pytest

from tests.serve.mcp.connection.tools import TOOLS
from tests.serve.mcp.in_memory import InMemoryClient, connect
from tests.world import World
from toolreeve.core.mcp import Era, PeerError
from toolreeve.serve.mcp.connection import McpConnection
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext
from toolreeve.system_info import SystemInfoHandlers


async def test_progress_is_sent_with_increasing_numbers_if_requested(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        await client.initialize()
        await client.ask("tools/call", {"name": "steps", "arguments": {}, "_meta": {"progressToken": 7}})
        told, client.heard = client.heard, []
        await client.ask("tools/call", {"name": "steps", "arguments": {}})

    assert [(each["method"], each["params"]) for each in told] == [
        ("notifications/progress", {"message": f"step {number}", "progressToken": 7, "progress": number + 1})
        for number in range(3)
    ]
    assert client.heard == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([0, 1, 2.5], [0, 1, 2.5]),
        ([5, 5, 4, 9], [5, 6, 7, 9]),
        ([None, None, 0], [1, 2, 3]),
        ([-2, "x", 7], [-2, -1, 7]),
    ],
)
async def test_progress_grows_whatever_is_reported(given: list[Any], told: list[float]) -> None:
    client = InMemoryClient()
    client.connection = McpConnection(SystemInfoHandlers(), client, session="one")
    sender = ClientInfo(view=None, era=Era.LEGACY, session="one")  # type: ignore[arg-type]
    context = RequestContext(sender, client.connection, progress_token="t")

    for number in given:
        await context.notify("notifications/progress", {} if number is None else {"progress": number})

    assert [json.loads(client.lines.get_nowait())["params"]["progress"] for _ in given] == told


@pytest.mark.parametrize(
    ("least", "told"), [(None, []), ("debug", ["debug", "error"]), ("warning", ["error"]), ("emergency", [])]
)
async def test_log_lines_below_the_requested_level_are_not_sent(least: str | None, told: list[str]) -> None:
    client = InMemoryClient()
    client.connection = McpConnection(SystemInfoHandlers(), client, session="one")
    context = RequestContext(ClientInfo(view=None, era=Era.LEGACY, session="one", log_level=least), client.connection)  # type: ignore[arg-type]

    for level in ("debug", "error", "loud", 7):
        await context.notify("notifications/message", {"level": level, "data": "x"})

    assert [json.loads(client.lines.get_nowait())["params"]["level"] for _ in told] == told
    assert client.lines.empty()


async def test_an_invalid_log_level_is_refused(world: World) -> None:
    async with connect(world.reeve()) as client:
        await client.initialize()

        assert (await client.ask("logging/setLevel", {"level": "warning"}))["result"] == {}
        assert (await client.ask("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602


async def test_a_caller_hears_nothing_more_once_it_is_answered() -> None:
    client = InMemoryClient()
    client.connection = McpConnection(SystemInfoHandlers(), client, session="one")
    sender = ClientInfo(view=None, era=Era.LEGACY, session="one", log_level="info")  # type: ignore[arg-type]
    context = RequestContext(sender, client.connection, progress_token=1)
    context.closed = True

    await context.notify("notifications/progress", {"message": "late"})
    with pytest.raises(PeerError):
        await context.request("roots/list", {})

    assert client.lines.empty()
