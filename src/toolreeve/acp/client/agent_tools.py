"""Each configured ACP agent as a tool, with a session per caller.

An agent stays until it is idle for a while, so that the next prompt of the same session continues its conversation, or
until the credential that it was called with is no longer accepted. Its own questions are asked where the call came
from. An agent that fails again and again is left alone for a while.
"""

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolreeve.acp.client.agents import AgentSpec
from toolreeve.acp.client.held_agent import HeldAgent, hold_agent
from toolreeve.acp.client.nested_peer import NestedPeer
from toolreeve.acp.client.profiles import SHELL, WRITE
from toolreeve.acp.client.remembered_session import RememberedSession
from toolreeve.acp.client.turn import AgentTurn
from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError, describe_crash
from toolreeve.core.limits import CircuitBreaker
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, tool

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

CATEGORY = "agent"
PREFIX = "agent_"
IDLE_SECONDS = 600.0
MARGIN = 30.0
MAX_HELD = 16
"""Agents of one user that are held at once."""
AgentKey = tuple[str, Principal, str]
"""The agent's name, its caller and their session."""
_SCHEMA = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "minLength": 1, "description": "What the agent is to do."}},
    "required": ["prompt"],
    "additionalProperties": False,
}
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    """An agent of one session, held in a task of its own. `credential` is the one it was last called with; None for a
    call inside this process."""

    ready: "asyncio.Future[HeldAgent]"
    credential: str | None = None
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    holder: "asyncio.Task[None] | None" = None
    timer: asyncio.TimerHandle | None = None


