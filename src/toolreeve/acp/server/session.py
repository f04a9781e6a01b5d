"""An editor's session: a runtime in its folder, and the conversation."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolreeve.acp.connection import AcpConnection
from toolreeve.acp.server.editor_channel import EditorChannel
from toolreeve.acp.server.updates import UpdateWriter, replay, text_chunk
from toolreeve.agent.config import BaseAgentConfig
from toolreeve.agent.errors import ModelError
from toolreeve.agent.loop import Stop
from toolreeve.agent.providers import connect
from toolreeve.agent.recorded_run import StoredRun, load_run, run_recorded
from toolreeve.config import Configuration
from toolreeve.core.mcp import RpcError
from toolreeve.permissions import ExecutionContext, PermissionPolicy
from toolreeve.policy.mode import PermissionMode
from toolreeve.rpc.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST
from toolreeve.runtime.toolreeve import Toolreeve

_STOPS = {
    Stop.COMPLETED: "end_turn",
    Stop.STEPS: "max_turn_requests",
    Stop.SECONDS: "max_turn_requests",
    Stop.COST: "max_turn_requests",
    Stop.CANCELLED: "cancelled",
}
_MODES = {
    PermissionMode.DEFAULT: "Asks before what may do harm",
    PermissionMode.ACCEPT_EDITS: "Asks, but not for changes in the folder that can be undone",
    PermissionMode.PLAN: "Reads only",
    PermissionMode.STRICT: "Asks for everything",
}
PHASES = "phases"


class EditorSession:
    """`close` it. The mode can be changed to any but `bypass`, which only the configuration chooses."""

    def __init__(self, connection: AcpConnection, configuration: Configuration, config: BaseAgentConfig) -> None:
        policy = configuration.settings.policy
        self._context = ExecutionContext(mode=PermissionMode(policy.mode), allowed_tools=policy.allowed_tools)
        self._connection = connection
        self._config = config
        self._running: asyncio.Task[Any] | None = None
        self._run = ""
        self.reeve = Toolreeve(
            settings=configuration,
            policy=PermissionPolicy(self._context),
            approve=(EditorChannel(connection, self),),
            await_servers=False,
            origin="acp",
        )

    @property
    def id(self) -> str:
        return self.reeve.session

    async def start(self, session: str = "") -> None:
        """`session` is an earlier one to continue."""
        if session:
            self.reeve.session = session
        self._writer = UpdateWriter(
            self.reeve.internals.files,
            self.reeve.internals.events.keep_results(),
            self._send,
            self._config.context_tokens,
        )
        await self.reeve.start()

    def find_call(self, tool: str, args: Any, default: str) -> str:
        """The id under which the editor knows a call."""
        return self._writer.find_call(tool, args, default)

    async def resume(self, run: str) -> None:
        """Show the earlier conversation; the next prompt continues it."""
        stored = await load_run(self.reeve, run)
        self._run = stored.row.id
        for update in replay(stored.conversation.messages):
            self._send(update)

    def _send(self, update: Mapping[str, Any]) -> None:
        self._connection.notify("session/update", {"sessionId": self.id, "update": update})

    async def prompt(self, text: str) -> dict[str, Any]:
        if self._running is not None:
            raise RpcError(INVALID_REQUEST, "a turn of this session is running: cancel it first")
        self._running = asyncio.ensure_future(self._turn(text))
        try:
            return {"stopReason": await self._running}
        except asyncio.CancelledError:
            if self._running.cancelled():
                return {"stopReason": "cancelled"}
            self._running.cancel()
            raise
        finally:
            self._running = None

    async def _turn(self, text: str) -> str:
        config = self._config
        try:
            provider = connect(
                config.llm_provider,
                base_url=config.base_url,
                timeout=config.request_timeout,
                environ=self.reeve.configuration.known.environ,
            )
            try:
                result = await run_recorded(
                    self.reeve,
                    config,
                    {"task": text},
                    provider=provider,
                    emit=self._writer.show,
                    earlier=await self._earlier(),
                )
            finally:
                await provider.close()
        except ModelError as problem:
            raise RpcError(INTERNAL_ERROR, str(problem)) from None
        self._run = result.run_id
        if result.outcome.stop not in _STOPS:
            why = f"Stopped ({result.outcome.stop}): {result.outcome.why}"
            self._send(text_chunk("agent_message_chunk", why))
        return _STOPS.get(result.outcome.stop, "end_turn")

    async def _earlier(self) -> StoredRun | None:
        return await load_run(self.reeve, self._run) if self._run else None

    def cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    def modes(self) -> dict[str, Any]:
        current = self._context.mode
        offered = {current: "As configured"} | _MODES
        listed = [{"id": each.value, "name": each.title, "description": text} for each, text in offered.items()]
        return {"currentModeId": current.value, "availableModes": listed}

    def set_mode(self, mode: Any) -> None:
        known = {each.value: each for each in _MODES}
        if not isinstance(mode, str) or mode not in known:
            raise RpcError(INVALID_PARAMS, f"modeId must be one of {', '.join(known)}")
        self._context.mode = known[mode]
        self._send({"sessionUpdate": "current_mode_update", "currentModeId": mode})

    def options(self) -> list[dict[str, Any]]:
        values = [{"value": "off", "name": "Off"}, {"value": "on", "name": "On"}]
        return [
            {
                "id": PHASES,
                "name": "Plan first, check afterwards",
                "description": "Write a specification and a plan first; run the project's own checks afterwards.",
                "type": "select",
                "currentValue": "on" if self._config.phases else "off",
                "options": values,
            }
        ]

    def set_option(self, name: Any, value: Any) -> None:
        if name != PHASES or value not in ("on", "off"):
            raise RpcError(INVALID_PARAMS, f"configId must be {PHASES!r}, and its value on or off")
        self._config = replace(self._config, phases=value == "on")

    async def close(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        await self.reeve.close()
