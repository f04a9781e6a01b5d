"""The road: the pipeline of stages that every call, through every door, takes.

resolve → validate → decide → approve → admit → execute → recover → record. There is no other way to a tool.
Stages raise `ToolError`; here, and only here, it becomes a result. Whatever happens, the call's record is closed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from toolreeve.approval.broker import Broker
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context, Services
from toolreeve.core.effects import EffectKind
from toolreeve.core.entry import Entry
from toolreeve.core.errors import TRAITS, ErrorCode, ToolError, describe_crash
from toolreeve.core.result import Failure, Output, Success, ToolResult, new_result
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.execution.admission import Admission
from toolreeve.execution.executor import Executor
from toolreeve.execution.recovery import suggest
from toolreeve.execution.stopped_write import stopped_write
from toolreeve.policy.confinement import bounds_of
from toolreeve.policy.layers import PolicyState, decide, with_rationale
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.trial import decide_trial
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.registry import ToolRegistry

REFUSAL_CODES = {
    "floor": ErrorCode.PATH_FORBIDDEN,
    "budget": ErrorCode.BUDGET,
    "exhaustion": ErrorCode.BUDGET,
}
FILE_EFFECTS = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    registry: ToolRegistry
    policy: Callable[[], PolicyState]
    broker: Broker
    admission: Admission
    executor: Executor
    journal: Journal
    events: EventPublisher
    services: Services
    clock: Callable[[], float]
    find_confinements: Callable[[], Awaitable[None]]
    """Tells the policy what the sandbox enforces, before the first decision that depends on it."""
    revoked: set[str] = field(default_factory=set)
    expect: Callable[[ToolCall], Awaitable[None]] | None = None
    """Waits for a tool that is not registered yet. Raises ToolError if it knows why the tool is missing."""

    async def run(self, call: ToolCall) -> ToolResult:
        entry = Entry(call, at=self.services.now(), started=self.clock())
        self.events.arrived()
        try:
            outcome = await self._outcome(entry)
        except asyncio.CancelledError:
            outcome = Failure(ErrorCode.CANCELLED, "the call was cancelled before it ended")
            result = await asyncio.shield(self._close(entry, outcome))
            if call.id not in self.revoked:
                raise
            return result
        except Exception as crash:
            outcome = Failure(ErrorCode.TOOL_EXEC, describe_crash(crash), retryable=True)
        return await self._close(entry, outcome)

    async def _outcome(self, entry: Entry) -> Success | Failure:
        try:
            output = await self._travel(entry)
        except ToolError as error:
            return await self._recover(error, entry)
        return Success(output.data, output.main)

    async def _travel(self, entry: Entry) -> Output:
        call = entry.call
        meta = entry.meta
        if self.expect is not None and call.tool not in self.registry:
            await self.expect(call)
        tool = self.registry.resolve(call.tool, hidden=call.peer is not None)
        meta.tool = tool.spec.name
        action = entry.action = Action(call, tool, tool.input.parse(call.args), self.services.files)
        if tool.blocking:
            await self._load(action, entry)
        else:
            self._screen(action, entry)
        if tool.spec.confinable:
            await self.find_confinements()
        meta.verdict = self._decide(action)
        if meta.verdict.decision is Decision.ALLOW:
            meta.runs = meta.verdict.runs
            try:
                return await self._perform(action, entry)
            except ToolError as error:
                self._require_stopped(error, entry)
        action = entry.action = await self._permit(action, entry)
        meta.runs = Confinement.WORK
        return await self._perform(action, entry)

    async def _perform(self, action: Action, entry: Entry) -> Output:
        """Admit and execute the call, with its programs confined to `meta.runs`."""
        meta = entry.meta
        async with self.admission.admit(action, may_overspend=meta.verdict.layer == "bypass") as passage:
            if passage.output is not None:
                meta.cached = True
                return self._describe(entry, passage.output)
            if not action.read_only or meta.approved_by is not None:
                await self.journal.intend(entry)
            self.events.started(entry)
            output = await self.executor.run(action, meta, lambda: bounds_of(meta.runs, action))
            passage.done(output)
            return self._describe(entry, output)

    def _decide(self, action: Action) -> Verdict:
        state = self.policy()
        return decide_trial(action, with_rationale(decide(action, state), action), state)

    def _require_stopped(self, error: ToolError, entry: Entry) -> None:
        """Raise the error again, unless it means that what was allowed as reading tried to write: then ask."""
        path = stopped_write(error) if entry.meta.runs is Confinement.LOOK else ""
        if not path:
            raise error
        reason = f"stopped: this command was allowed as read-only and tried to write {path}"
        entry.meta.verdict = Verdict(Decision.ASK, "default", reason)
        if self.policy().mode is PermissionMode.PLAN or not self.broker.can_ask(entry.call):
            error.message = f"{reason} ({error.message})"
            raise error

    def _screen(self, action: Action, entry: Entry) -> None:
        """Refuse a call that the tool itself would refuse, before anyone is asked for approval."""
        if (refusal := self.refusal(action)) is not None:
            entry.meta.verdict = Verdict(Decision.DENY, "tool", refusal.message)
            raise refusal

    async def _load(self, action: Action, entry: Entry) -> None:
        """Compute effects and screen in a thread, for a tool that reads the database for them."""
        await action.load()
        await asyncio.to_thread(self._screen, action, entry)

    def refusal(self, action: Action) -> ToolError | None:
        """The tool's own objection to the call, which no policy or approval overrides."""
        if action.tool.screen is None:
            return None
        try:
            action.tool.screen(action.args, Context(action.call, self.services))
        except ToolError as refusal:
            return refusal
        return None

    async def _permit(self, action: Action, entry: Entry) -> Action:
        """Ask if the verdict says so; decide again after the wait, and revalidate an edited call first."""
        _refuse_denied(entry.meta.verdict)
        self._refuse_guarded(action)
        approval = await self.broker.settle(action, entry.meta.verdict, version=self.policy().version)
        entry.meta.approved_by = approval.by
        entry.meta.binding = approval.binding
        if approval.args is not None:
            action = Action(action.call, action.tool, action.tool.input.parse(approval.args), self.services.files)
            if action.tool.blocking:
                await self._load(action, entry)
            else:
                self._screen(action, entry)
        action = await action.again()
        verdict = self._decide(action)
        if verdict.decision is Decision.DENY:
            entry.meta.verdict = verdict
        _refuse_denied(verdict)
        return action

    def _refuse_guarded(self, action: Action) -> None:
        """Refuse without asking what the guard would refuse anyway. A screen that does not block has checked paths."""
        if action.tool.screen is not None and not action.tool.blocking:
            return
        for effect in action.effects:
            if effect.kind in FILE_EFFECTS:
                finding = self.services.files.explain(effect.target, change=effect.kind is not EffectKind.READ)
                if finding.decision == "deny":
                    raise ToolError(ErrorCode(finding.code or ErrorCode.PATH_FORBIDDEN), finding.reason)

    def _describe(self, entry: Entry, output: Output) -> Output:
        meta = entry.meta
        meta.sandbox = output.sandbox
        meta.command = output.command
        meta.truncated = output.truncated
        meta.labels = output.labels
        meta.raw = output.raw
        meta.diagnostics = output.diagnostics
        return output

    async def _recover(self, error: ToolError, entry: Entry) -> Failure:
        suggestions = error.suggestions
        for name, value in (error.meta or {}).items():
            setattr(entry.meta, name, value)
        if not suggestions and TRAITS[error.code].recoverable and entry.action is not None:
            suggestions = await suggest(error, entry.action.args, self.services.files)
            entry.meta.auto_recovery = bool(suggestions)
        return Failure(error.code, error.message, suggestions, error.detail, error.retryable, error.data)

    async def _close(self, entry: Entry, outcome: Success | Failure) -> ToolResult:
        entry.outcome = outcome
        entry.meta.duration_ms = round((self.clock() - entry.started) * 1000, 3)
        self.events.ended(entry)
        try:
            if (written := self.journal.close(entry)) is not None:
                await self._wait(written, entry)
        except ToolError as unwritten:
            outcome = Failure(unwritten.code, f"the call ended but could not be recorded: {unwritten.message}")
        return new_result(outcome, entry.meta)

    async def _wait(self, written: asyncio.Future[None], entry: Entry) -> None:
        """A call revoked while only its record is outstanding has ended: its result is returned."""
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            if entry.call.id not in self.revoked:
                raise
            await asyncio.shield(written)


def _refuse_denied(verdict: Verdict) -> None:
    if verdict.decision is Decision.DENY:
        code = REFUSAL_CODES.get(verdict.layer, ErrorCode.DENIED)
        raise ToolError(code, verdict.reason, suggestions=(verdict.advice,) if verdict.advice else ())
