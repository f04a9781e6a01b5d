"""Each configured ACP agent as a tool, with a session per caller.

An agent stays until it is idle for a while, so that the next prompt of the same session continues its conversation. Its
own questions are asked where the call came from. An agent that fails again and again is left alone for a while.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolreeve.acp.client.agents import AgentSpec
from toolreeve.acp.client.held_agent import HeldAgent, hold_agent
from toolreeve.acp.client.nested_peer import NestedPeer
from toolreeve.acp.client.profiles import SHELL, WRITE
from toolreeve.acp.client.turn import AgentTurn
from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import CircuitBreaker
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, tool

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve

CATEGORY = "agent"
PREFIX = "agent_"
IDLE_SECONDS = 600.0
MARGIN = 30.0
_SCHEMA = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "minLength": 1, "description": "What the agent is to do."}},
    "required": ["prompt"],
    "additionalProperties": False,
}
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    """An agent of one session, held in a task of its own."""

    ready: "asyncio.Future[HeldAgent]"
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    holder: "asyncio.Task[None] | None" = None
    timer: asyncio.TimerHandle | None = None


class AgentTools:
    """`bind` it to the runtime that has its tools, before that starts."""

    def __init__(self, agents: Sequence[AgentSpec], *, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._kept: dict[tuple[str, str, str], _Kept] = {}
        self._reeve: Toolreeve | None = None
        self.tools = [self._new_tool(spec) for spec in agents]

    def bind(self, reeve: "Toolreeve") -> None:
        self._reeve = reeve
        reeve.internals.closers.append(self.close)

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
        key = (spec.name, call.principal.user, call.session)
        kept = self._kept.get(key) or self._keep(key, spec, call)
        async with kept.turn:
            if kept.timer is not None:
                kept.timer.cancel()
            try:
                agent = await asyncio.shield(kept.ready)
                agent.road.peer = NestedPeer(call.peer) if call.peer is not None else None
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
            turn = await agent.prompt(prompt)
            problem, follow_up = await internals.review_output(call.session, turn.text, iteration)
            if follow_up and iteration < internals.max_reviews:
                prompt = follow_up
                continue
            if problem:
                raise ToolError(ErrorCode.DENIED, problem)
            return turn
        raise AssertionError("the last attempt returns")

    def _keep(self, key: tuple[str, str, str], spec: AgentSpec, call: ToolCall) -> _Kept:
        kept = self._kept[key] = _Kept(asyncio.get_running_loop().create_future())
        kept.holder = asyncio.create_task(self._hold(key, kept, spec, call))
        return kept

    async def _hold(self, key: tuple[str, str, str], kept: _Kept, spec: AgentSpec, call: ToolCall) -> None:
        if self._reeve is None:
            raise AssertionError("the tools are bound to a runtime")
        try:
            async with hold_agent(self._reeve, spec, session=call.session, principal=call.principal) as agent:
                kept.ready.set_result(agent)
                await kept.closing.wait()
        except ToolError as problem:
            if kept.ready.done():
                _logger.warning("%s", problem)
            else:
                kept.ready.set_exception(problem)
        finally:
            if self._kept.get(key) is kept:
                del self._kept[key]

    async def _drop(self, key: tuple[str, str, str]) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None and kept.holder is not None:
            kept.closing.set()
            await asyncio.wait({kept.holder})

    async def close(self) -> None:
        for key in list(self._kept):
            kept = self._kept[key]
            if not kept.ready.done() and kept.holder is not None:
                kept.holder.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._drop(key)


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
