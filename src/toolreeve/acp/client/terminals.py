"""Serves `terminal/*` of an agent, each as a `bash` call.

A command that is refused ends like one that cannot be executed: with exit code 126, and the reason as its output.
"""

import asyncio
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolreeve.acp.client.files import text
from toolreeve.acp.client.nested_peer import NestedPeer
from toolreeve.acp.client.road import Road
from toolreeve.core.call import ToolCall, new_id
from toolreeve.core.errors import ErrorCode
from toolreeve.core.mcp import RpcError
from toolreeve.core.result import Failed, ToolResult
from toolreeve.rpc.errors import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND

MAX_TERMINALS = 32
"""Terminals of one session that are not released."""
REFUSED = 126
_OUTPUT_BYTES = 1_000_000
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


@dataclass(slots=True)
class Terminal:
    """`live` is what the command has printed so far, at most the last `limit` bytes."""

    limit: int
    live: str = ""
    truncated: bool = False
    call: ToolCall = field(init=False)
    task: "asyncio.Task[ToolResult]" = field(init=False)

    def show(self, text: str) -> None:
        self.live, cut = _cut(self.live + text, self.limit)
        self.truncated = self.truncated or cut


class TerminalService:
    """`timeout` is how many seconds a command may take."""

    def __init__(self, road: Road, *, cwd: str, timeout: float) -> None:
        self._road = road
        self._cwd = cwd
        self._timeout = timeout
        self._terminals: dict[str, Terminal] = {}

    async def create(self, params: Mapping[str, Any]) -> dict[str, Any]:
        if len(self._terminals) >= MAX_TERMINALS:
            raise RpcError(INTERNAL_ERROR, f"{MAX_TERMINALS} terminals are open: release one of them")
        args = {"command": _command(params), "working_dir": params.get("cwd") or self._cwd, "timeout": self._timeout}
        limit = params.get("outputByteLimit")
        terminal = Terminal(min(limit, _OUTPUT_BYTES) if type(limit) is int and limit >= 0 else _OUTPUT_BYTES)
        terminal.call = self._road.new_call("bash", args, NestedPeer(self._road.peer, terminal.show))
        terminal.task = asyncio.create_task(self._road.reeve.run(terminal.call))
        number = new_id()
        self._terminals[number] = terminal
        return {"terminalId": number}

    async def output(self, params: Mapping[str, Any]) -> dict[str, Any]:
        terminal = self._find(params)
        if not terminal.task.done():
            return {"output": terminal.live, "truncated": terminal.truncated}
        shown, truncated = _cut(_output(terminal.task), terminal.limit)
        return {"output": shown, "truncated": truncated, "exitStatus": _status(terminal.task)}

    async def wait_for_exit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        terminal = self._find(params)
        await asyncio.wait({terminal.task})
        return _status(terminal.task)

    async def kill(self, params: Mapping[str, Any]) -> dict[str, Any]:
        await self._end(self._find(params))
        return {}

    async def release(self, params: Mapping[str, Any]) -> dict[str, Any]:
        await self._end(self._find(params))
        del self._terminals[str(params["terminalId"])]
        return {}

    async def end_turn(self) -> None:
        """Commands end with the turn, also those that still wait for an approval. Their output can be read on."""
        for terminal in self._terminals.values():
            await self._end(terminal)

    async def close(self) -> None:
        await self.end_turn()
        self._terminals.clear()

    async def _end(self, terminal: Terminal) -> None:
        if not terminal.task.done() and not self._road.reeve.cancel(terminal.call.id):
            terminal.task.cancel()
        await asyncio.wait({terminal.task})

    def _find(self, params: Mapping[str, Any]) -> Terminal:
        found = self._terminals.get(str(params.get("terminalId")))
        if found is None:
            raise RpcError(
                RESOURCE_NOT_FOUND, "Resource not found", {"terminalId": str(params.get("terminalId"))[:100]}
            )
        return found


def _command(params: Mapping[str, Any]) -> str:
    """Without arguments, the command is a line for the shell."""
    command = text(params, "command")
    args = params.get("args") or []
    if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
        raise RpcError(INVALID_PARAMS, "args must be a list of texts")
    lines = [_export(each) for each in params.get("env") or ()]
    return "\n".join([*lines, shlex.join([command, *args]) if args else command])


def _export(variable: Any) -> str:
    name = variable.get("name") if isinstance(variable, dict) else None
    if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
        raise RpcError(INVALID_PARAMS, f"env: {name!r:.60} is no name of a variable")
    return f"export {name}={shlex.quote(text(variable, 'value'))}"


def _output(task: "asyncio.Task[ToolResult]") -> str:
    if task.cancelled():
        return ""
    result = task.result()
    printed = f"{result.data.get('stdout', '')}{result.data.get('stderr', '')}"
    if isinstance(result, Failed) and "exit_code" not in result.data:
        return f"{printed}{result.error.message}\n"
    return printed


def _status(task: "asyncio.Task[ToolResult]") -> dict[str, Any]:
    if task.cancelled():
        return {"exitCode": None, "signal": "SIGKILL"}
    result = task.result()
    if not isinstance(result, Failed):
        return {"exitCode": 0, "signal": None}
    if result.error.code in (ErrorCode.CANCELLED, ErrorCode.TIMEOUT):
        return {"exitCode": None, "signal": "SIGKILL"}
    code = result.data.get("exit_code")
    return {"exitCode": code if type(code) is int and code >= 0 else REFUSED, "signal": None}


def _cut(shown: str, limit: int) -> tuple[str, bool]:
    """The last bytes, from the beginning of a character."""
    data = shown.encode(errors="replace")
    if len(data) <= limit:
        return shown, False
    return data[len(data) - limit :].decode(errors="ignore"), True
