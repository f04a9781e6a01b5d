"""A real MCP client, blocked in `tools/call` until a person answers in the browser; and one that nobody answers."""

import asyncio
import re
from typing import Any

from mcp import Client
from playwright.sync_api import expect

from tests.console.conftest import People
from tests.console.console_server import ConsoleServer, background

SETTINGS = """
[approval]
timeout = 8
"""


def call_tool(url: str, name: str, **args: Any) -> Any:
    async def run() -> Any:
        async with Client(f"{url}/mcp") as client:
            return await client.call_tool(name, args)

    return asyncio.run(run())


def test_a_person_in_the_browser_lets_a_blocked_mcp_client_continue(server: ConsoleServer, people: People) -> None:
    page = people.new("/inbox")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    call = background(lambda: call_tool(server.url, "write_file", path="mcp.txt", content="from an agent\n"))
    expect(page.locator("#sentence")).to_contain_text("mcp.txt")
    expect(page.get_by_role("button", name=re.compile("^Deny"))).to_be_enabled()
    assert not call.done()
    page.keyboard.press("a")
    page.keyboard.press("a")

    assert not call.result(timeout=60).is_error
    assert (server.workspace / "mcp.txt").read_text() == "from an agent\n"
    page.get_by_role("button", name="See the call").click()
    expect(page.get_by_role("region", name="The call")).to_contain_text("mcp.txt")


def test_a_timeout_is_called_a_timeout(server: ConsoleServer, people: People) -> None:
    page = people.new("/inbox")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    call = background(lambda: call_tool(server.url, "write_file", path="slow.txt", content="x"))
    expect(page.locator("#sentence")).to_contain_text("slow.txt")

    text = str(call.result(timeout=60))
    expect(page.get_by_role("heading", name="Nobody answered in time")).to_be_visible()
    expect(page.get_by_text("The agent was told “timeout”, not “no”.")).to_be_visible()
    assert "E_APPROVAL_TIMEOUT" in text
    assert "E_APPROVAL_DENIED" not in text
