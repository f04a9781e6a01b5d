"""`HeldAgent`: an ACP agent in its sandbox, and its sessions.

The agent is set to ask for everything before its first prompt, or it gets none. What it asks us to do ends with its
turn, and between turns nothing is done for it. Its process ends with us, with all that it started; what it said last
outside of the protocol explains a failure.
"""

import asyncio
import contextlib
import logging
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.acp.client.agents import AgentSpec
from toolreeve.acp.client.files import FileService
from toolreeve.acp.client.permissions import Permissions
from toolreeve.acp.client.road import BETWEEN_TURNS, Road
from toolreeve.acp.client.terminals import TerminalService
from toolreeve.acp.client.tools_socket import ToolsSocket, serve_tools
from toolreeve.acp.client.turn import AgentTurn, Flood
from toolreeve.acp.connection import PROTOCOL_VERSION, AcpConnection, AcpError
from toolreeve.approval.options import outcome_of
from toolreeve.core.call import Principal, new_question_id
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.mcp import RpcError
from toolreeve.core.version import VERSION
from toolreeve.hook.judge import Judge
from toolreeve.rpc.errors import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from toolreeve.runtime.principal import find_local_principal
from toolreeve.upstream.transports.transport import ServerUnavailable, Transport

if TYPE_CHECKING:
    from toolreeve.core.peer import Peer
    from toolreeve.runtime.toolreeve import Toolreeve

OnUpdate = Callable[[Mapping[str, Any]], None]
LONGEST_COMMAND = 3600.0
ALWAYS_SERVED = frozenset({"terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release"})
"""The requests that change nothing, and so are answered between turns as well."""
_logger = logging.getLogger(__name__)


