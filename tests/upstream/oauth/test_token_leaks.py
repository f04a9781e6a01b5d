"""A server that repeats our tokens: they are redacted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.upstream.callers import ScriptedCaller
from tests.upstream.http_servers import served
from tests.upstream.oauth_server import Browser, OAuthServer
from tests.upstream.server_tables import tool
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.core.call import ToolCall

SECRET = "secret-"


@asynccontextmanager
async def telling(world: World, oauth_server: OAuthServer) -> AsyncIterator[Toolreeve]:
    async with served(oauth_server.application()) as origin:
        servers = {"web": {"url": f"{origin}/mcp", "danger": "safe"}}
        async with world.reeve(mcp_servers=servers, mcp_authorize=Browser()) as reeve:
            yield reeve


async def test_a_token_does_not_come_back_in_answers_errors_or_progress(world: World) -> None:
    person = ScriptedCaller(wants_progress=True)
    oauth_server = OAuthServer(tools=[tool("tell"), tool("fail")])
    async with telling(world, oauth_server) as reeve:
        told = await reeve.run(ToolCall(tool="web__tell", args={}, peer=person))
        failed = await reeve.run(ToolCall(tool="web__fail", args={}, peer=person))

    assert told.to_mcp()["content"] == [{"type": "text", "text": "Bearer [redacted]"}]
    assert told.data == {"seen": ["Bearer [redacted]", "[redacted]"]}
    assert failed.error is not None
    assert failed.error.detail["jsonrpc"] == {
        "code": -7,
        "message": "not with Bearer [redacted]",
        "data": {"seen": ["Bearer [redacted]", "[redacted]"]},
    }
    assert [params["message"] for _, params in person.told] == ["with Bearer [redacted] and [redacted]"] * 2


async def test_a_token_that_was_renewed_meanwhile_does_not_come_back_either(world: World) -> None:
    oauth_server = OAuthServer(tools=[tool("tell")])
    async with telling(world, oauth_server) as reeve:
        oauth_server.valid.clear()
        told = await reeve.call("web__tell")

    assert len(oauth_server.exchanged) == 2
    assert SECRET not in repr(told)


async def test_what_a_server_says_of_its_tools_holds_no_token(world: World) -> None:
    oauth_server = OAuthServer(tools=[tool("t", description="use RENEWAL")])
    async with telling(world, oauth_server) as reeve:
        shown = reeve.tools.resolve("web__t").spec

    assert shown.description == "use [redacted]"
    assert SECRET not in repr(shown.declared)
