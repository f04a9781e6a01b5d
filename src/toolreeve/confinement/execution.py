"""Confined execution: runs a call in the confinement that its verdict chose.

What only reads is stopped where it writes, what would be asked about runs on trial, and what was allowed for real runs
over layers that are kept, so that it can be undone. Nothing runs for real that was not allowed for real.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from toolreeve.core.action import Action
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.entry import ConfinedRun, Entry
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.core.trial import Confinement, ObservedChanges, TrialImpossible
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.execution.stopped import lacks_repository, refused_paths, stopped_read, stopped_write
from toolreeve.policy.conditions import absolute
from toolreeve.policy.confinement import hides_history
from toolreeve.policy.layers import decide, with_rationale
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import refuse_changes

if TYPE_CHECKING:
    from toolreeve.approval.broker import Broker
    from toolreeve.confinement.held_trials import HeldTrial
    from toolreeve.confinement.settlement import Ask
    from toolreeve.confinement.trials import FinishedTrial, TrialStage


class Perform(Protocol):
    """Admits and executes a call; `over_layers`, its programs change layers over the real trees."""

    def __call__(self, action: Action, entry: Entry, *, over_layers: bool = False) -> Awaitable[Output]: ...


Replay = Callable[[Action, Entry, "HeldTrial"], Awaitable[Output | ToolError]]
"""How a call ended whose trial was held."""


class ConfinedExecution:
    """For all calls, each under the policy of its moment."""

    __slots__ = ("_ask", "_broker", "_perform", "_policy", "_replay", "_trials")

    def __init__(
        self,
        policy: Callable[[], PolicyState],
        broker: "Callable[[], Broker]",
        trials: "Callable[[], TrialStage]",
        *,
        perform: Perform,
        replay: Replay,
        ask: "Ask",
    ) -> None:
        self._policy = policy
        self._broker = broker
        self._trials = trials
        self._perform = perform
        self._replay = replay
        self._ask = ask

    async def run(self, action: Action, entry: Entry) -> Output | None:
        """Run what is allowed in LOOK or TRY. None if it must be decided about after all: `meta.verdict` says why."""
        meta = entry.meta
        meta.runs = meta.verdict.runs
        if meta.runs is Confinement.TRY:
            return await self._try(action, entry)
        try:
            return await self._perform(action, entry)
        except ToolError as error:
            return await self._go_on_stopped(action, entry, error)

    async def work(self, action: Action, entry: Entry) -> Output:
        """Run what was allowed for real, over layers where that is possible. What cannot be committed because the real
        tree was changed meanwhile is an error, and does not run again."""
        entry.meta.runs = Confinement.WORK
        if obstacle := self.undo_obstacle(action, entry):
            if entry.only is not None:
                raise ToolError(
                    ErrorCode.APPROVAL_DENIED, f"only some changes were allowed, which needs undo: {obstacle}"
                )
            return await self._perform(action, entry)
        output = await self._run_over_layers(action, entry)
        return await self.work(action, entry) if output is None else output

    def undo_obstacle(self, action: Action, entry: Entry) -> str:
        """Why what the call changes cannot be undone if it runs for real; empty if it can."""
        if not action.spec.confinable:
            return "the tool does not run over layers"
        trial = entry.meta.trial
        if trial is not None and trial["outcome"] == "impossible":
            return str(trial["why"])
        return self._trials().find_undo_obstacle(action, self._policy())

    async def _go_on_stopped(self, action: Action, entry: Entry, error: ToolError) -> Output | None:
        """What was allowed as reading tried to write: it runs on trial, or is asked about. So is what tried to read a
        file that is hidden from it."""
        state = self._policy()
        reason = hidden = stopped_read(error, self._refuse_unread(action, entry, error))
        if path := stopped_write(error):
            reason = f"this command was allowed as read-only and tried to write {path}"
        if not reason:
            raise error
        reason = f"stopped: {reason}"
        if not hidden and action.spec.confinable and Confinement.TRY in state.confinements:
            entry.meta.verdict = Verdict(Decision.ALLOW, "trial", reason, runs=Confinement.TRY)
            return await self._try(action, entry)
        entry.meta.verdict = Verdict(Decision.ASK, "default", reason)
        if state.mode is PermissionMode.PLAN or not self._broker().can_ask(entry.call):
            error.message = f"{reason} ({error.message})"
            raise error
        entry.tried = ConfinedRun(error.data, reason)
        return None

    def _stopped(self, action: Action, entry: Entry, failure: ToolError | None) -> str:
        """Why a call that ran on trial failed, if that was because a file is hidden from it."""
        if failure is None or entry.meta.runs is not Confinement.TRY:
            return ""
        return stopped_read(failure, self._refuse_unread(action, entry, failure))

    def _refuse_unread(self, action: Action, entry: Entry, error: ToolError) -> Sequence[str]:
        """The paths that rules about reading kept from the failed program. Raises ToolError if one denies them."""
        state = self._policy()
        if not state.hidden:
            return ()
        found = [path for each in refused_paths(error) if state.is_unread(path := absolute(each, state.writable[0]))]
        reads = tuple(Effect(EffectKind.READ, path) for path in found)
        if reads and (refusal := refuse_changes(action, ObservedChanges(effects=reads), state)) is not None:
            entry.meta.verdict = refusal
            raise ToolError(ErrorCode.DENIED, f"stopped: it reads {found[0]}: {refusal.reason}", data=error.data)
        if hides_history(action, state) and lacks_repository(error):
            found.append("the history of git")
        return found

    async def _try(self, action: Action, entry: Entry) -> Output | None:
        """Run the call on trial. None if it is to be asked about beforehand."""
        entry.meta.runs = Confinement.TRY
        output = await self._run_over_layers(action, entry)
        if output is None:
            verdict = with_rationale(decide(action, self._policy()), action)
            reason = f"{verdict.reason}; tried before: {_why(entry)}"
            entry.meta.verdict = replace(verdict, decision=max(verdict.decision, Decision.ASK), reason=reason)
        return output

    async def _run_over_layers(self, action: Action, entry: Entry) -> Output | None:
        """Run the call, then settle what it changed. None if it must run without layers: `meta.trial` says why, and
        nothing of it has taken effect. A trial that is held for its question does not run again."""
        call = entry.call
        trials = self._trials()
        if why := trials.runs_elsewhere(action) or trials.oversized.get(_command(action)) or trials.find_large(action):
            entry.meta.trial = {"outcome": "impossible", "why": why}
            return None
        held = self._take_held(action, entry)
        await trials.begin()
        try:
            ended = await self._end(action, entry) if held is None else await self._replay(action, entry, held)
        except TrialImpossible as impossible:
            trials.discard(call.id)
            entry.meta.trial = {"outcome": "impossible", "why": impossible.reason}
            return None
        except BaseException:
            trials.discard(call.id)
            raise
        failure = ended if isinstance(ended, ToolError) else None
        if not await self._settle(action, entry, ended, held):
            if "trial.layer_mb" in _why(entry):
                trials.note_oversized(_command(action), _why(entry))
            entry.tried = ConfinedRun(ended.data, f"tried before: {_why(entry)}")
            return None
        if failure is not None:
            hidden = self._stopped(action, entry, failure)
            if hidden:  # in plan mode, which does not ask
                failure.message = f"stopped: {hidden} ({failure.message})"
            raise failure
        return ended if isinstance(ended, Output) else None

    async def _end(self, action: Action, entry: Entry) -> Output | ToolError:
        try:
            return await self._perform(action, entry, over_layers=True)
        except TrialImpossible:
            raise
        except ToolError as failure:
            return failure

    def _binding(self, action: Action, entry: Entry) -> str:
        from toolreeve.approval.pending import holder_of
        from toolreeve.approval.request import digest

        peer = entry.call.peer
        holder = holder_of(entry.call.principal, "" if peer is None else peer.credential)
        return f"{holder} {digest(action, version=self._policy().version)}"

    def _take_held(self, action: Action, entry: Entry) -> "HeldTrial | None":
        if entry.meta.runs is not Confinement.TRY or entry.call.peer is None:
            return None
        return self._trials().held.take(self._binding(action, entry))

    async def _settle(
        self, action: Action, entry: Entry, ended: Output | ToolError, held: "HeldTrial | None" = None
    ) -> bool:
        """A refusal of the changes keeps what the command printed, and a failure of the command comes first."""
        from toolreeve.confinement.held_trials import HeldTrial
        from toolreeve.confinement.settlement import TrialSettlement

        trials = self._trials()
        settlement = TrialSettlement(broker=self._broker(), ask=self._ask, policy=self._policy, trials=trials)
        works = entry.meta.runs is Confinement.WORK
        settle = settlement.settle_work if works else settlement.settle
        async with self._finish(action, entry, ended, held) as trial:
            try:
                return not await settle(trial, action, entry)
            except ToolError as refusal:
                is_pending = refusal.code is ErrorCode.APPROVAL_PENDING
                if is_pending and not works:
                    trials.held.add(self._binding(action, entry), HeldTrial(trial, ended))
                if isinstance(ended, ToolError) and not is_pending:
                    ended.message = f"{ended.message}; {refusal.message}" if works else ended.message
                    raise ended from None
                refusal.data = {**(ended.data or {}), **(refusal.data or {})}
                raise

    def _finish(
        self, action: Action, entry: Entry, ended: Output | ToolError, held: "HeldTrial | None"
    ) -> AbstractAsyncContextManager["FinishedTrial"]:
        if held is not None:
            return self._trials().resume(held)
        try:
            hidden = self._stopped(action, entry, ended if isinstance(ended, ToolError) else None)
        except ToolError as refusal:
            self._trials().discard(entry.call.id)
            entry.meta.trial = {"outcome": "dropped", "why": refusal.message}
            raise
        works = entry.meta.runs is Confinement.WORK
        return self._trials().finish(entry.call.id, ended, hidden, for_real=works)


def _command(action: Action) -> str:
    return f"{action.spec.name} {dict(action.args)!r}"


def _why(entry: Entry) -> str:
    """Why its trial is not all that is needed."""
    return str((entry.meta.trial or {}).get("why", ""))