class HeldAgent:
    """One agent with one session. `on_update` gets every update of its turns, as it was sent. `folder` is for the
    socket of our tools."""

    def __init__(
        self,
        reeve: "Toolreeve",
        spec: AgentSpec,
        transport: Transport,
        road: Road,
        judge: Judge,
        on_update: OnUpdate,
        folder: Path,
    ) -> None:
        self.spec = spec
        self._folder = folder
        self.road = road
        self.session_id = ""
        self.info: Mapping[str, Any] = {}
        self.turn = AgentTurn()
        self._transport = transport
        self._on_update = on_update
        self._cwd = reeve.configuration.settings.workspace.dir
        self._own_server = f"toolreeve_{new_question_id()}" if spec.gives_tools else ""
        self._cancelled = asyncio.Event()
        self._lost = ""
        self._asks = False
        self._tools: ToolsSocket | None = None
        self._permissions = Permissions(road, judge, spec.profile, own_server=self._own_server)
        self._files = FileService(road, missing=spec.profile.missing_file)
        self._terminals = TerminalService(road, cwd=self._cwd, timeout=min(spec.timeout, LONGEST_COMMAND))
        self._connection = AcpConnection(transport.send, self._handle, self._notified)
        self._handlers = {
            "session/request_permission": self._permit,
            "fs/read_text_file": self._files.read,
            "fs/write_text_file": self._files.write,
            "terminal/create": self._terminals.create,
            "terminal/output": self._terminals.output,
            "terminal/wait_for_exit": self._terminals.wait_for_exit,
            "terminal/kill": self._terminals.kill,
            "terminal/release": self._terminals.release,
        }

    async def start(self, stack: AsyncExitStack, earlier: str) -> None:
        """Continues the `earlier` session, if the agent still has it. Raises ToolError."""
        try:
            await self._transport.open(self._connection.receive, self._lose)
            stack.push_async_callback(self.close)
            async with asyncio.timeout(self.spec.start_timeout):
                await self._shake_hands()
                await self._open_session(stack, earlier)
                await self._set_asking_mode()
                self._asks = bool(self.spec.mode)
        except TimeoutError:
            raise self._failure(f"no handshake within {self.spec.start_timeout:g} s (start_timeout)") from None
        except (AcpError, ServerUnavailable) as problem:
            raise self._failure(str(problem)) from None

    async def _shake_hands(self) -> None:
        capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
        self.info = await self._connection.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": capabilities,
                "clientInfo": {"name": "toolreeve", "title": "Toolreeve", "version": VERSION},
            },
        )
        if self.info.get("protocolVersion") != PROTOCOL_VERSION:
            raise self._failure(f"it speaks version {self.info.get('protocolVersion')!r:.40}, not {PROTOCOL_VERSION}")
        if self.spec.profile.auth:
            await self._connection.request("authenticate", {"methodId": self.spec.profile.auth})

    async def _open_session(self, stack: AsyncExitStack, earlier: str) -> None:
        servers = []
        if self._own_server:
            tools = serve_tools(self.road, self._folder, name=self._own_server)
            self._tools, entry = await stack.enter_async_context(tools)
            servers.append(entry)
        params = {"cwd": self._cwd, "mcpServers": servers}
        capabilities = self.info.get("agentCapabilities")
        if earlier and isinstance(capabilities, dict) and capabilities.get("loadSession") is True:
            self.session_id = earlier
            with contextlib.suppress(AcpError):  # it has forgotten the session
                self._opened = await self._connection.request("session/load", {"sessionId": earlier, **params})
                return
        self._opened = await self._connection.request("session/new", params)
        self.session_id = str(self._opened.get("sessionId", ""))

    async def _set_asking_mode(self) -> None:
        """Raises ToolError if the agent has no such mode, or does not change to it."""
        wanted = self.spec.mode
        match self._opened.get("modes"):
            case {"availableModes": list(available), **modes}:
                current = modes.get("currentModeId")
            case _:
                available, current = [], None
        if not wanted or current == wanted:
            return
        offered = [each.get("id") for each in available if isinstance(each, dict)]
        if wanted in offered:
            await self._connection.request("session/set_mode", {"sessionId": self.session_id, "modeId": wanted})
            return
        option = _mode_option(self._opened.get("configOptions"), wanted)
        if option is None:
            known = ", ".join(str(each) for each in offered) or "none"
            raise self._failure(f"it has no mode {wanted!r} that asks for everything (mode); it has {known}")
        params = {"sessionId": self.session_id, "configId": option, "value": wanted}
        await self._connection.request("session/set_config_option", params)

    async def prompt(self, text: str, peer: "Peer | None" = None) -> AgentTurn:
        """One turn; its questions are shown to `peer`. Raises ToolError if the agent fails; `turn` then has what is
        known of it."""
        self.turn = AgentTurn()
        self._cancelled.clear()
        self.road.peer = peer
        self.road.in_turn = True
        params = {"sessionId": self.session_id, "prompt": [{"type": "text", "text": text}]}
        try:
            answer = await self._connection.request("session/prompt", params, self.spec.timeout)
        except TimeoutError:
            self.cancel()
            raise self._failure(f"no end of its turn within {self.spec.timeout:g} s (timeout)") from None
        except asyncio.CancelledError:
            self.cancel()
            raise
        except (AcpError, ServerUnavailable) as problem:
            if not self._cancelled.is_set() or self._lost:
                raise self._failure(str(problem)) from None
            answer = {"stopReason": "cancelled"}  # some agents answer a cancelled prompt with an error
        finally:
            await self._end_turn()
        self.turn.stop = str(answer.get("stopReason", ""))
        if isinstance(usage := answer.get("usage"), dict):
            self.turn.usage = usage
        return self.turn

    async def _end_turn(self) -> None:
        """Nothing that was begun for the agent goes on, and no question of it can be answered any more."""
        self.road.in_turn = False
        self._cancelled.set()
        await self._connection.cancel_requests()
        await self._terminals.end_turn()
        if self._tools is not None:
            await self._tools.end_turn()
        self.road.peer = None

    def cancel(self) -> None:
        """End the running turn. Permission requests that wait are answered as cancelled."""
        self._cancelled.set()
        with contextlib.suppress(ServerUnavailable):
            self._connection.notify("session/cancel", {"sessionId": self.session_id})

    async def _handle(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, f"{method[:100]} is not supported")
        if params.get("sessionId") != self.session_id:
            raise RpcError(INVALID_PARAMS, "no such session")
        if not self.road.in_turn and method not in ALWAYS_SERVED:
            raise RpcError(INVALID_REQUEST, BETWEEN_TURNS)
        return await handler(params)

    async def _permit(self, params: Mapping[str, Any]) -> dict[str, Any]:
        call = params.get("toolCall")
        if not isinstance(call, dict):
            raise RpcError(INVALID_PARAMS, "toolCall must be an object")
        merged = self._merge(call)
        answering = asyncio.create_task(self._permissions.answer(merged, params.get("options"), cwd=self._cwd))
        cancelled = asyncio.create_task(self._cancelled.wait())
        try:
            await asyncio.wait({answering, cancelled}, return_when=asyncio.FIRST_COMPLETED)
            if self._cancelled.is_set():
                return {"outcome": outcome_of(None)}
            outcome, refusal = answering.result()
        finally:
            for task in (answering, cancelled):
                task.cancel()
            await asyncio.gather(answering, cancelled, return_exceptions=True)
        if refusal:
            self.turn.refusals.append(refusal)
        return outcome

    def _merge(self, call: dict[str, Any]) -> Mapping[str, Any]:
        try:
            return self.turn.merge_call(call)
        except Flood as problem:
            raise RpcError(INVALID_PARAMS, str(problem)) from None

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        update = params.get("update")
        if method != "session/update" or params.get("sessionId") != self.session_id or not isinstance(update, dict):
            return
        if self._asks and (left := _mode_in(update)) not in ("", self.spec.mode):
            self._lose(f"it left the mode {self.spec.mode!r} that asks for everything, for {left!r:.60}")
            return
        if not self.road.in_turn:  # such as an earlier conversation that it shows again
            return
        try:
            self.turn.apply(update)
        except Flood as problem:
            self._lose(f"it sent {problem}")
            return
        self._on_update(update)

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or reason
        self._cancelled.set()
        self._connection.lose(reason)

    def _failure(self, reason: str) -> ToolError:
        said = self.road.reeve.internals.redact(self._transport.last_output())
        last = f"; it said last: {said[-600:]}" if said else ""
        return ToolError(ErrorCode.TOOL_EXEC, f"the agent {self.spec.name!r} failed: {reason}{last}")

    async def close(self) -> None:
        """Its process is gone, with all that it started."""
        await self._connection.cancel_requests()
        await self._terminals.close()
        await self._transport.close()


