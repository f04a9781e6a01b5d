"""`initialize` in the legacy era."""

import pytest

from tests.serve.mcp.connection.tools import TOOLS
from tests.serve.mcp.in_memory import connect
from tests.serve.mcp.stdio_client import CLIENT
from tests.world import World


async def test_initialize_identifies_the_server_and_tools_follow(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        initialized = (await client.initialize())["result"]
        listed = (await client.ask("tools/list"))["result"]["tools"]
        said = await client.call("echo", text="hello")

    assert (initialized["protocolVersion"], initialized["serverInfo"]["name"]) == ("2025-11-25", "toolreeve")
    assert initialized["capabilities"] == {"tools": {"listChanged": True}}
    assert "echo" in [each["name"] for each in listed]
    assert said == {
        "content": [{"type": "text", "text": "hello"}],
        "structuredContent": {"output": "hello"},
        "isError": False,
    }


@pytest.mark.parametrize(
    ("requested", "chosen"),
    [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")],
)
async def test_a_version_that_we_do_not_know_is_answered_with_one_that_we_do(
    world: World, requested: str, chosen: str
) -> None:
    async with connect(world.reeve()) as client:
        params = {"protocolVersion": requested, "capabilities": {}, "clientInfo": CLIENT}

        assert (await client.ask("initialize", params))["result"]["protocolVersion"] == chosen


async def test_requests_sent_right_behind_the_handshake_are_served(world: World) -> None:
    async with connect(world.reeve(tools=TOOLS)) as client:
        greeting = client.begin(
            "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        )
        call = client.begin("tools/call", {"name": "echo", "arguments": {"text": "early"}})

        assert "result" in await client.answer_to(greeting)
        assert (await client.answer_to(call))["result"]["isError"] is False


@pytest.mark.parametrize(("method", "code"), [("tools/list", -32600), ("server/discover", -32601), ("no/such", -32601)])
async def test_nothing_is_served_before_the_handshake(world: World, method: str, code: int) -> None:
    async with connect(world.reeve()) as client:
        assert (await client.ask(method))["error"]["code"] == code
        assert (await client.ask("ping"))["result"] == {}


async def test_the_handshake_is_made_once(world: World) -> None:
    async with connect(world.reeve()) as client:
        await client.initialize()

        assert (await client.initialize())["error"]["code"] == -32600


@pytest.mark.parametrize("missing", ["protocolVersion", "capabilities", "clientInfo"])
async def test_a_handshake_that_lacks_something_is_refused_and_can_be_made_again(world: World, missing: str) -> None:
    async with connect(world.reeve()) as client:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
        refused = await client.ask("initialize", {key: params[key] for key in params if key != missing})

        assert refused["error"]["code"] == -32602
        assert missing in refused["error"]["message"]
        assert "result" in await client.initialize()
