"""Guarding proxy: the only way of a sandboxed process to the network.

It accepts on a listener inside the sandbox's network; the gate decides on each connection and dials. Every connection,
allowed or not, is emitted as an event with its host, decision and bytes.
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
from toolreeve.sandbox.proxy.relay import CheckName, Traffic, relay
from toolreeve.sandbox.proxy.requests import MAX_HEAD, MalformedRequest, ProxyRequest, read_request, socks_reply

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
        self._capacity = asyncio.Semaphore(self._limits.connections)

    async def serve(self, listener: socket.socket, hosts: frozenset[str] | None = None) -> None:
        """Accept connections until cancelled; then all are closed. With `hosts`, all others are refused."""
        gate = self._gate if hosts is None else _NarrowGate(self._gate, hosts)
        listener.settimeout(0)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._capacity.acquire()
                try:
                    accepted, _ = await loop.sock_accept(listener)
                except BaseException:
                    self._capacity.release()
                    raise
                group.create_task(self._handle(accepted, gate))

    async def _handle(self, accepted: socket.socket, gate: Connector) -> None:
        try:
            reader, writer = await asyncio.open_connection(sock=accepted, limit=MAX_HEAD)
            try:
                await self._handle_request(reader, writer, gate)
            finally:
                await _close(writer)
        except (OSError, EOFError):
            return  # the client disconnected
        except Exception as crash:
            # A connection that fails unexpectedly must not take the others down.
            self._emit_event(None, decision="deny", reason=f"{type(crash).__name__}: {crash}")
        finally:
            self._capacity.release()

    async def _handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Connector
    ) -> None:
        try:
            async with asyncio.timeout(self._limits.head_timeout):
                request = await read_request(reader, writer)
        except MalformedRequest as problem:
            writer.write(problem.reply or _http_refusal("400 Bad Request", str(problem)))
            self._emit_event(None, decision="deny", reason=str(problem))
            return
        except TimeoutError:
            reason = f"no request within {self._limits.head_timeout:g} s"
            self._emit_event(None, decision="deny", reason=reason)
            return
        await self._connect(request, reader, writer, gate)

    async def _connect(
        self, request: ProxyRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Connector
    ) -> None:
        try:
            connection = await gate.dial(request.host, request.port, method=request.method)
        except ToolError as refusal:
            writer.write(_refusal(request, refusal))
            is_allowed = refusal.code is not ErrorCode.URL_FORBIDDEN
            self._emit_event(request, decision="allow" if is_allowed else "deny", reason=refusal.message)
            return
        traffic = Traffic(self._limits.max_bytes, self._limits.idle_timeout)
        try:
            writer.write(_acceptance(request))
            connection.writer.write(request.head)
            check = _name_check(request, gate)
            await relay(reader, writer, connection, body=request.body, traffic=traffic, check_name=check)
        finally:
            await _close(connection.writer)
            decision = "deny" if traffic.is_refused else "allow"
            self._emit_event(request, decision=decision, connection=connection, traffic=traffic, reason=traffic.ended)

    def _emit_event(
        self,
        request: ProxyRequest | None,
        *,
        decision: str,
        reason: str = "",
        connection: Connection | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        data = {
            "protocol": request.protocol if request else "unknown",
            "method": request.method if request else "",
            "host": request.host if request else "",
            "port": request.port if request else 0,
            "decision": decision,
            "reason": reason,
            "rule": connection.rule if connection else None,
            "address": connection.address if connection else None,
            "bytes_sent": traffic.sent if traffic else 0,
            "bytes_received": traffic.received if traffic else 0,
        }
        at = self._now()
        self._emit(Event(event="network_connection", task_id=self._task_id, component="proxy", data=data, at=at))


class _NarrowGate:
    """A gate that lets through the hosts that a call was allowed for, and their subdomains."""

    def __init__(self, gate: Connector, hosts: frozenset[str]) -> None:
        self._gate = gate
        self._hosts = hosts

    async def dial(self, host: str, port: int, *, method: str) -> Connection:
        self._require(host)
        return await self._gate.dial(host, port, method=method)

    async def check(self, host: str, port: int, method: str) -> None:
        self._require(host)
        await self._gate.check(host, port, method)

    def _require(self, host: str) -> None:
        if not any(host == each or host.endswith(f".{each}") for each in self._hosts):
            allowed = ", ".join(sorted(self._hosts))
            raise ToolError(ErrorCode.URL_FORBIDDEN, f"{host}: the command was allowed to contact only {allowed}")


def _name_check(request: ProxyRequest, gate: Connector) -> CheckName:
    """A tunnel to one name must not be used to ask the same address for another, forbidden one."""

    async def check_name(name: str) -> None:
        host = parse_host(name)[0]
        if host != request.host:
            await gate.check(host, request.port, request.method)

    return check_name


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await writer.wait_closed()


def _acceptance(request: ProxyRequest) -> bytes:
    match request.protocol:
        case "connect":
            return b"HTTP/1.1 200 Connection established\r\n\r\n"
        case "socks5":
            return socks_reply(0)
        case _:
            return b""


def _refusal(request: ProxyRequest, refusal: ToolError) -> bytes:
    if request.protocol == "socks5":
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
    """The variables by which curl, git, pip, npm and most other programs use the proxy."""
    url = f"http://127.0.0.1:{port}"
    names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    npm = {"npm_config_proxy": url, "npm_config_https_proxy": url, "npm_config_noproxy": ""}
    return dict.fromkeys(names, url) | {"no_proxy": "", "NO_PROXY": ""} | npm
