"""The documented examples of the builtin server's twelve tools."""

import json
import sys

import pytest
from mcp import Client, StdioServerParameters

from tests.documented.stage import BUILTIN, Stage, example
from toolreeve.builtin_server import server


@example("builtin: read_file")
async def read_file(stage: Stage) -> None:
    (stage.place / "a.txt").write_text("text")
    result = await stage.execute("read_file", {"path": "a.txt", "encoding": "utf-8"})
    assert (result["content"], result["size"], result["exists"]) == ("text", 4, True)


@example("builtin: write_file")
async def write_file(stage: Stage) -> None:
    params = {"path": "to/output.txt", "content": "Hello, World!", "encoding": "utf-8", "create_dirs": True}
    result = await stage.execute("write_file", params)
    assert (result["written"], result["size"], result["path"]) == (True, 13, str(stage.place / "to" / "output.txt"))


@example("builtin: delete_file")
async def delete_file(stage: Stage) -> None:
    (stage.place / "a.txt").write_text("text")
    result = await stage.execute("delete_file", {"path": "a.txt"})
    assert (result["deleted"], result["existed"]) == (True, True)
    assert not (stage.place / "a.txt").exists()


@example("builtin: list_directory")
async def list_directory(stage: Stage) -> None:
    (stage.place / "sub").mkdir()
    (stage.place / "a.txt").write_text("")
    result = await stage.execute("list_directory", {"path": ".", "recursive": False, "include_hidden": False})
    assert (result["files"], result["directories"], result["count"]) == (["a.txt"], ["sub"], 2)


@example("builtin: file_exists")
async def file_exists(stage: Stage) -> None:
    (stage.place / "a.txt").write_text("")
    result = await stage.execute("file_exists", {"path": "a.txt"})
    assert (result["exists"], result["is_file"], result["is_directory"]) == (True, True, False)


@example("builtin: http_get")
async def http_get(stage: Stage) -> None:
    params = {"url": f"{stage.url}/data", "headers": {"Authorization": "Bearer token"}, "timeout": 30}
    result = await stage.execute("http_get", params)
    assert (result["status_code"], result["success"]) == (200, True)
    assert "Link" in result["body"]


@example("builtin: http_post")
async def http_post(stage: Stage) -> None:
    params = {"url": f"{stage.url}/data", "data": {"key": "value"}, "headers": {"Content-Type": "application/json"}}
    result = await stage.execute("http_post", params)
    assert (result["status_code"], result["success"]) == (201, True)


@example("builtin: http_put")
async def http_put(stage: Stage) -> None:
    params = {"url": f"{stage.url}/resource/123", "data": {"updated": "value"}, "timeout": 30}
    assert (await stage.execute("http_put", params))["success"]


@example("builtin: http_delete")
async def http_delete(stage: Stage) -> None:
    params = {"url": f"{stage.url}/resource/123", "headers": {"Authorization": "Bearer token"}, "timeout": 30}
    assert (await stage.execute("http_delete", params))["success"]


@example("builtin: bash_command")
async def bash_command(stage: Stage) -> None:
    params = {"command": "ls -la /tmp", "timeout": 30, "working_dir": "."}
    result = await stage.execute("bash_command", params)
    assert (result["exit_code"], result["stderr"], result["success"]) == (0, "", True), result
    assert result["stdout"]


@example("builtin: fetch_url")
async def fetch_url(stage: Stage) -> None:
    result = await stage.execute("fetch_url", {"url": stage.url, "timeout": 30, "user_agent": "MyBot/1.0"})
    assert (result["status_code"], result["size"] > 0) == (200, True)
    assert result["content_type"].startswith("text/html")


@example("builtin: extract_links from HTML")
async def extract_links(stage: Stage) -> None:
    params = {"html": "<html><a href='/page'>Link</a></html>", "base_url": "https://example.com"}
    result = await stage.execute("extract_links", params)
    assert (result["links"], result["count"]) == (["https://example.com/page"], 1)
    assert result["unique_links"] == ["https://example.com/page"]


@example("builtin: extract_links from an address")
async def extract_links_by_url(stage: Stage) -> None:
    result = await stage.execute("mcp__toolreeve_builtin__extract_links", {"url": stage.url})
    assert result["output"] == [f"{stage.url}/page", f"{stage.url}/other"]


@example("builtin: long names of file tools")
async def long_names(stage: Stage) -> None:
    async with stage.trusted(mcp_servers=[BUILTIN]) as agent:
        name = "mcp__toolreeve_builtin__"
        await agent.execute_mcp_tool(f"{name}write_file", {"path": "a.txt", "content": "Hello World"})
        listed = await agent.execute_mcp_tool(f"{name}list_directory", {"path": "."})
        exists = await agent.execute_mcp_tool(f"{name}file_exists", {"path": "a.txt"})
        deleted = await agent.execute_mcp_tool(f"{name}delete_file", {"path": "a.txt"})
    assert (listed["output"], exists["output"], deleted["success"]) == (["a.txt"], "true", True)


