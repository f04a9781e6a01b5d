"""Our agent for one editor: ACP over stdin and stdout."""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolreeve.acp.connection import PROTOCOL_VERSION, AcpConnection
from toolreeve.acp.server.session import EditorSession
from toolreeve.agent.config import BaseAgentConfig
from toolreeve.config import Configuration
from toolreeve.config.os_user import os_user_name
from toolreeve.config.servers import servers_from_code
from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.core.mcp import RpcError
from toolreeve.core.version import VERSION
from toolreeve.record.agent_runs import AgentRunRow
from toolreeve.record.audit import timestamp
from toolreeve.rpc.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND
from toolreeve.rpc.framing import FrameReader, FrameWriter
from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.serve.mcp.pipes import Pipes

MAX_SESSIONS = 16
LISTED = 200
Configure = Callable[[str], Configuration]
"""The configuration for a folder."""


class EditorDoor:
    """`config` is the model and the limits of the agent in every session."""

    def __init__(self, pipes: Pipes, configure: Configure, config: BaseAgentConfig) -> None:
        self._configure = configure
        self._config = config
        self._sessions: dict[str, EditorSession] = {}
        self._initialized = False
        self.finished = asyncio.Event()
        self._writer = FrameWriter(_nonblocking(pipes.sink.fileno()))
        self.connection = AcpConnection(self._writer.send, self._handle, self._notified)
        self._reader = FrameReader(
            _nonblocking(pipes.source.fileno()), self.connection.receive, _ignore_stray, lambda _: self.finished.set()
        )
        self._handlers = {
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/list": self._list,
            "session/close": self._close_session,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    async def close(self) -> None:
        self.connection.lose("the editor has ended")
        await self.connection.cancel_requests()
        for session in self._sessions.values():
            await session.close()
        self._reader.close()
        self._writer.close()

    async def _handle(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == "initialize":
            self._initialized = True
            return _initialize_result()
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"{method[:100]} is not supported")
        if not self._initialized:
            raise RpcError(INVALID_REQUEST, "send `initialize` first")
        return await handler(params)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if method == "session/cancel" and session is not None:
            session.cancel()

    async def _authenticate(self, _: Mapping[str, Any]) -> dict[str, Any]:
        raise RpcError(INVALID_PARAMS, "no authentication is needed: the model's key is in the environment")

    async def _new(self, params: Mapping[str, Any]) -> dict[str, Any]:
        session = await self._open(params)
        return {"sessionId": session.id, "modes": session.modes(), "configOptions": session.options()}

    async def _load(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = str(params.get("sessionId"))
        if wanted in self._sessions:
            await self._sessions.pop(wanted).close()
        session = await self._open(params, wanted)
        rows = await session.reeve.internals.store.agent_runs.recent(os_user_name(), LISTED)
        found = next((row for row in rows if row.session == wanted), None)
        if found is None:
            await self._sessions.pop(session.id).close()
            raise RpcError(RESOURCE_NOT_FOUND, "Resource not found", {"sessionId": wanted[:100]})
        await session.resume(found.id)
        return {"modes": session.modes(), "configOptions": session.options()}

    async def _open(self, params: Mapping[str, Any], session_id: str = "") -> EditorSession:
        folder = params.get("cwd")
        if not isinstance(folder, str) or not Path(folder).is_absolute() or not Path(folder).is_dir():
            raise RpcError(INVALID_PARAMS, "cwd must be the absolute path of an existing folder")
        if len(self._sessions) >= MAX_SESSIONS:
            raise RpcError(INVALID_REQUEST, f"{MAX_SESSIONS} sessions are open: close one of them")
        try:
            configuration = self._configure(folder)
            servers = _servers(params.get("mcpServers"), configuration)
            session = EditorSession(self.connection, servers, self._config)
        except (ConfigError, ConfigErrors) as problem:
            raise RpcError(INVALID_PARAMS, str(problem)) from None
        await session.start(session_id)
        self._sessions[session.id] = session
        return session

    async def _list(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted = params.get("cwd")
        async with Toolreeve(settings=self._configure(str(wanted or Path.cwd())), mcp_servers={}) as reeve:
            rows = await reeve.internals.store.agent_runs.recent(os_user_name(), LISTED)
        newest = {row.session: row for row in reversed(rows) if wanted in (None, row.workspace)}
        return {"sessions": [_describe(row) for row in reversed(newest.values())]}

    async def _close_session(self, params: Mapping[str, Any]) -> dict[str, Any]:
        session = self._find(params)
        del self._sessions[session.id]
        await session.close()
        return {}

    async def _prompt(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self._find(params).prompt(_text_of(params.get("prompt")))

    async def _set_mode(self, params: Mapping[str, Any]) -> dict[str, Any]:
        self._find(params).set_mode(params.get("modeId"))
        return {}

    async def _set_option(self, params: Mapping[str, Any]) -> dict[str, Any]:
        session = self._find(params)
        session.set_option(params.get("configId"), params.get("value"))
        return {"configOptions": session.options()}

    def _find(self, params: Mapping[str, Any]) -> EditorSession:
        found = self._sessions.get(str(params.get("sessionId")))
        if found is None:
            raise RpcError(RESOURCE_NOT_FOUND, "Resource not found", {"sessionId": str(params.get("sessionId"))[:100]})
        return found


def _initialize_result() -> dict[str, Any]:
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": False, "audio": False, "embeddedContext": False},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {"list": {}, "close": {}},
        },
        "agentInfo": {"name": "toolreeve", "title": "Toolreeve", "version": VERSION},
        "authMethods": [],
    }


def _servers(given: Any, configuration: Configuration) -> Configuration:
    """With the editor's MCP servers after the configured ones. Their values are taken as they are: a project's settings
    may reach the editor, and must not read our secrets and environment. Raises ConfigErrors."""
    if not isinstance(given, list) or not all(isinstance(each, dict) and each.get("name") for each in given):
        raise RpcError(INVALID_PARAMS, "mcpServers must be a list of servers with names")
    if not given:
        return configuration
    tables = {str(each["name"]): _server(each) for each in given}
    known = replace(configuration.known, literal=True)
    found = servers_from_code(tables, known, base=Path(configuration.settings.workspace.dir))
    if found.problems:
        raise ConfigErrors(found.problems)
    taken = {each.name for each in configuration.mcp_servers}
    own = tuple(each for each in found.specs if each.name not in taken)
    return replace(configuration, mcp_servers=(*configuration.mcp_servers, *own))


def _server(entry: Mapping[str, Any]) -> dict[str, Any]:
    table = {key: entry[key] for key in ("command", "args", "url") if key in entry}
    for name, target in (("env", "env"), ("headers", "headers")):
        pairs = entry.get(name)
        if isinstance(pairs, list) and pairs:
            table[target] = {str(each.get("name")): str(each.get("value")) for each in pairs if isinstance(each, dict)}
    if entry.get("type") in ("http", "sse"):
        table["type"] = entry["type"]
    return table


def _text_of(blocks: Any) -> str:
    """What the user typed, and links to what they attached."""
    texts = []
    for block in blocks if isinstance(blocks, list) else ():
        match block:
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "resource_link", "uri": str(uri)}:
                texts.append(uri.removeprefix("file://"))
            case _:
                raise RpcError(INVALID_PARAMS, "prompt: only text and resource_link are taken")
    if not "".join(texts).strip():
        raise RpcError(INVALID_PARAMS, "prompt: it is empty")
    return "\n".join(texts)


def _describe(row: AgentRunRow) -> dict[str, Any]:
    return {
        "sessionId": row.session,
        "cwd": row.workspace,
        "title": row.question[:100],
        "updatedAt": timestamp(row.ended or row.began),
    }


def _nonblocking(descriptor: int) -> int:
    copy = os.dup(descriptor)
    os.set_blocking(copy, False)
    return copy


def _ignore_stray(_: bytes) -> None:
    """A line that is no JSON."""
