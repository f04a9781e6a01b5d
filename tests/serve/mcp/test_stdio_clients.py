"""The official client, in each connection mode, against our stdio servers."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from tests.serve.mcp.stdio_client import home

MODES = ("legacy", "auto", "2026-07-28")
DOCUMENTED = [
    *("bash_command", "delete_file", "extract_links", "fetch_url", "file_exists", "http_delete", "http_get"),
    *("http_post", "http_put", "list_directory", "read_file", "write_file"),
]


def started(place: Path, *args: str) -> StdioServerParameters:
    (place / "work").mkdir(exist_ok=True)
    (place / "work" / "a.txt").write_text("hello\n")
    return StdioServerParameters(command=sys.executable, args=list(args), env=home(place), cwd=place / "work")


@asynccontextmanager
async def connected(place: Path, mode: Any, *args: str, **options: Any) -> AsyncIterator[Client]:
    async with Client(started(place, *args), mode=mode, read_timeout_seconds=30, **options) as client:
        yield client


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_lists_and_calls_tools(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode, "-m", "toolreeve", "mcp") as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        read = await client.call_tool("read_file", {"path": "a.txt"})
        failed = await client.call_tool("read_file", {"path": "b.txt"})
        with pytest.raises(MCPError, match="Unknown tool: nothing"):
            await client.call_tool("nothing", {})

    hints = listed["delete_file"].annotations
    assert hints is not None
    assert hints.destructive_hint is True
    assert (read.is_error, read.structured_content or {}) == (False, (read.structured_content or {}) | {"size": 6})
    assert isinstance(read.content[0], types.TextContent)
    assert read.content[0].text == "hello\n"
    assert failed.is_error is True
    assert (failed.structured_content or {})["error"]["code"] == "E_FILE_NOT_FOUND"


@pytest.mark.parametrize("mode", MODES)
async def test_the_official_client_hears_the_progress_of_a_command(tmp_path: Path, mode: str) -> None:
    heard: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with connected(tmp_path, mode, "-m", "toolreeve", "mcp") as client:
        told = await client.call_tool("bash", {"command": "echo one; echo two"}, progress_callback=note)

    assert told.is_error is False
    assert "".join(message or "" for _, message in heard) == "one\ntwo\n"
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})


@pytest.mark.parametrize("mode", MODES)
async def test_a_person_at_the_official_client_approves_a_call(tmp_path: Path, mode: str) -> None:
    asked: list[str] = []

    async def answer(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow once"})

    async with connected(tmp_path, mode, "-m", "toolreeve", "mcp", elicitation_callback=answer) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        told = await client.call_tool("write_file", {"path": "new.txt", "content": "approved"})

    assert told.is_error is False
    assert (tmp_path / "work" / "new.txt").read_text() == "approved"
    assert len(asked) == 1
    assert "write_file" in asked[0]
    assert "wait_for_approval" not in names


async def test_the_documented_snippet_works_against_the_builtin_server(tmp_path: Path) -> None:
    parameters = started(tmp_path, "-m", "toolreeve.builtin_server")
    async with stdio_client(parameters) as (incoming, outgoing), ClientSession(incoming, outgoing) as session:
        initialized = await session.initialize()
        listed = await session.list_tools()
        read = await session.call_tool("read_file", {"path": "a.txt"})
        ran = await session.call_tool("bash_command", {"command": "echo $((6*7))"})
        pending = await session.call_tool("delete_file", {"path": "a.txt"})

    assert initialized.server_info.name == "toolreeve_builtin"
    assert sorted(tool.name for tool in listed.tools) == DOCUMENTED
    assert "E_APPROVAL_PENDING" in str(pending.content)
    assert "wait_for_approval" not in str(pending)
    content = read.structured_content or {}
    assert (content["content"], content["size"], content["exists"]) == ("hello\n", 6, True)
    assert (ran.structured_content or {})["stdout"] == "42\n"


@pytest.mark.parametrize("mode", MODES)
async def test_the_builtin_server_serves_its_twelve_tools_and_no_other(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode, "-m", "toolreeve.builtin_server") as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        with pytest.raises(MCPError, match="Unknown tool: calculate"):
            await client.call_tool("calculate", {"expression": "1"})

    assert listed == DOCUMENTED