class AgentTools:
    """`bind` it to the runtime that has its tools, before that starts."""

    def __init__(self, agents: Sequence[AgentSpec], *, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._kept: dict[AgentKey, _Kept] = {}
        self._reeve: Toolreeve | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self.tools = [self._new_tool(spec) for spec in agents]

    def bind(self, reeve: "Toolreeve") -> None:
        self._reeve = reeve
        reeve.internals.closers.append(self.close)
        reeve.internals.on_credentials.append(self._end_revoked)

    def _end_revoked(self, accepted: Collection[str]) -> None:
        for key, kept in list(self._kept.items()):
            if kept.credential is not None and kept.credential not in accepted:
                task = asyncio.create_task(self._drop(key))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)

    def _new_tool(self, spec: AgentSpec) -> AnyFunctionTool:
        async def ask_agent(ctx: Context, prompt: str) -> Output:
            return await self._ask(spec, ctx.call, prompt)

        asks_us = {WRITE, SHELL} <= spec.profile.routes
        return tool(
            name=f"{PREFIX}{spec.name.replace('-', '_')}",
            description=spec.description,
            danger=DangerLevel.LOW if asks_us else DangerLevel.MEDIUM,
            category=CATEGORY,
            timeout=spec.timeout + spec.start_timeout + MARGIN,
            circuit_breaker=CircuitBreaker(),
            input_schema=_SCHEMA,
            tags=("acp",),
            source="acp_agents",
        )(ask_agent)

    async def _ask(self, spec: AgentSpec, call: ToolCall, prompt: str) -> Output:
        key = (spec.name, call.principal, call.session)
        while True:
            kept = self._kept.get(key)
            if kept is None or kept.closing.is_set():
                kept = await self._keep(key, spec, call)
            async with kept.turn:
                if not kept.closing.is_set():
                    return await self._take_turn(key, kept, call, prompt)

    async def _take_turn(self, key: AgentKey, kept: _Kept, call: ToolCall, prompt: str) -> Output:
        if kept.timer is not None:
            kept.timer.cancel()
        kept.credential = call.peer.credential if call.peer is not None else None
        try:
            agent = await asyncio.shield(kept.ready)
            turn = await self._reviewed(agent, call, prompt)
        except (ToolError, asyncio.CancelledError):  # an agent need not heed a cancellation: it ends
            await self._drop(key)
            raise
        kept.timer = asyncio.get_running_loop().call_later(self._idle, kept.closing.set)
        return _output(turn)

    async def _reviewed(self, agent: HeldAgent, call: ToolCall, prompt: str) -> AgentTurn:
        """The turn that your output governors accept; they may send the agent back to work."""
        internals = agent.road.reeve.internals
        for iteration in range(internals.max_reviews + 1):
            turn = await agent.prompt(prompt, NestedPeer(call.peer) if call.peer is not None else None)
            problem, follow_up = await internals.review_output(call.session, turn.text, iteration)
            if follow_up and iteration < internals.max_reviews:
                prompt = follow_up
                continue
            if problem:
                raise ToolError(ErrorCode.DENIED, problem)
            return turn
        raise AssertionError("the last attempt returns")

    async def _keep(self, key: AgentKey, spec: AgentSpec, call: ToolCall) -> _Kept:
        evicted = self._make_room(call.principal)
        kept = self._kept[key] = _Kept(asyncio.get_running_loop().create_future())
        kept.holder = asyncio.create_task(self._hold(key, kept, spec, call))
        if evicted is not None:
            await _end(evicted)
        return kept

    def _make_room(self, principal: Principal) -> _Kept | None:
        """The oldest idle agent of a user who has too many, to be ended. Raises ToolError if all of them work."""
        held = {key: kept for key, kept in self._kept.items() if key[1].user == principal.user}
        if len(held) < MAX_HELD:
            return None
        idle = next((key for key, kept in held.items() if kept.timer is not None and not kept.turn.locked()), None)
        if idle is None:
            raise ToolError(ErrorCode.RATE_LIMITED, f"{MAX_HELD} agents of this user work already; try again later")
        return self._kept.pop(idle)

    async def _hold(self, key: AgentKey, kept: _Kept, spec: AgentSpec, call: ToolCall) -> None:
        if self._reeve is None:
            raise AssertionError("the tools are bound to a runtime")
        principal = call.principal
        memory = RememberedSession(self._reeve.configuration, spec.name, principal.user, call.session)
        holding = hold_agent(self._reeve, spec, session=call.session, principal=principal, earlier=memory.read())
        try:
            async with holding as agent:
                await asyncio.to_thread(memory.write, agent.session_id)
                kept.ready.set_result(agent)
                await kept.closing.wait()
        except Exception as problem:
            if kept.ready.done():
                _logger.warning("%s", problem)
            else:
                crash = ToolError(ErrorCode.TOOL_EXEC, f"the agent {spec.name!r} failed: {describe_crash(problem)}")
                kept.ready.set_exception(problem if isinstance(problem, ToolError) else crash)
        finally:
            if self._kept.get(key) is kept:
                del self._kept[key]

    async def _drop(self, key: AgentKey) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            await _end(kept)

    async def close(self) -> None:
        for key in list(self._kept):
            kept = self._kept[key]
            if not kept.ready.done() and kept.holder is not None:
                kept.holder.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._drop(key)
        await asyncio.gather(*self._ending, return_exceptions=True)


async def _end(kept: _Kept) -> None:
    kept.closing.set()
    if kept.holder is not None:
        await asyncio.wait({kept.holder})


def _output(turn: AgentTurn) -> Output:
    data: dict[str, Any] = {
        "text": turn.text,
        "stop": turn.stop,
        "thoughts": turn.thoughts,
        "plan": turn.plan,
        "usage": turn.usage,
        "refusals": turn.refusals,
        "calls": [_summary(call) for call in turn.calls.values()],
    }
    if turn.stop not in ("end_turn", "max_tokens", "max_turn_requests"):
        raise ToolError(ErrorCode.TOOL_EXEC, f"the agent stopped: {turn.stop or 'it does not say why'}", data=data)
    return Output(data=data, main=turn.text)


def _summary(call: Mapping[str, Any]) -> dict[str, Any]:
    """A tool call of the agent, with its diffs."""
    content = call.get("content")
    diffs = [each for each in content if isinstance(each, dict) and each.get("type") == "diff"] if content else []
    return {
        "id": call.get("toolCallId"),
        "title": call.get("title"),
        "kind": call.get("kind"),
        "status": call.get("status"),
        **({"diffs": diffs} if diffs else {}),
    }
