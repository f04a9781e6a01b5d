"""A burst of unread responses takes little memory, and gives it back."""

import os
import re
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.serve.mcp.http_server import HEADERS, request
from tests.serve.raw_http import post
from toolreeve.information_flow.sessions import MOST_CHARS_HELD
from toolreeve.record.recent_results import MOST_BYTES
from toolreeve.serve.mcp.encoding import write

MIB = 1024 * 1024
CLIENTS, PIPELINED = 200, 60
KEPT = MOST_BYTES + MOST_CHARS_HELD
"""Results that the server keeps on purpose: for the console, and for the flow of information."""
TOOL = '''
from toolreeve import DangerLevel, tool


@tool(danger=DangerLevel.SAFE)
def big() -> str:
    """Say much."""
    return "x" * 530_000
'''


@dataclass(frozen=True, slots=True)
class Server:
    pid: int
    port: int

    def memory(self, key: str) -> int:
        found = re.search(rf"{key}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    def connect(self) -> socket.socket:
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(20)
        made.connect(("127.0.0.1", self.port))
        return made


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    tools, workspace = folder / "tools.py", folder / "work"
    tools.write_text(TOOL)
    workspace.mkdir()
    places = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "toolreeve", "serve", "--mcp", "--port", "0", "--workspace", str(workspace)]
    environment = {**os.environ, **places, "TOOLREEVE_TOOLS": str(tools)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = re.search(r":(\d+)/mcp", process.stderr.readline())
            assert found is not None
            yield Server(process.pid, int(found[1]))
        finally:
            process.terminate()
            process.communicate(timeout=30)


def wait_for_all(clients: list[socket.socket]) -> None:
    """Until each has heard something, or that it is cut off."""
    with selectors.DefaultSelector() as waiting:
        for client in clients:
            waiting.register(client, selectors.EVENT_READ)
        until = time.monotonic() + 60
        while waiting.get_map():
            assert time.monotonic() < until
            for key, _ in waiting.select(1):
                waiting.unregister(key.fileobj)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells what a process holds")
def test_unread_responses_are_bounded_and_their_memory_is_returned(tmp_path: Path) -> None:
    shown = {**HEADERS, "host": "127.0.0.1", "mcp-method": "tools/call", "mcp-name": "big"}
    headers = [(name.encode(), value.encode()) for name, value in shown.items()]
    call = post(headers, write(request("tools/call", {"name": "big", "arguments": {}})))
    with serving(tmp_path) as server, ExitStack() as stack:
        with server.connect() as first:
            first.sendall(call)
            assert first.recv(12) == b"HTTP/1.1 200"
        before = server.memory("VmRSS")
        clients = [stack.enter_context(server.connect()) for _ in range(CLIENTS)]
        for client in clients:
            client.sendall(call * PIPELINED)
        wait_for_all(clients)
        most = server.memory("VmHWM")
        stack.close()
        until = time.monotonic() + 20
        while (after := server.memory("VmRSS")) - before > 64 * MIB + KEPT and time.monotonic() < until:
            time.sleep(0.1)
        with server.connect() as last:
            last.sendall(call)
            assert last.recv(12) == b"HTTP/1.1 200"

    assert most - before < 160 * MIB
    assert after - before < 64 * MIB + KEPT