@example("builtin: long names of HTTP tools")
async def long_http_names(stage: Stage) -> None:
    async with stage.trusted(mcp_servers=[BUILTIN]) as agent:
        for word in ("get", "post", "put", "delete"):
            extra = {"data": {"name": "Test", "value": 123}} if word in ("post", "put") else {}
            params = {"url": f"{stage.url}/x", **extra}
            assert (await agent.execute_mcp_tool(f"mcp__toolreeve_builtin__http_{word}", params))["success"]


@example("builtin: the output of a page")
async def page(stage: Stage) -> None:
    result = await stage.execute("mcp__toolreeve_builtin__fetch_url", {"url": stage.url})
    assert "Link" in result["output"]


@example("builtin: agents connect by themselves")
async def connected(stage: Stage) -> None:
    async with stage.agent() as agent:
        assert len(await agent.discover_mcp_tools(server_name="toolreeve_builtin")) == 12


@example("builtin: an empty list turns servers off")
async def turned_off(stage: Stage) -> None:
    async with stage.agent(mcp_servers=[]) as agent:
        assert agent.declared_tools() == []


@example("builtin: a custom server with a command")
async def custom(stage: Stage) -> None:
    command = {"command": sys.executable, "args": ["-P", "-m", "toolreeve.builtin_server"], "transport": "stdio"}
    async with stage.trusted(mcp_servers=[{"name": "my_custom_server", **command}]) as agent:
        assert len(await agent.discover_mcp_tools(server_name="my_custom_server")) == 12


@example("builtin: names and descriptions")
async def described(stage: Stage) -> None:
    async with stage.agent() as agent:
        tools = await agent.discover_mcp_tools(server_name="toolreeve_builtin")
    assert [tool["name"] for tool in tools if not tool["description"]] == []


@example("builtin: discovery by category")
async def by_category(stage: Stage) -> None:
    async with stage.agent() as agent:
        tools = await agent.discover_mcp_tools(server_name="toolreeve_builtin", category="file")
    assert len(tools) == 5


@example("builtin: execution with named arguments")
async def named_arguments(stage: Stage) -> None:
    (stage.place / "a.txt").write_text("text")
    async with stage.agent() as agent:
        result = await agent.execute_mcp_tool(tool_name="read_file", params={"path": "a.txt"})
    assert result.get("exists")
    assert result["size"] == 4


@example("builtin: a chain of fetching and extracting")
async def chain(stage: Stage) -> None:
    async with stage.trusted() as agent:
        results = await agent.execute_tool_chain(
            [
                {"tool_name": "fetch_url", "params": {"url": stage.url}},
                {"tool_name": "extract_links", "params": {"html": "{{previous.content}}", "base_url": stage.url}},
            ]
        )
    assert "Link" in results[0]["content"]
    assert results[1]["links"] == [f"{stage.url}/page", f"{stage.url}/other"]


@example("builtin: a chain of reading and writing")
async def copying(stage: Stage) -> None:
    (stage.place / "input.txt").write_text("passed on")
    async with stage.trusted() as agent:
        await agent.execute_tool_chain(
            [
                {"tool_name": "read_file", "params": {"path": "input.txt"}},
                {"tool_name": "write_file", "params": {"path": "output.txt", "content": "{{previous.content}}"}},
            ]
        )
    assert (stage.place / "output.txt").read_text() == "passed on"


@example("builtin: without a control protocol a write is a PermissionError")
async def unasked(stage: Stage) -> None:
    (stage.place / "data.txt").write_text("x")
    async with stage.agent() as agent:
        assert (await agent.execute_mcp_tool("mcp__toolreeve_builtin__read_file", {"path": "data.txt"}))["success"]
        params = {"path": "output.txt", "content": "data"}
        with pytest.raises(PermissionError, match=r"Tool 'write_file' \(danger=medium\) requires approval"):
            await agent.execute_mcp_tool("mcp__toolreeve_builtin__write_file", params)


@example("builtin: the server by itself, over stdio")
async def standalone(stage: Stage) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "toolreeve.builtin_server"], cwd=str(stage.place)
    )
    async with Client(command) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert len(names) == 12
    assert "bash_command" in names


@example("builtin: the server as an object")
async def imported(_: Stage) -> None:
    assert (server.name, len(server._tool_registry)) == ("toolreeve_builtin", 12)


@example("builtin: a failure has an error")
async def failing(stage: Stage) -> None:
    result = await stage.execute("read_file", {"path": "nonexistent.txt"})
    assert result["error"].startswith("File not found")


@example("builtin: read, process, write")
async def processed(stage: Stage) -> None:
    (stage.place / "input.txt").write_text("text")
    content = (await stage.execute("read_file", {"path": "input.txt"}))["content"]
    await stage.execute("write_file", {"path": "output.txt", "content": content.upper()})
    assert (stage.place / "output.txt").read_text() == "TEXT"


@example("builtin: fetch a page and count its links")
async def counted(stage: Stage) -> None:
    fetched = await stage.execute("fetch_url", {"url": stage.url})
    links = await stage.execute("extract_links", {"html": fetched["content"], "base_url": stage.url})
    assert links["count"] == 2


@example("builtin: a request that fails is no success")
async def missing(stage: Stage) -> None:
    result = await stage.execute("http_get", {"url": f"{stage.url}/missing", "timeout": 10})
    assert (result["success"], result["status_code"]) == (False, 404)
    assert json.dumps(result)