def _mode_option(options: Any, wanted: str) -> str | None:
    """The id of the configuration option of category `mode` that has this value, by itself or in a group."""
    for option in options if isinstance(options, list) else ():
        if isinstance(option, dict) and option.get("category") == "mode" and wanted in _values(option.get("options")):
            return str(option.get("id"))
    return None


def _mode_in(update: Mapping[str, Any]) -> str:
    """The mode that an update says the agent is in now; empty if it says none."""
    match update:
        case {"sessionUpdate": "current_mode_update", "currentModeId": str(mode)}:
            return mode
        case {"sessionUpdate": "config_option_update", "configOptions": list(options)}:
            modes = [each for each in options if isinstance(each, dict) and each.get("category") == "mode"]
            return str(modes[0].get("currentValue", "")) if modes else ""
    return ""


def _values(options: Any) -> list[Any]:
    listed = [each for each in options if isinstance(each, dict)] if isinstance(options, list) else []
    return [value for each in listed for value in (each.get("value"), *_values(each.get("options")))]


def _ignore(_: Mapping[str, Any]) -> None:
    """The default `on_update`."""


@asynccontextmanager
async def hold_agent(
    reeve: "Toolreeve",
    spec: AgentSpec,
    *,
    session: str = "",
    principal: Principal | None = None,
    on_update: OnUpdate = _ignore,
    earlier: str = "",
) -> AsyncIterator[HeldAgent]:
    """The agent with a session, ready for prompts; `earlier` is its own id of one to continue. Raises ToolError."""
    principal = principal or find_local_principal(reeve.configuration).for_agents
    road = Road(
        reeve=reeve,
        session=session or reeve.session,
        principal=principal,
        client=spec.name,
        profile=reeve.configuration.settings.error_profile,
    )
    judge = Judge(reeve.configuration, principal)
    async with AsyncExitStack() as stack:
        stack.callback(judge.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolreeve-agent-"))) / "tools"
        folder.mkdir()
        folder.chmod(0o755)  # the agent may run as another user; the folder above is private to us
        home = spec.home_of(principal.user)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The agent reads the folder and changes nothing in it; other agents of the same user do not see it.
        program = spec.program_in(home, str(folder))
        agent = HeldAgent(reeve, spec, reeve.internals.connect(program), road, judge, on_update, folder)
        await agent.start(stack, earlier)
        yield agent
