"""Servers on the web behind the runtime: found, called, lost and found again, and away where they ask for a login."""

from typing import Any

import pytest

from tests.network import Answer, Received, web_server
from tests.upstream.http_servers import GREETING, as_json, result, served
from tests.upstream.oauth_server import Browser, OAuthServer
from tests.world import World
from toolreeve.core import json
from toolreeve.core.errors import ErrorCode

TOOL: dict[str, Any] = {"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}


class Forgetful:
    """A server of the legacy era that forgets its first session when a tool is called in it."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def __call__(self, got: Received) -> Answer:
        if got.method != "POST":
            return Answer(status=405)
        message = json.loads(got.body)
        self.methods.append(message["method"])
        begun = self.methods.count("initialize")
        match message["method"]:
            case "initialize":
                return as_json(result(got.body, **GREETING), headers={"mcp-session-id": f"session-{begun}"})
            case "tools/list":
                return as_json(result(got.body, tools=[TOOL]))
            case "tools/call" if got.headers["mcp-session-id"] == "session-1":
                return Answer(status=404)
            case "tools/call":
                return as_json(result(got.body, content=[{"type": "text", "text": "hello"}]))
            case "server/discover":
                return Answer(status=400)
        return Answer(status=202, body=b"")


async def test_a_session_that_was_lost_is_begun_again_and_a_harmless_call_repeated(world: World) -> None:
    server = Forgetful()
    async with web_server(server) as web:
        table = {"url": web.url("/mcp"), "danger": "safe"}
        async with world.reeve(mcp_servers={"web": table}) as reeve:
            answer = await reeve.call("web__greet")

    assert answer.output == "hello"
    assert server.methods.count("initialize") == 2
    assert server.methods.count("tools/call") == 2


async def test_a_call_that_may_do_harm_is_not_repeated_but_the_next_one_succeeds(world: World) -> None:
    server = Forgetful()
    async with web_server(server) as web:
        table = {"url": web.url("/mcp"), "danger": "low"}
        async with world.reeve(mcp_servers={"web": table}) as reeve:
            first = await reeve.call("web__greet")
            second = await reeve.call("web__greet")

    assert first.error is not None
    assert first.error.code is ErrorCode.UPSTREAM
    assert "ended the session" in first.error.message
    assert second.output == "hello"


@pytest.mark.parametrize("is_there", [True, False])
async def test_a_server_that_requires_a_login_is_unavailable_until_the_user_logs_in(
    world: World, is_there: bool
) -> None:
    browser = Browser()
    async with served(OAuthServer().application()) as origin:
        table = {"url": f"{origin}/mcp"}
        authorize = browser if is_there else None
        async with world.reeve(mcp_servers={"web": table}, mcp_authorize=authorize) as reeve:
            (status,) = reeve.fleet.status()

    assert (status.state == "up") is is_there
    assert ("toolreeve servers login web" in status.problem) is not is_there
    assert len(browser.urls) == int(is_there)
