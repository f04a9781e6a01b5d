"""The road: the stages that every call takes, through every door.

resolve → validate → decide → approve → admit → execute → recover → record. There is no other way to a tool.
Stages raise `ToolError`; here, and only here, it becomes a result. Whatever happens, the call's record is closed.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from toolreeve.confinement.execution import ConfinedExecution
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context, ProgramBounds, Services
from toolreeve.core.effects import FILE_EFFECTS, EffectKind
from toolreeve.core.entry import Entry
from toolreeve.core.errors import TRAITS, ErrorCode, Severity, ToolError, describe_crash, describe_traceback
from toolreeve.core.names import client_arguments
from toolreeve.core.result import Failure, Output, Success, ToolResult, new_result
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.execution.admission import Admission
from toolreeve.execution.executor import Executor
from toolreeve.execution.outputs import OutputStore
from toolreeve.execution.recovery import suggest
from toolreeve.policy.confinement import bounds_of, hides_history
from toolreeve.policy.layers import PolicyState, decide, with_rationale
from toolreeve.policy.shadow import decide_shadow
from toolreeve.policy.trial import decide_trial
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.registry import ToolRegistry

if TYPE_CHECKING:
    from toolreeve.approval.broker import Broker
    from toolreeve.approval.request import Approval
    from toolreeve.confinement.held_trials import HeldTrial
    from toolreeve.confinement.trials import TrialStage
    from toolreeve.information_flow.stage import InformationFlow

logger = logging.getLogger(__name__)

REFUSAL_CODES = {
    "floor": ErrorCode.PATH_FORBIDDEN,
    "budget": ErrorCode.BUDGET,
    "exhaustion": ErrorCode.BUDGET,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    registry: ToolRegistry
    policy: Callable[[], PolicyState]
    broker: "Callable[[], Broker]"
    """The broker, and below the trials, are built when the first call needs them."""
    admission: Admission
    executor: Executor
    journal: Journal
    events: EventPublisher
    services: Services
    trials: "Callable[[], TrialStage]"
    flow: "InformationFlow"
    outputs: OutputStore
    clock: Callable[[], float]
    find_confinements: Callable[[], Awaitable[None]]
    """Tells the policy what the sandbox enforces, before the first decision that depends on it."""
    revoked: set[str] = field(default_factory=set)
    expect: Callable[[ToolCall], Awaitable[None]] | None = None
    """Waits for a tool that is not registered yet. Raises ToolError if it knows why the tool is missing."""
    confinement: ConfinedExecution = field(init=False)

    def __post_init__(self) -> None:
        confined = ConfinedExecution(
            self.policy, self.broker, self.trials, perform=self._perform, replay=self._replay, ask=self._ask
        )
        object.__setattr__(self, "confinement", confined)

    async def run(self, call: ToolCall) -> ToolResult:
        entry = Entry(call, at=self.services.now(), started=self.clock())
        entry.meta.text_limit = self.outputs.limit_for(call)
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
            entry.crash = describe_traceback(crash)
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
        if call.id in self.revoked:
            raise ToolError(ErrorCode.PERMISSION, "the credential of this call is no longer accepted")
        if self.expect is not None and call.tool not in self.registry:
            await self.expect(call)
        tool = self.registry.resolve(call.tool, hidden=call.peer is not None)
        meta.tool = tool.spec.name
        entry.marks.append(self.clock())
        args = tool.input.parse(client_arguments(call.tool, call.args))
        action = entry.action = Action(call, tool, args, self.services.files)
        entry.marks.append(self.clock())
        if tool.blocking:
            await self._load(action, entry)
        else:
            self._screen(action, entry)
        if tool.spec.confinable:
            await self.find_confinements()
        if not self.flow.is_plain(action) or self.policy().uses_labels:
            await self.flow.prepare(action)
        meta.verdict = self._decide(action)
        entry.shadow = decide_shadow(action, meta.verdict, self.policy())
        entry.marks.append(self.clock())
        if meta.verdict.decision is Decision.ALLOW and meta.verdict.runs is not Confinement.WORK:
            output = await self.confinement.run(action, entry)
            if output is not None:
                return output
        if meta.verdict.decision is not Decision.ALLOW:
            action = entry.action = await self._permit_tried(action, entry)
        return await self.confinement.work(action, entry)

    async def _ask(self, action: Action, entry: Entry, verdict: Verdict) -> "Approval":
        asked = self.clock()
        try:
            version = self.policy().version
            return await self.broker().settle(action, verdict, version=version, preview=entry.preview)
        finally:
            entry.waited += self.clock() - asked

    async def _perform(self, action: Action, entry: Entry, *, over_layers: bool = False) -> Output:
        """Admit and execute the call, with its programs confined to `meta.runs`, or over layers."""
        meta = entry.meta
        async with self.admission.admit(action, may_overspend=meta.verdict.layer == "bypass") as passage:
            if passage.output is not None:
                meta.cached = True
                return self._describe(entry, passage.output)
            if not entry.intended and (not action.read_only or meta.approved_by is not None):
                await self.journal.intend(entry)
            self.events.started(entry)
            begun = self.clock()
            if not entry.executed:
                entry.marks.append(begun - entry.waited)
            bounds = partial(self._bounds, action, entry, over_layers=over_layers)
            try:
                output = await self.executor.run(action, meta, bounds)
            finally:
                entry.executed += self.clock() - begun
            action.observe(output.effects)
            passage.done(output)
            return self._describe(entry, output)

    async def _replay(self, action: Action, entry: Entry, held: "HeldTrial") -> Output | ToolError:
        """How a call ended that ran before, and is repeated with the answer to its question."""
        await self.journal.intend(entry)
        if not isinstance(held.ended, Output):
            return held.ended
        action.observe(held.ended.effects)
        return self._describe(entry, held.ended)

    def _bounds(self, action: Action, entry: Entry, *, over_layers: bool) -> ProgramBounds:
        runs = entry.meta.runs
        bounds = bounds_of(Confinement.TRY if over_layers else runs, action)
        if runs is not Confinement.WORK and hides_history(action, self.policy()):
            bounds = replace(bounds, hides_history=True)
        if runs is Confinement.TRY:
            return replace(bounds, seconds=self.trials().seconds)
        return replace(bounds, approved=True) if over_layers else bounds

    def _decide(self, action: Action) -> Verdict:
        state = self.policy()
        verdict = decide_trial(action, with_rationale(decide(action, state), action), state)
        return verdict if action.flow is None else self.flow.tighten(action, verdict)

    def _screen(self, action: Action, entry: Entry) -> None:
        """Refuse a call that the tool itself would refuse, before anyone is asked for approval."""
        if (refusal := self.refusal(action)) is not None:
            if TRAITS[refusal.code].severity is Severity.FATAL:  # else it is a mistake, which nobody decided
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

    async def _permit_tried(self, action: Action, entry: Entry) -> Action:
        """As `_permit`. A refusal says why the confined run was not enough, and keeps what it printed."""
        try:
            return await self._permit(action, entry)
        except ToolError as refusal:
            if entry.tried is not None:
                refusal.data = refusal.data or entry.tried.data
                refusal.message = f"{refusal.message}; {entry.tried.why}"
            raise

    async def _permit(self, action: Action, entry: Entry) -> Action:
        """Ask if the verdict says so; decide again after the wait, and revalidate an edited call first."""
        _refuse_denied(entry.meta.verdict)
        self._refuse_guarded(action)
        if action.spec.confinable and (obstacle := self.confinement.undo_obstacle(action, entry)):
            entry.meta.verdict = entry.meta.verdict.without_undo(obstacle)
        approval = await self._ask(action, entry, entry.meta.verdict)
        entry.meta.approved_by = approval.by
        entry.meta.binding = approval.binding
        entry.only = approval.only
        if approval.args is not None:
            action = Action(action.call, action.tool, action.tool.input.parse(approval.args), self.services.files)
            if action.tool.blocking:
                await self._load(action, entry)
            else:
                self._screen(action, entry)
            if not self.flow.is_plain(action) or self.policy().uses_labels:
                await self.flow.prepare(action)
        action = await action.again()
        verdict = self._decide(action)
        if verdict.decision is Decision.DENY:
            entry.meta.verdict = verdict
        _refuse_denied(verdict)
        if action.flow is not None:
            await self.flow.approved(action, verdict, by=approval.by, known=approval.know)
        return action

    def _refuse_guarded(self, action: Action) -> None:
        """Refuse without asking what the guard would refuse anyway. A screen that does not block has checked paths. One
        that blocks (undo) knows them from the record: a link that was put there since is replaced, not followed."""
        if action.tool.screen is not None and not action.tool.blocking:
            return
        for effect in action.effects:
            if effect.kind in FILE_EFFECTS:
                changes = effect.kind is not EffectKind.READ
                finding = self.services.files.explain(effect.target, change=changes, follow=not action.tool.blocking)
                if finding.decision == "deny":
                    raise ToolError(ErrorCode(finding.code or ErrorCode.PATH_FORBIDDEN), finding.reason)

    def _describe(self, entry: Entry, output: Output) -> Output:
        meta = entry.meta
        meta.sandbox = output.sandbox
        meta.command = output.command
        meta.truncated = output.truncated
        meta.labels = output.labels
        meta.raw = output.raw
        meta.unconfined = output.command is not None and output.sandbox == "none"
        meta.order = output.order
        meta.images = output.images
        meta.diagnostics = output.diagnostics
        return output

    async def _recover(self, error: ToolError, entry: Entry) -> Failure:
        suggestions = error.suggestions
        if error.__cause__ is not None and error.code is ErrorCode.TOOL_EXEC:
            entry.crash = describe_traceback(error.__cause__)
            logger.debug("%s: %s failed\n%s", entry.call.id, entry.meta.tool, entry.crash)
        for name, value in (error.meta or {}).items():
            setattr(entry.meta, name, value)
        entry.meta.unconfined = (error.meta or {}).get("sandbox") == "none"
        if not suggestions and TRAITS[error.code].recoverable and entry.action is not None:
            suggestions = await suggest(error, entry.action.args, self.services.files)
            entry.meta.auto_recovery = bool(suggestions)
        return Failure(error.code, error.message, suggestions, error.detail, error.retryable, error.data)

    async def _close(self, entry: Entry, outcome: Success | Failure) -> ToolResult:
        entry.outcome = outcome
        duration = entry.executed or self.clock() - entry.started - entry.waited
        entry.meta.duration_ms = round(duration * 1000, 3)
        entry.meta.waited_ms = round(entry.waited * 1000, 3)
        entry.meta.labels = self.flow.label(entry)
        if entry.executed and entry.action is not None and not entry.action.read_only:
            await self.flow.label_files(entry.action)
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
