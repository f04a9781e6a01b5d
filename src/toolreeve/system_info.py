"""Small MCP server that reports on system, disks and network.

Its tools are read-only, take no arguments and need no runtime: any client may start it, and it starts fast.
"""

import asyncio
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from toolreeve.serve.mcp.initialize import initialize_result, read_client, server_info
from toolreeve.serve.mcp.pipes import Pipes, claim
from toolreeve.serve.mcp.protocol import MODERN_VERSIONS, Params, WireError, stamp
from toolreeve.serve.mcp.request_context import ClientInfo, RequestContext
from toolreeve.serve.mcp.stdio import run, serve_stdio

NAME = "system-info"
_CAPABILITIES: Mapping[str, Any] = {"tools": {}}
_READ_ONLY = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_INTEGER = {"type": "integer"}


def system_info() -> dict[str, Any]:
    import psutil

    memory = psutil.virtual_memory()
    return {
        "os": platform.system(),
        "os_release": platform.release(),
        "architecture": platform.machine(),
        "hostname": platform.node(),
        "cpu": platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count() or 1,
        "load_average": [round(load, 2) for load in psutil.getloadavg()],
        "memory_total_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "memory_percent": memory.percent,
        "uptime_seconds": int(time.time() - psutil.boot_time()),
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
    }


def disk_info() -> dict[str, Any]:
    """Fixed drives; one whose usage cannot be read is left out."""
    import psutil

    disks = []
    for partition in psutil.disk_partitions(all=False):
        if "cdrom" in partition.opts or not partition.fstype:
            continue
        try:
            usage = psutil.disk_usage(partition.mountpoint)
        except OSError:
            continue
        disks.append(
            {
                "device": partition.device,
                "mountpoint": partition.mountpoint,
                "filesystem": partition.fstype,
                "total_bytes": usage.total,
                "used_bytes": usage.used,
                "free_bytes": usage.free,
                "percent": usage.percent,
            }
        )
    return {"disks": disks}


def network_info() -> dict[str, Any]:
    import psutil

    states = psutil.net_if_stats()
    return {
        "interfaces": [
            {
                "name": name,
                "up": name in states and states[name].isup,
                "addresses": [
                    {"family": each.family.name.removeprefix("AF_"), "address": each.address, "netmask": each.netmask}
                    for each in addresses
                ],
            }
            for name, addresses in sorted(psutil.net_if_addrs().items())
        ]
    }


def _object(**fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _tool(name: str, description: str, output: Mapping[str, Any]) -> dict[str, Any]:
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    described = {"name": name, "description": description, "inputSchema": nothing}
    return described | {"outputSchema": output, "annotations": _READ_ONLY}


_ADDRESS = _object(family=_TEXT, address=_TEXT, netmask={"type": ["string", "null"]})
_SIZES = {"total_bytes": _INTEGER, "used_bytes": _INTEGER, "free_bytes": _INTEGER, "percent": _NUMBER}
_SYSTEM = {
    **dict.fromkeys(("os", "os_release", "architecture", "hostname", "cpu", "runtime"), _TEXT),
    **dict.fromkeys(("cpu_count", "memory_total_bytes", "memory_available_bytes", "uptime_seconds"), _INTEGER),
    "load_average": _list(_NUMBER),
    "memory_percent": _NUMBER,
}
TOOLS: Sequence[Mapping[str, Any]] = (
    _tool("system_info", "Report the operating system, processors, memory, uptime and runtime.", _object(**_SYSTEM)),
    _tool(
        "disk_info",
        "Report how full each fixed drive is.",
        _object(disks=_list(_object(device=_TEXT, mountpoint=_TEXT, filesystem=_TEXT, **_SIZES))),
    ),
    _tool(
        "network_info",
        "List the network interfaces and their addresses.",
        _object(interfaces=_list(_object(name=_TEXT, up={"type": "boolean"}, addresses=_list(_ADDRESS)))),
    ),
)
_RUN: Mapping[str, Callable[[], dict[str, Any]]] = {
    "system_info": system_info,
    "disk_info": disk_info,
    "network_info": network_info,
}


class SystemInfoHandlers:
    """Handles requests: three tools, and the methods every server must have."""

    def __init__(self) -> None:
        self._info = server_info(NAME)

    def methods(self, era: Era) -> Sequence[str]:
        common = ("tools/list", "tools/call")
        return (*common, "ping") if era is Era.LEGACY else (*common, "server/discover")

    def initialize(self, params: Params, context: RequestContext) -> dict[str, Any]:
        read_client(params, context.client)
        return initialize_result(context.client, self._info, _CAPABILITIES)

    async def answer(self, method: str, params: Params, context: RequestContext) -> dict[str, Any]:
        if method not in self.methods(context.era):
            raise WireError(METHOD_NOT_FOUND, "Method not found", method[:200])
        result = await self._result(method, params)
        return result if context.era is Era.LEGACY else stamp(method, result, self._info)

    async def call(self, params: Params, context: RequestContext) -> dict[str, Any]:
        return await self.answer("tools/call", params, context)

    async def _result(self, method: str, params: Params) -> dict[str, Any]:
        match method:
            case "tools/call":
                return await _call_tool(params)
            case "tools/list":
                return {"tools": list(TOOLS)}
            case "server/discover":
                return {"supportedVersions": list(MODERN_VERSIONS), "capabilities": _CAPABILITIES}
            case _:
                return {}

    def cancel(self, _: RequestContext) -> bool:
        return False

    def watch(self, _: ClientInfo, __: Callable[[str, Mapping[str, Any]], None]) -> Callable[[], None]:
        return lambda: None

    def on_notification(self, _: str) -> None:
        """Notifications of a client change nothing."""

    async def release(self, _: RequestContext) -> None:
        """There is no per-client state."""


async def _call_tool(params: Params) -> dict[str, Any]:
    name = params.get("name")
    args = params.get("arguments")
    function = _RUN.get(name) if isinstance(name, str) else None
    if function is None:
        raise WireError(INVALID_PARAMS, f"Unknown tool: {str(name)[:200]}")
    if args is not None and args != {}:
        return {"content": [{"type": "text", "text": f"{name} takes no arguments"}], "isError": True}
    try:
        found = await asyncio.to_thread(function)
    except (OSError, RuntimeError) as problem:
        return {"content": [{"type": "text", "text": f"{name} failed: {problem}"}], "isError": True}
    return {"content": [{"type": "text", "text": json.pretty(found)}], "structuredContent": found, "isError": False}


async def _serve(pipes: Pipes) -> None:
    async with serve_stdio(SystemInfoHandlers(), pipes) as service:
        await service.finished.wait()


def main() -> None:
    run(_serve(claim()))


if __name__ == "__main__":
    main()
