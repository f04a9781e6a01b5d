"""Resources go down the road like tools: decided, recorded, and for a door alone to ask."""

from typing import Any

from tests.upstream.callers import ScriptedCaller
from tests.upstream.server_tables import light
from tests.world import World
from toolreeve import ErrorCode, PermissionMode, PermissionRule
from toolreeve.config import Policy
from toolreeve.core.call import ToolCall


def reading(uri: str) -> ToolCall:
    return ToolCall(tool="s__resources/read", args={"uri": uri}, peer=ScriptedCaller())


def library(**more: Any) -> dict[str, Any]:
    listed = {"resources": [{"uri": "x://a", "name": "a"}]}
    return light({"answers": {"resources/list": listed} | more, "capabilities": {"tools": {}, "resources": {}}})


async def test_hidden_tools_take_requests_down_the_road_and_are_listed_nowhere(world: World) -> None:
    contents = {"contents": [{"uri": "x://a", "blob": "AAAA"}], "_meta": {"k": 1}}

    async with world.reeve(mcp_servers={"s": library(**{"resources/read": contents})}) as reeve:
        await reeve.fleet.resources()
        result = await reeve.run(reading("x://a"))
        recent = await reeve.audit.recent(last_n=1, filters={})

        assert result.to_mcp() == contents
        assert [name for name in (bound.spec.name for bound in reeve.tools.list()) if "/" in name] == []
        assert recent[0]["tool"] == "s__resources/read"


async def test_no_caller_but_a_door_can_mean_a_hidden_tool(world: World) -> None:
    async with world.reeve(mcp_servers={"s": library()}) as reeve:
        result = await reeve.call("s__resources/read", uri="x://a")

    assert result.error is not None
    assert result.error.code is ErrorCode.TOOL_NOT_FOUND
    assert "resources/read" not in " ".join(result.error.suggestions)


async def test_a_place_that_an_untrusted_server_does_not_list_is_asked_about(world: World) -> None:
    answer: dict[str, Any] = {"resources/read": {"contents": []}}
    for trusted, may in ((False, False), (True, True)):
        server = {**library(**answer), "trusted": trusted}
        async with world.reeve(mcp_servers={"s": server}) as reeve:
            await reeve.fleet.resources()
            listed, other = await reeve.run(reading("x://a")), await reeve.run(reading("x://secret=42"))

        assert (listed.success, other.success) == (True, may)


async def test_a_rule_that_denies_a_server_denies_its_resources(world: World) -> None:
    rules = [PermissionRule(decision="deny", tool="s__*")]

    async with world.reeve(mcp_servers={"s": library()}, policy=rules) as reeve:
        result = await reeve.run(reading("x://a"))

    assert result.error is not None
    assert result.error.code is ErrorCode.DENIED


async def test_resources_of_all_servers_are_listed_with_their_server(world: World) -> None:
    def having(*uris: str) -> dict[str, Any]:
        listed = {"resources": [{"uri": uri, "name": uri} for uri in uris]}
        return light({"answers": {"resources/list": listed}, "capabilities": {"resources": {}}})

    async with world.reeve(mcp_servers={"a": having("x://1", "x://2"), "b": having("y://1"), "c": light()}) as reeve:
        found = [(server, item["uri"]) for server, item in await reeve.fleet.resources()]
        prompts = await reeve.fleet.prompts()

    assert found == [("a", "x://1"), ("a", "x://2"), ("b", "y://1")]
    assert prompts == []


async def test_plan_mode_reads_listed_resources_and_calls_no_tool(world: World) -> None:
    """The address of one that is not listed could carry data out."""
    settings = world.settings(policy=Policy(mode=PermissionMode.PLAN.value))
    answer: dict[str, Any] = {"resources/read": {"contents": []}}

    async with world.reeve(settings=settings, mcp_servers={"s": library(**answer)}) as reeve:
        await reeve.fleet.resources()
        listed, other = await reeve.run(reading("x://a")), await reeve.run(reading("x://secret=42"))
        called = await reeve.call("s__echo")

    assert (listed.success, other.success, called.success) == (True, False, False)
