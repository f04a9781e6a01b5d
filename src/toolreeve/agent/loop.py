"""The agent's loop: model, tool calls on the road, results back.

Ends exactly once, with an outcome: cancellation, errors and every limit included. Steps, seconds and dollars are
bounded. Nothing that a tool returns is treated as the user's words.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from toolreeve.agent.conversation import Conversation
from toolreeve.agent.errors import ModelError, ModelErrorKind, with_retries
from toolreeve.agent.events import AgentEvent, EventKind
from toolreeve.agent.messages import Message, ModelReply, ModelRequest, TokenUsage, ToolAnswer, ToolMessage
from toolreeve.agent.pricing import price
from toolreeve.agent.providers import ModelProvider
from toolreeve.core import json
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import ToolSpec
from toolreeve.formats import ParsedCall

REPEATS_NOTED = 3
REPEATS_ENDED = 5
STOPPING = frozenset(
    {
        ErrorCode.PERMISSION,
        ErrorCode.CMD_NOT_ALLOWED,
        ErrorCode.PATH_FORBIDDEN,
        ErrorCode.WRITE_DISABLED,
        ErrorCode.URL_FORBIDDEN,
        ErrorCode.BUDGET,
    }
)
"""Errors that end a run: no other argument would help, and the next attempt would be a way around a boundary."""
LATER = "Error: the call was not run. In this phase only tools that read may be called."
CUT = "Error: the call was not run. The reply reached its limit of tokens, so the arguments may be incomplete."
MOST_CALLS = 64
MANY = f"Error: the call was not run. At most {MOST_CALLS} calls of one reply are run; make it again if it is needed."


class Stop(StrEnum):
    COMPLETED = "completed"
    STEPS = "max_steps"
    SECONDS = "max_seconds"
    COST = "max_cost"
    TOKENS = "max_tokens"
    FATAL = "fatal_error"
    LOOP = "repeated_calls"
    MODEL = "model_error"
    OUTPUT = "invalid_output"
    CHECKS = "failed_checks"
    CANCELLED = "cancelled"


class ToolHost(Protocol):
    """The tools of a run. `run` never raises: what goes wrong is a result."""

    def specs(self) -> Sequence[ToolSpec]: ...

    async def run(self, call: ParsedCall) -> ToolResult: ...

    async def spend(self, dollars: float) -> bool:
        """Charge the budget; False once it is used up."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    steps: int = 50
    seconds: float = 1800.0
    cost: float | None = None
    context_tokens: int = 128_000


@dataclass(slots=True, kw_only=True)
class Outcome:
    """How a run ended, and what was done until then. `why` explains every end but completion. `unpriced` means that
    the price of a turn is not known, so that `cost` is too low."""

    stop: Stop
    text: str = ""
    why: str = ""
    steps: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost: float = 0.0
    unpriced: bool = False
    seconds: float = 0.0
    tools_used: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "stop": str(self.stop),
            "text": self.text,
            "why": self.why,
            "steps": self.steps,
            "usage": self.usage.to_dict(),
            "cost_usd": None if self.unpriced else round(self.cost, 6),
            "seconds": round(self.seconds, 3),
            "tools_used": list(self.tools_used),
        }


def _everything(_: ToolSpec) -> bool:
    return True


class _Stopped(Exception):
    def __init__(self, stop: Stop, why: str) -> None:
        super().__init__(why)
        self.stop = stop


