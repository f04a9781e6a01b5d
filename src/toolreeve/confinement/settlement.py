"""Settlement of a trial: its changes are kept, asked about, or discarded.

Observed changes meet the same rules as predicted ones, and an approval covers exactly the bytes that were shown.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from toolreeve.approval.broker import Broker
from toolreeve.approval.request import Approval
from toolreeve.confinement.trials import FinishedTrial, TrialStage
from toolreeve.core.action import Action
from toolreeve.core.entry import Entry
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.trial import NOTHING_CHANGED, ObservedChanges
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import decide_changes, installs, refuse_changes

Ask = Callable[[Action, Entry, Verdict], Awaitable[Approval]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettlement:
    broker: Broker
    ask: Ask
    policy: Callable[[], PolicyState]
    trials: TrialStage

    async def settle(self, trial: FinishedTrial, action: Action, entry: Entry) -> str:
        """Why the call must be asked about before it runs for real; empty if its trial is all that is needed.

        Raises ToolError if its changes were refused. Plan mode discards them without an error.
        """
        state = self.policy()
        is_planning = state.mode is PermissionMode.PLAN
        problem = trial.problem
        if trial.dropped and installs(action):
            problem = problem or "it installs what a trial discards"
        if problem and not is_planning:
            return self._give_up(trial, entry, problem)
        if not trial.kept:
            entry.meta.trial = trial.record("unchanged")
            return ""
        changes = await self.trials.observed(trial)
        verdict = decide_changes(action, changes, state)
        entry.meta.trial = trial.record("dropped", verdict.reason)
        match verdict.decision:
            case Decision.ALLOW:
                entry.meta.verdict = verdict
                return await self._keep(trial, entry)
            case Decision.DENY if is_planning:
                return ""
            case Decision.DENY:
                entry.meta.verdict = verdict
                raise ToolError(ErrorCode.DENIED, f"{verdict.reason}. {NOTHING_CHANGED}")
            case Decision.ASK:
                return await self._ask(trial, action, entry, verdict, changes)

    async def settle_work(self, trial: FinishedTrial, action: Action, entry: Entry) -> str:
        """Why a call that was allowed to run for real must run without layers; empty if all it changed is kept.

        Raises ToolError if that is forbidden or cannot be committed: then nothing was changed, and it does not run
        again, which could overwrite what another program has changed meanwhile.
        """
        if trial.problem and not trial.is_conflicting:
            entry.meta.trial = trial.record("impossible", trial.problem)
            return trial.problem
        entry.meta.trial = trial.record("unchanged")
        if not trial.paths:
            return ""
        changes = ObservedChanges(effects=trial.effects)
        if (refusal := refuse_changes(action, changes, self.policy())) is not None:
            entry.meta.trial = trial.record("dropped", refusal.reason)
            entry.meta.verdict = refusal
            raise ToolError(ErrorCode.DENIED, f"{refusal.reason}. {NOTHING_CHANGED}")
        chosen = trial.paths if entry.only is None else self._choose(trial, entry, entry.only)
        try:
            await self.trials.keep(trial, entry.call, chosen)
        except ToolError as problem:
            entry.meta.trial = trial.record("dropped", problem.message)
            problem.message = f"the command ran, but its changes were not kept: {problem.message}. {NOTHING_CHANGED}"
            raise
        if trial.kept:
            entry.meta.trial = trial.record_kept(chosen)
        return ""

    async def _ask(
        self, trial: FinishedTrial, action: Action, entry: Entry, verdict: Verdict, changes: ObservedChanges
    ) -> str:
        if not self.broker.can_ask(entry.call):
            raise ToolError(ErrorCode.PERMISSION, f"{verdict.reason}, and nobody can be asked. {NOTHING_CHANGED}")
        entry.preview = await asyncio.to_thread(trial.preview)
        if not self.trials.keeps:
            return verdict.reason
        entry.meta.verdict = verdict
        await self._ask_to_keep(action.after_trial(changes.effects, trial.digest), entry, verdict)
        again = decide_changes(action, changes, self.policy())
        if again.decision is Decision.DENY:
            entry.meta.verdict = again
            raise ToolError(ErrorCode.DENIED, f"{again.reason}. {NOTHING_CHANGED}")
        return await self._keep(trial, entry)

    async def _ask_to_keep(self, observed: Action, entry: Entry, verdict: Verdict) -> None:
        try:
            approval = await self.ask(observed, entry, verdict)
        except ToolError as refusal:
            refusal.message = f"{refusal.message}. {NOTHING_CHANGED}"
            raise
        if approval.args is not None:
            reason = f"the arguments were edited after the command had run on trial. {NOTHING_CHANGED}"
            raise ToolError(ErrorCode.APPROVAL_DENIED, reason)
        entry.meta.approved_by = approval.by
        entry.meta.binding = approval.binding
        entry.only = approval.only

    async def _keep(self, trial: FinishedTrial, entry: Entry) -> str:
        chosen = None if entry.only is None else self._choose(trial, entry, entry.only)
        try:
            await self.trials.keep(trial, entry.call, chosen)
        except ToolError as problem:
            return self._give_up(trial, entry, problem.message)
        entry.meta.trial = trial.record("kept") if chosen is None else trial.record_kept(chosen)
        return ""

    def _choose(self, trial: FinishedTrial, entry: Entry, only: Sequence[str]) -> Sequence[str]:
        try:
            return trial.choose(only)
        except ToolError as unknown:
            entry.meta.trial = trial.record("dropped", unknown.message)
            raise

    def _give_up(self, trial: FinishedTrial, entry: Entry, why: str) -> str:
        entry.meta.trial = trial.record("stopped" if trial.is_stopped else "impossible", why)
        entry.meta.approved_by = None
        return why
