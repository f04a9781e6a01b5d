import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import psutil
import pytest
from mcp import Client, StdioServerParameters

from tests.serve.mcp.stdio_client import Child, envelope, home
from toolreeve.system_info import TOOLS

MODES = ("legacy", "auto", "2026-07-28")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Child]:
    with Child([sys.executable, "-m", "toolreeve.system_info"], cwd=tmp_path, env=home(tmp_path)) as child:
        yield child


@pytest.mark.parametrize("mode", MODES)
async def test_any_client_may_use_it(tmp_path: Path, mode: Any) -> None:
    command = StdioServerParameters(command=sys.executable, args=["-m", "toolreeve.system_info"], env=home(tmp_path))
    async with Client(command, mode=mode, read_timeout_seconds=30) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        told = await client.call_tool("system_info", {})

    assert names == ["system_info", "disk_info", "network_info"]
    assert (told.structured_content or {})["cpu_count"] == os.cpu_count()


def test_each_tool_reports_on_this_machine_as_declared(server: Child) -> None:
    server.initialize()

    for tool in TOOLS:
        told = server.call(tool["name"])
        assert told["isError"] is False
        jsonschema_rs.validate(tool["outputSchema"], told["structuredContent"])

    system = server.call("system_info")["structuredContent"]
    assert system["hostname"] == socket.gethostname()
    assert system["memory_total_bytes"] == psutil.virtual_memory().total
    root = [disk for disk in server.call("disk_info")["structuredContent"]["disks"] if disk["mountpoint"] == "/"]
    assert all(disk["total_bytes"] == psutil.disk_usage("/").total for disk in root)
    interfaces = server.call("network_info")["structuredContent"]["interfaces"]
    assert {each["name"] for each in interfaces} == set(psutil.net_if_addrs())


def test_arguments_and_tools_that_it_does_not_know_are_refused(server: Child) -> None:
    server.initialize()

    assert server.call("disk_info", path="/")["isError"] is True
    assert server.ask("tools/call", {"name": "format_disk"})["error"]["code"] == -32602
    assert server.ask("resources/list")["error"]["code"] == -32601


def test_it_follows_the_modern_protocol(server: Child) -> None:
    told = server.ask("server/discover", {"_meta": envelope()})["result"]

    assert (told["supportedVersions"], told["resultType"]) == (["2026-07-28"], "complete")
    assert told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "system-info"


def test_it_starts_without_the_runtime_and_ends_with_its_client(tmp_path: Path) -> None:
    program = (
        "import sys, toolreeve.system_info as server\n"
        "server.main()\n"
        "heavy = ('toolreeve.runtime.toolreeve', 'mcp', 'pydantic', 'sqlite3')\n"
        "print([module for module in sys.modules if module in heavy], file=sys.stderr)"
    )
    with Child([sys.executable, "-c", program], cwd=tmp_path, env=home(tmp_path)) as server:
        server.initialize()
        server.call("system_info")
        status, said = server.leave()

    assert (status, said.strip()) == (0, "[]")
