"""Probes of the HTTP server: sessions, framing, unread responses, foreign targets, bodies after refusals.

A real server on loopback, a free port; its own memory is read from /proc.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.attacks.probes.testbed import Testbed, Verdict, judge, open_verdict, probe
from toolreeve.config import Serve
from toolreeve.tools.text import PAGE_BYTES

TOKENS = {"ada": "7f2c90d1e4b85a36-of-ada", "viewer": "b1946ac92492d234-of-viewer"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "probes", "version": "1"}},
}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
SESSIONS = 1100
TIMEOUT = 15
UNREAD = 240


class Door:
    """A server that runs, and how to speak to it byte by byte."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid

    def request(
        self,
        body: object,
        *,
        who: str = "ada",
        target: str = "/mcp",
        version: str = "1.1",
        extra: str = "",
        host: str = "",
    ) -> bytes:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = (
            f"POST {target} HTTP/{version}\r\nHost: {host or f'127.0.0.1:{self.port}'}\r\n"
            f"Authorization: Bearer {TOKENS[who]}\r\n"
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
            f"{extra}Content-Length: {len(text)}\r\n\r\n"
        )
        return head.encode() + text

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def status(self, data: bytes, timeout: float = TIMEOUT) -> int:
        """The status of the first answer; 0 if none comes."""
        reader, writer = await self.connect()
        writer.write(data)
        try:
            line = await asyncio.wait_for(reader.readline(), timeout)
        except (TimeoutError, OSError):
            return 0
        finally:
            writer.close()
        return int(line.split()[1]) if line.startswith(b"HTTP/") else 0

    def resident_mb(self) -> int:
        with open(f"/proc/{self.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) >> 10


@asynccontextmanager
async def serving(testbed: Testbed) -> AsyncIterator[Door]:
    configuration = testbed.home / ".config" / "toolreeve"
    configuration.mkdir(parents=True)
    tables = [
        f'[[serve.tokens]]\nsha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\nuser = "{who}"\n'
        f'role = "{"viewer" if who == "viewer" else "operator"}"\n'
        for who, token in TOKENS.items()
    ]
    (configuration / "toolreeve.toml").write_text("\n".join(tables))
    environment = {**os.environ, "HOME": str(testbed.home), "TOOLREEVE_STATE_DIR": str(testbed.top / "state")}
    process = subprocess.Popen(  # noqa: ASYNC220  # killed and waited for below
        [sys.executable, "-m", "toolreeve", "serve", "--mcp", "--port", "0"],
        cwd=testbed.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = (await asyncio.to_thread(process.stderr.readline)).decode()
        found = re.search(r":(\d+)/mcp", said)
        assert found, said + process.stderr.read1().decode()  # type: ignore[attr-defined]
        yield Door(int(found[1]), process.pid)
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)
        process.stderr.close()


async def _open_sessions(door: Door, count: int) -> int:
    """How many sessions one credential is given, over a few connections."""

    async def some(share: int) -> int:
        opened = 0
        reader, writer = await door.connect()
        try:
            for _ in range(share):
                writer.write(door.request(HELLO, who="viewer"))
                head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), TIMEOUT)
                opened += head.startswith(b"HTTP/1.1 200")
                await _skip_body(reader, head)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.close()
        return opened

    return sum(await asyncio.gather(*(some(count // 10) for _ in range(10))))


async def _skip_body(reader: asyncio.StreamReader, head: bytes) -> None:
    text = head.decode("latin-1").lower()
    if length := re.search(r"content-length: (\d+)", text):
        await reader.readexactly(int(length[1]))
    elif "chunked" in text:
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()


@probe("L1", f"one viewer's token asks for {SESSIONS} sessions", fast=False)
async def sessions(testbed: Testbed) -> Verdict:
    async with serving(testbed) as door:
        opened = await _open_sessions(door, SESSIONS)
        status = await door.status(door.request(HELLO, who="ada"))
        return judge([] if status == 200 else [f"another user's initialize gets {status}"], f"{opened} opened")


async def _session(door: Door) -> str:
    reader, writer = await door.connect()
    writer.write(door.request(HELLO))
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), TIMEOUT)).decode("latin-1")
    writer.close()
    found = re.search(r"(?i)mcp-session-id: (\S+)", head)
    assert found, head
    return found[1]


@probe("L2", "Upgrade with HTTP/1.0, and with Connection: close", fast=False)
async def upgrades(testbed: Testbed) -> Verdict:
    async with serving(testbed) as door:
        kinds = {
            "HTTP/1.0": door.request(PING, version="1.0", extra="Upgrade: h2c\r\nConnection: Upgrade\r\n"),
            "close": door.request(PING, extra="Upgrade: websocket\r\nConnection: close\r\n"),
            "close, upgrade": door.request(PING, extra="Upgrade: websocket\r\nConnection: close, Upgrade\r\n"),
            "upgrade": door.request(PING, extra="Upgrade: websocket\r\nConnection: Upgrade\r\n"),
            "1.0 alone": door.request(PING, version="1.0", extra="Upgrade: x\r\n"),
        }
        unanswered = [name for name, data in kinds.items() if not await door.status(data, 5)]
        return judge([f"never answered: {', '.join(unanswered)}"] if unanswered else [])


@probe("L3", f"{UNREAD} connections with pipelined answers that nobody reads", fast=False)
async def unread(testbed: Testbed) -> Verdict:
    """What nobody reads stays within the quota of the token. Besides, each connection has one call in the making, since
    pipelined requests wait: it holds a page of the file as bytes and as text."""
    (testbed.work / "large.txt").write_text("a line of text\n" * 35_000)
    read = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "read_file", "arguments": {"path": "large.txt"}},
    }
    async with serving(testbed) as door:
        session = await _session(door)
        extra = f"Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n"
        assert await door.status(door.request(read, extra=extra)) == 200
        before = door.resident_mb()
        lines = []
        for _ in range(UNREAD):
            line = socket.create_connection(("127.0.0.1", door.port))
            line.setblocking(False)
            with contextlib.suppress(OSError):
                line.send(door.request(read, extra=extra) * 60)
            lines.append(line)
        await asyncio.sleep(6)
        grown = door.resident_mb() - before
        for line in lines:
            line.close()
        still = await door.status(door.request(PING))
        bound = (Serve().max_buffered_bytes_per_token + UNREAD * 2 * PAGE_BYTES) // 1024**2
        breaches = [] if grown < bound else [f"grew by {grown} MB, more than {bound}"]
        return judge(breaches + ([] if still else ["no longer answers"]), f"grew by {grown} MB")


