"""Under which names tools are there, and which are left out."""

from tests.upstream.pool.status import of
from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve import ErrorCode


async def test_a_server_without_a_prefix_cannot_offer_a_tool_under_another_servers_name(world: World) -> None:
    servers = {
        "git": light({"tools": [tool("status")]}),
        "bare": light({"tools": [tool("git__push"), tool("git__status"), tool("own__one")]}, prefix=""),
    }

    async with world.reeve(mcp_servers=servers) as reeve:
        assert {bound.spec.name: bound.spec.server for bound in reeve.tools.list() if bound.spec.server} == {
            "git__status": "git",
            "own__one": "bare",
        }
        assert "would refer to the server 'git'" in of(reeve, "bare").problems[0]


async def test_only_what_is_allowed_and_not_denied_is_there(world: World) -> None:
    server = light(allow=["echo", "p*", "die"], deny=["die"])

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        names = [bound.spec.name for bound in reeve.tools.list() if bound.spec.server == "s"]
        denied = await reeve.call("s__die")

    assert names == ["s__echo", "s__pid"]
    assert denied.error is not None
    assert denied.error.code is ErrorCode.TOOL_NOT_FOUND


async def test_of_two_tools_with_one_name_the_first_stays_and_the_other_is_reported(world: World) -> None:
    twice = {"tools": [tool("a b"), tool("a_b", description="another")]}
    servers = {
        "s": light(twice),
        "x": light({"tools": [tool("s__a_b"), tool("read_file"), tool("bash_command")]}, prefix=""),
    }

    async with world.reeve(mcp_servers=servers, await_servers=True) as reeve:
        both = (*of(reeve, "s").problems, *of(reeve, "x").problems)
        assert "'a b' is already called 's__a_b'" in of(reeve, "s").problems[0]
        assert any("two tools are called 'read_file'" in problem for problem in both)
        assert any("another spelling of 'bash'" in problem for problem in both)
        assert reeve.tools.resolve("read_file").spec.server is None
        assert any("'s__a_b' would refer to the server 's'" in problem for problem in both)


async def test_names_that_look_alike_are_left_out(world: World) -> None:
    offer = {"tools": [tool("reаd"), tool("re\u200bad"), tool("read")]}

    async with world.reeve(mcp_servers={"s": light(offer)}) as reeve:
        names = [bound.spec.name for bound in reeve.tools.list() if bound.spec.server == "s"]
        problems = of(reeve, "s").problems

    assert names == ["s__read"]
    assert len(problems) == 2
    assert all(problem.isascii() and problem.isprintable() for problem in problems)
