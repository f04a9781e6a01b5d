"""The MCP Inspector, a client that others wrote, against both of our doors."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conformance.gateway import FIXTURE, gateway
from tests.peers.programs import NODE, PACKAGES

INSPECTOR = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"
TOOL_FAILED = 5


def inspect(place: Path, *words: str, status: int = 0) -> Any:
    home = place / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [NODE, INSPECTOR, "--cli", *words],
        cwd=place,
        env={**os.environ, "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


def test_the_inspector_lists_and_calls_over_stdio(tmp_path: Path) -> None:
    door = (sys.executable, "-m", "toolreeve", "mcp", "--tools", "all")

    listed = inspect(tmp_path, *door, "--method", "tools/list")
    call = ("--method", "tools/call", "--tool-name")
    called = inspect(tmp_path, *door, *call, "calculate", "--tool-arg", "expression=6*7")
    failed = inspect(tmp_path, *door, *call, "read_file", "--tool-arg", "path=nothing", status=TOOL_FAILED)

    assert {"read_file", "bash", "calculate"} <= {each["name"] for each in listed["tools"]}
    assert called["structuredContent"] == {"expression": "6*7", "result": 42}
    assert failed["structuredContent"]["error"]["code"] == "E_FILE_NOT_FOUND"


def test_the_inspector_lists_and_calls_over_http_through_the_gateway(tmp_path: Path) -> None:
    with gateway({"command": sys.executable, "args": [str(FIXTURE), "stdio"]}, tmp_path) as url:
        listed = inspect(tmp_path, url, "--method", "tools/list")
        called = inspect(tmp_path, url, "--method", "tools/call", "--tool-name", "test_simple_text")
        read = inspect(tmp_path, url, "--method", "resources/read", "--uri", "test://static-text")

    assert "test_simple_text" in {each["name"] for each in listed["tools"]}
    assert called["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]
    assert read["contents"][0]["text"] == "This is the content of test://static-text."