@probe("L6", "a target in absolute form with a foreign authority")
async def absolute(testbed: Testbed) -> Verdict:
    async with serving(testbed) as door:
        targets = (
            "http://evil.example/mcp",
            "http://evil.example:80/mcp",
            "https://evil.example/mcp",
            "//evil.example/mcp",
            "http://127.0.0.1@evil.example/mcp",
        )
        assert await door.status(door.request(HELLO)) == 200
        served = [target for target in targets if await door.status(door.request(HELLO, target=target)) == 200]
        return judge([f"served: {', '.join(served)}"] if served else [])


@probe("L7", "100 MB after a refusal", fast=False)
async def after_refusal(testbed: Testbed) -> Verdict:
    """The connection ends; what the client goes on sending is not read."""
    async with serving(testbed) as door:
        _, writer = await door.connect()
        head = door.request(b"", extra="").replace(b"Content-Length: 0", b"Content-Length: 104857600")
        writer.write(head)
        sent = 0
        piece = bytes(1 << 20)
        try:
            async with asyncio.timeout(20):
                for _ in range(100):
                    writer.write(piece)
                    await writer.drain()
                    sent += 1
        except (OSError, TimeoutError):
            pass
        finally:
            writer.transport.abort()
        return open_verdict(f"{sent} MB were read") if sent >= 60 else judge([], f"ended after {sent} MB")


@probe("new", "door: hosts, origins and tokens in 12 spellings", fast=False)
async def spellings(testbed: Testbed) -> Verdict:
    async with serving(testbed) as door:
        port = door.port
        wrong = {
            "host of another": door.request(HELLO, host="evil.example"),
            "host with user": door.request(HELLO, host=f"127.0.0.1:{port}@evil.example"),
            "two hosts": door.request(HELLO, extra="Host: evil.example\r\n"),
            "empty host": door.request(HELLO, host=" "),
            "foreign origin": door.request(HELLO, extra="Origin: https://evil.example\r\n"),
            "null origin": door.request(HELLO, extra="Origin: null\r\n"),
            "origin with our name inside": door.request(
                HELLO, extra=f"Origin: http://127.0.0.1:{port}.evil.example\r\n"
            ),
            "no token": door.request(HELLO).replace(f"Bearer {TOKENS['ada']}".encode(), b""),
            "token with a tail": door.request(HELLO).replace(TOKENS["ada"].encode(), TOKENS["ada"].encode() + b"x"),
            "two tokens": door.request(HELLO, extra="Authorization: Bearer x\r\n"),
            "token in the query": door.request(HELLO, target=f"/mcp?access_token={TOKENS['ada']}").replace(
                f"Bearer {TOKENS['ada']}".encode(), b""
            ),
            "basic": door.request(HELLO).replace(b"Bearer", b"Basic"),
        }
        assert await door.status(door.request(HELLO)) == 200
        served = [name for name, data in wrong.items() if await door.status(data, 5) == 200]
        return judge([f"served: {', '.join(served)}"] if served else [], f"{len(wrong)} refused")


@probe("new", "door: requests that two parsers would end at different places", fast=False)
async def framings(testbed: Testbed) -> Verdict:
    """The second request is hidden in the body of the first: an answer to it is a breach."""
    async with serving(testbed) as door:
        hidden = door.request({**PING, "id": "SMUGGLED"})
        first = door.request(b"").replace(b"Content-Length: 0\r\n", b"")
        size = str(len(hidden)).encode()
        start = first[: -len(b"\r\n")]
        kinds = {
            "both": start + b"Content-Length: " + size + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
            "two lengths": start + b"Content-Length: 0\r\nContent-Length: " + size + b"\r\n\r\n" + hidden,
            "sign": start + b"Content-Length: +0\r\n\r\n" + hidden,
            "xchunked": start + b"Transfer-Encoding: xchunked\r\n\r\n" + hidden,
            "space": start + b"Content-Length : 0\r\n\r\n" + hidden,
            "folded": start + b"Content-Length:\r\n 0\r\n\r\n" + hidden,
        }
        answered = []
        for name, data in kinds.items():
            reader, writer = await door.connect()
            writer.write(data)
            said = b""
            with contextlib.suppress(TimeoutError, OSError):
                while piece := await asyncio.wait_for(reader.read(65536), 0.7):
                    said += piece
            writer.close()
            if b"SMUGGLED" in said:
                answered.append(name)
        return judge([f"answered: {', '.join(answered)}"] if answered else [])
