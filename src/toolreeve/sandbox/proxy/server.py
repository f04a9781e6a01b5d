"""How does a sandboxed process reach the network? Through this proxy and nothing else, each connection judged.

It is handed a listening socket that lies inside the sandbox's network; the gate decides and dials. Every connection,
let through or not, is told as an event with its host, decision and bytes.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.events import Event
from toolreeve.core.network import Connection, Connector
from toolreeve.core.urls import parse_host
from toolreeve.sandbox.proxy.relay import Traffic, Vet, relay
from toolreeve.sandbox.proxy.requests import MAX_HEAD, MalformedRequest, Wanted, read_wanted, socks_reply

PORT = 3128


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    connections: int = 64
    head_timeout: float = 15.0
    idle_timeout: float = 300.0
    max_bytes: int = 4 * 1024**3


class Proxy:
    """`task_id` names the sandbox in the events."""

    def __init__(
        self,
        gate: Connector,
        *,
        emit: Callable[[Event], None],
        now: Callable[[], float],
        task_id: str = "",
        limits: ProxyLimits | None = None,
    ) -> None:
        self._gate = gate
        self._emit = emit
        self._now = now
        self._task_id = task_id
        self._limits = limits or ProxyLimits()
        self._places = asyncio.Semaphore(self._limits.connections)

    async def serve(self, listener: socket.socket) -> None:
        """Carry connections until cancelled; then they all end."""
        listener.settimeout(0)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._places.acquire()
                try:
                    accepted, _ = await loop.sock_accept(listener)
                except BaseException:
                    self._places.release()
                    raise
                group.create_task(self._carry(accepted))

    async def _carry(self, accepted: socket.socket) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=accepted, limit=MAX_HEAD)
            try:
                await self._attend(reader, writer)
            finally:
                await _close(writer)
        except (OSError, EOFError):
            return  # the client went away; nothing is left to tell it
        except Exception as crash:
            # One connection that goes wrong in a way nobody thought of must not take the others down with it.
            self._tell(None, decision="deny", reason=f"{type(crash).__name__}: {crash}")
        finally:
            self._places.release()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self._limits.head_timeout):
                wanted = await read_wanted(reader, writer)
        except MalformedRequest as problem:
            writer.write(problem.reply or _http_refusal("400 Bad Request", str(problem)))
            self._tell(None, decision="deny", reason=str(problem))
            return
        except TimeoutError:
            self._tell(None, decision="deny", reason=f"no request came within {self._limits.head_timeout:g} s")
            return
        await self._connect(wanted, reader, writer)

    async def _connect(self, wanted: Wanted, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection = await self._gate.dial(wanted.host, wanted.port, method=wanted.method)
        except ToolError as refusal:
            writer.write(_refusal(wanted, refusal))
            allowed = refusal.code is not ErrorCode.URL_FORBIDDEN
            self._tell(wanted, decision="allow" if allowed else "deny", reason=refusal.message)
            return
        traffic = Traffic(self._limits.max_bytes, self._limits.idle_timeout)
        try:
            writer.write(_acceptance(wanted))
            connection.writer.write(wanted.head)
            await relay(reader, writer, connection, body=wanted.body, traffic=traffic, vet=self._vet(wanted))
        finally:
            await _close(connection.writer)
            decision = "deny" if traffic.refused else "allow"
            self._tell(wanted, decision=decision, connection=connection, traffic=traffic, reason=traffic.ended)

    def _vet(self, wanted: Wanted) -> Vet:
        """A tunnel to one name must not be used to ask the same address for another that may not be reached."""

        async def vet(name: str) -> None:
            asked = parse_host(name)[0]
            if asked != wanted.host:
                await self._gate.check(asked, wanted.port, wanted.method)

        return vet

    def _tell(
        self,
        wanted: Wanted | None,
        *,
        decision: str,
        reason: str = "",
        connection: Connection | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        data = {
            "protocol": wanted.protocol if wanted else "unknown",
            "method": wanted.method if wanted else "",
            "host": wanted.host if wanted else "",
            "port": wanted.port if wanted else 0,
            "decision": decision,
            "reason": reason,
            "rule": connection.rule if connection else None,
            "address": connection.address if connection else None,
            "bytes_sent": traffic.sent if traffic else 0,
            "bytes_received": traffic.received if traffic else 0,
        }
        at = self._now()
        self._emit(Event(event="network_connection", task_id=self._task_id, component="proxy", data=data, at=at))


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


def _acceptance(wanted: Wanted) -> bytes:
    match wanted.protocol:
        case "connect":
            return b"HTTP/1.1 200 Connection established\r\n\r\n"
        case "socks5":
            return socks_reply(0)
        case _:
            return b""


def _refusal(wanted: Wanted, refusal: ToolError) -> bytes:
    if wanted.protocol == "socks5":
        codes = {ErrorCode.URL_FORBIDDEN: 2, ErrorCode.HTTP_TIMEOUT: 6}
        return socks_reply(codes.get(refusal.code, 4))
    statuses = {ErrorCode.URL_FORBIDDEN: "403 Forbidden", ErrorCode.HTTP_TIMEOUT: "504 Gateway Timeout"}
    return _http_refusal(statuses.get(refusal.code, "502 Bad Gateway"), refusal.message)


def _http_refusal(status: str, message: str) -> bytes:
    body = f"Toolreeve: {message}\n".encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body


def proxy_environment(port: int = PORT) -> dict[str, str]:
    """What curl, git, pip, npm and most other programs need to be told to go through the proxy."""
    url = f"http://127.0.0.1:{port}"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    npm = {"npm_config_proxy": url, "npm_config_https_proxy": url, "npm_config_noproxy": ""}
    return dict.fromkeys(names, url) | {"no_proxy": "", "NO_PROXY": ""} | npm
