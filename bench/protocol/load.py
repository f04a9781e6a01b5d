"""Load generation: calls per second and CPU per call, with a minimal client.

The server is its own process; its CPU time is read from the kernel, without the upstream servers it started.
"""

import json
import os
import select
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What one call cost in wall time and in CPU of the server, in seconds."""

    wall: float
    cpu: float


class Target(Protocol):
    """Something that can be called many times."""

    process: subprocess.Popen[bytes]

    def exchange(self, calls: int, together: int) -> None: ...

    def close(self) -> None: ...


def measure(target: Target, calls: int, together: int) -> Spent:
    before, began = _cpu(target.process.pid), time.perf_counter()
    target.exchange(calls, together)
    wall = time.perf_counter() - began
    return Spent(wall / calls, (_cpu(target.process.pid) - before) / calls)


def _cpu(pid: int) -> float:
    used = psutil.Process(pid).cpu_times()
    return used.user + used.system


def environment(**more: str) -> dict[str, str]:
    """The environment of a person: bytecode is written."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **more}


class OverStdio:
    """A server on pipes, in the legacy era."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        tool: str = "echo",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env=dict(env or environment()),
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        self._rest = b""
        self._number = 0
        self._tool = tool

    def initialize(self) -> "OverStdio":
        client = {"name": "bench", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        self.ask("initialize", params)
        self._write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.ask("tools/list", {})
        return self

    def ask(self, method: str, params: Mapping[str, Any]) -> Any:
        self._write(self._request(method, params))
        while True:
            for line in self._lines():
                answer = json.loads(line)
                if answer.get("id") == self._number:
                    if "result" not in answer:
                        raise RuntimeError(f"{method}: {answer}")
                    return answer["result"]

    def exchange(self, calls: int, together: int) -> None:
        request = {"name": self._tool, "arguments": {"text": "hello"}}
        waiting = 0
        sent = done = 0
        while done < calls:
            batch = min(together - waiting, calls - sent)
            if batch:
                self._write(b"".join(self._request("tools/call", request) for _ in range(batch)))
                sent += batch
                waiting += batch
            for line in self._lines():
                if b'"id"' not in line:
                    continue
                if b'"hello"' not in line:
                    raise RuntimeError(line.decode())
                done += 1
                waiting -= 1

    def _request(self, method: str, params: Mapping[str, Any]) -> bytes:
        self._number += 1
        return json.dumps({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}).encode() + b"\n"

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._in, view) :]

    def _lines(self) -> list[bytes]:
        while True:
            if not select.select([self._out], [], [], TIMEOUT)[0]:
                raise TimeoutError("the server does not answer")
            data = os.read(self._out, 1 << 20)
            if not data:
                raise RuntimeError("the server ended")
            *lines, self._rest = (self._rest + data).split(b"\n")
            if lines:
                return lines

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


class OverHttp:
    """A server at /mcp, in the modern era, over persistent connections."""

    def __init__(self, command: Sequence[str], port: int, *, env: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(env or environment())
        )
        self._port = port
        self._await_listener()
        params = {"name": "echo", "arguments": {"text": "hello"}, "_meta": MODERN_META}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\naccept: application/json, text/event-stream\r\n"
            "content-type: application/json\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\n"
            f"mcp-name: echo\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self._request = head.encode() + body

    def _await_listener(self) -> None:
        until = time.monotonic() + TIMEOUT
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError("the server does not listen")

    def exchange(self, calls: int, together: int) -> None:
        """Over connections of its own: servers close what has been idle for some seconds."""
        with ExitStack() as closing:
            place = "127.0.0.1", self._port
            connections = [closing.enter_context(socket.create_connection(place)) for _ in range(together)]
            self._exchange(connections, calls)

    def _exchange(self, connections: Sequence[socket.socket], calls: int) -> None:
        busy = dict.fromkeys(connections, b"")
        sent = min(len(connections), calls)
        for connection in list(busy)[:sent]:
            connection.sendall(self._request)
        done = 0
        while done < calls:
            ready, _, _ = select.select(list(busy), [], [], TIMEOUT)
            if not ready:
                raise TimeoutError("the server does not answer")
            for connection in ready:
                busy[connection] += _received(connection)
                if not _whole(busy[connection]):
                    continue
                busy[connection] = b""
                done += 1
                if sent < calls:
                    connection.sendall(self._request)
                    sent += 1

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


def _received(connection: socket.socket) -> bytes:
    if not (data := connection.recv(1 << 16)):
        raise RuntimeError("the server closed the connection")
    return data


def _whole(answer: bytes) -> bool:
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    if b" 200 " not in head[:20]:
        raise RuntimeError(answer[:500].decode(errors="replace"))
    name = b"content-length:"
    lengths = [line[len(name) :] for line in head.lower().split(b"\r\n") if line.startswith(name)]
    if lengths:
        return len(body) >= int(lengths[0])
    return body.endswith(b"0\r\n\r\n")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