class AgentLoop:
    """`emit` receives every event but the last, which belongs to the run as a whole. `keep` stores the conversation."""

    def __init__(
        self,
        provider: ModelProvider,
        tools: ToolHost,
        *,
        model: str,
        system: str,
        limits: RunLimits,
        emit: Callable[[AgentEvent], None],
        draw: Callable[[], float],
        temperature: float | None = None,
        max_tokens: int | None = None,
        stopping: frozenset[ErrorCode] = STOPPING,
        keep: Callable[[Sequence[Message]], Awaitable[None]] | None = None,
    ) -> None:
        self._provider = provider
        self._tools = tools
        self._model = model
        self._system = system
        self._limits = limits
        self._emit = emit
        self._draw = draw
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._stopping = stopping
        self._keep = keep
        self._offered: Callable[[ToolSpec], bool] = _everything
        self._repeats: Counter[tuple[str, str]] = Counter()
        self.outcome = Outcome(stop=Stop.COMPLETED)

    async def run(self, conversation: Conversation, offered: Callable[[ToolSpec], bool] = _everything) -> Outcome:
        """Until the model answers without a call, or something ends the run. Continues where it was called before.
        Only tools that are `offered` are shown and run."""
        self._offered = offered
        outcome = self.outcome
        try:
            self._check_price()
            async with asyncio.timeout(self._limits.seconds):
                outcome.text = await self._steps(conversation)
                outcome.stop = Stop.COMPLETED
        except _Stopped as stopped:
            outcome.stop = stopped.stop
            outcome.why = str(stopped)
        except TimeoutError:
            outcome.stop = Stop.SECONDS
            outcome.why = f"the run took longer than {self._limits.seconds:g} s"
        except ModelError as problem:
            outcome.stop = Stop.MODEL
            outcome.why = str(problem)
            if problem.kind is ModelErrorKind.CONFIGURATION and outcome.steps <= 1:
                raise
        except asyncio.CancelledError:
            outcome.stop = Stop.CANCELLED
            outcome.why = "the run was cancelled"
            raise
        return outcome

    def _check_price(self) -> None:
        """A limit that could not be enforced is refused."""
        if self._limits.cost is not None and price(self._provider.name, self._model, TokenUsage()) is None:
            raise ModelError(
                ModelErrorKind.CONFIGURATION,
                f"no price is known for {self._model!r}, so a run cannot be limited to ${self._limits.cost:.4f}: leave "
                "the budget out, or limit the steps",
            )

    async def _steps(self, conversation: Conversation) -> str:
        while self.outcome.steps < self._limits.steps:
            self.outcome.steps += 1
            reply, cost = await self._think(conversation)
            conversation.add(reply.message)
            if self._keep is not None:  # before the calls run: what may have begun is on record
                await self._keep(conversation.messages)
            if reply.message.text:
                self.outcome.text = reply.message.text
            try:
                if reply.message.calls:
                    await self._act(reply, conversation)
            finally:  # after the tools, so that what the model asked for is answered before the run ends
                is_within = await self._tools.spend(cost)
            if reply.message.calls:
                self._check_cost(is_within=is_within)
            elif reply.cut:
                raise _Stopped(Stop.TOKENS, "the answer is incomplete: it reached the model's limit of tokens")
            else:
                return reply.message.text
        raise _Stopped(Stop.STEPS, f"the run took {self._limits.steps} steps, its limit")

    async def _think(self, conversation: Conversation) -> tuple[ModelReply, float]:
        """The turn, and what it cost."""
        self._make_room(conversation, self._limits.context_tokens)
        try:
            reply = await self._turn(conversation)
        except ModelError as problem:
            # The estimate was too low: believe the provider, once.
            if problem.kind is not ModelErrorKind.CONTEXT or not self._make_room(conversation, conversation.tokens()):
                raise
            reply = await self._turn(conversation)
        cost = price(self._provider.name, self._model, reply.usage)
        self.outcome.usage += reply.usage
        self.outcome.cost += cost or 0.0
        self.outcome.unpriced = self.outcome.unpriced or cost is None
        self._emit(
            AgentEvent(
                EventKind.TURN,
                {
                    "text": reply.message.text,
                    "calls": [{"id": call.id, "tool": call.name, "args": call.args} for call in reply.message.calls],
                    "usage": reply.usage.to_dict(),
                    "cost_usd": None if cost is None else round(cost, 6),
                },
            )
        )
        return reply, cost or 0.0

    async def _turn(self, conversation: Conversation) -> ModelReply:
        request = ModelRequest(
            model=self._model,
            system=self._system,
            messages=tuple(conversation.messages),
            tools=self._specs(),
            temperature=self._temperature,
            max_tokens=self._max_tokens,
        )
        attempts = 0

        async def attempt() -> ModelReply:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                self._emit(AgentEvent(EventKind.RETRIED, {"attempt": attempts}))
            return await self._provider.complete(request, self._emit_text)

        return await with_retries(attempt, self._draw)

    def _specs(self) -> Sequence[ToolSpec]:
        specs = self._tools.specs()
        return specs if self._offered is _everything else [spec for spec in specs if self._offered(spec)]

    def _emit_text(self, text: str) -> None:
        self._emit(AgentEvent(EventKind.TEXT, {"text": text}))

    def _make_room(self, conversation: Conversation, limit: int) -> int:
        shortened = conversation.compact(limit)
        if shortened:
            self._emit(AgentEvent(EventKind.COMPACTED, {"results": shortened}))
        return shortened

    def _check_cost(self, *, is_within: bool) -> None:
        if not is_within:
            raise _Stopped(Stop.COST, "the budget is used up")
        if self._limits.cost is not None and self.outcome.cost >= self._limits.cost:
            raise _Stopped(Stop.COST, f"the run cost ${self.outcome.cost:.4f}, its limit is ${self._limits.cost:.4f}")

    async def _act(self, reply: ModelReply, conversation: Conversation) -> None:
        """Run the calls of a turn side by side. Every call is answered, or the provider refuses the next turn."""
        calls = reply.message.calls
        obstacles = self._obstacles(reply)
        async with asyncio.TaskGroup() as group:
            running = {
                place: group.create_task(self._call(call)) for place, call in enumerate(calls) if place not in obstacles
            }
        results = [task.result() for task in running.values()]
        answers = [
            self._answer(call, running[place].result())
            if place in running
            else ToolAnswer(id=call.id, name=call.name, text=obstacles[place], is_error=True)
            for place, call in enumerate(calls)
        ]
        conversation.add(ToolMessage(answers=tuple(answers)))
        for result in results:
            if result.error is not None and result.error.code in self._stopping:
                raise _Stopped(Stop.FATAL, f"{result.meta.tool}: {result.error.message} [{result.error.code}]")
        if self._repeats and max(self._repeats.values()) >= REPEATS_ENDED:
            raise _Stopped(Stop.LOOP, f"the same call returned the same result {REPEATS_ENDED} times")

    def _obstacles(self, reply: ModelReply) -> dict[int, str]:
        """Why a call of the turn is not run, by its place."""
        calls = reply.message.calls
        obstacles = dict.fromkeys(range(MOST_CALLS, len(calls)), MANY)
        if reply.cut:
            obstacles[len(calls) - 1] = CUT
        if self._offered is not _everything:
            offered = {spec.name for spec in self._specs()}
            obstacles |= {place: LATER for place, call in enumerate(calls) if call.name not in offered}
        return obstacles

    async def _call(self, call: ParsedCall) -> ToolResult:
        self._emit(AgentEvent(EventKind.TOOL_STARTED, {"id": call.id, "tool": call.name, "args": call.args}))
        result = await self._tools.run(call)
        used: dict[str, Any] = {"tool": call.name, "args": call.args, "success": result.success}
        if result.meta.auto_recovery:
            used["auto_recovery"] = True
        if result.error is not None:
            used["error"] = str(result.error.code)
        self.outcome.tools_used.append(used)
        self._emit(
            AgentEvent(
                EventKind.TOOL_ENDED,
                {"id": call.id, "call_id": result.meta.call_id, "duration_ms": result.meta.duration_ms, **used},
            )
        )
        return result

    def _answer(self, call: ParsedCall, result: ToolResult) -> ToolAnswer:
        text = result.to_text()
        key = (f"{call.name} {json.dumps(call.args).decode()}", text)
        self._repeats[key] += 1
        if self._repeats[key] >= REPEATS_NOTED:
            text += f"\n[This call has now returned the same result {self._repeats[key]} times. Try another way.]"
        meta = result.meta
        return ToolAnswer(
            id=call.id,
            name=call.name,
            text=text,
            is_error=not result.success,
            call_id=meta.call_id,
            labels=tuple(meta.labels),
        )
