"""Decisions about trials: may a call be tried, its changes kept.

Pure. A trial replaces only the question that the mode would ask: floor, denies and ask rules hold before it, and again
for the changes that it made. What discarding does not undo (reads, connections) is never tried.
"""

from dataclasses import replace
from functools import lru_cache

from toolreeve.core.action import Action
from toolreeve.core.call import Role
from toolreeve.core.command_settings import NO_NETWORK
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import CONTACTS, Effect, EffectKind
from toolreeve.core.trial import Confinement, ObservedChanges
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.layers import denied, floor, ruled
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.state import PolicyState

_CHANGES = frozenset((EffectKind.WRITE, EffectKind.DELETE))
_TRYING = frozenset((PermissionMode.DEFAULT, PermissionMode.ACCEPT_EDITS))
_IGNORE_FILES = ("/.gitignore", "/.git/info/exclude")
"""What git ignores is scratch, and scratch is discarded."""
NOTHING_CHANGED = Verdict(Decision.ALLOW, "trial", "the trial changed nothing", runs=Confinement.TRY)


def decide_trial(action: Action, verdict: Verdict, state: PolicyState) -> Verdict:
    """The verdict with the confinement in which the call runs.

    What is allowed as only reading runs in LOOK. What the mode would ask about, or refuse in plan mode, is allowed to
    run in TRY if it can be tried. What cannot work without a network is refused where commands have none. Everything
    else keeps its verdict: a rule has chosen the confinement itself.
    """
    if verdict.decision is not Decision.DENY and state.offline and (use := _network_use(action)):
        return Verdict(Decision.DENY, "network", f"{NO_NETWORK}, and {use}")
    if verdict.decision is Decision.ALLOW:
        return _in_look(verdict) if _only_reads(action, verdict, state) else verdict
    if not action.spec.confinable or not state.confinements:
        return verdict
    if not _may_become_trial(action, verdict, state):
        return verdict
    if obstacle := find_obstacle(action, state):
        if verdict.decision is Decision.DENY:
            return verdict
        return replace(verdict, reason=f"{verdict.reason}; it cannot run confined: {obstacle}")
    if _suffices(Confinement.LOOK, action, state):
        return Verdict(
            Decision.ALLOW,
            "trial",
            "only reads, as far as is known: it cannot write where it runs",
            runs=Confinement.LOOK,
        )
    if Confinement.TRY not in state.confinements:
        return verdict
    reason = "runs on trial: what it changes is decided afterwards"
    if state.mode is PermissionMode.PLAN:
        reason = "runs on trial: in plan mode what it changes is discarded"
    return Verdict(Decision.ALLOW, "trial", reason, runs=Confinement.TRY)


@lru_cache(maxsize=256)
def _in_look(verdict: Verdict) -> Verdict:
    """Kept, because nearly every call on the road gets one of a few verdicts."""
    return replace(verdict, runs=Confinement.LOOK)


def _only_reads(action: Action, verdict: Verdict, state: PolicyState) -> bool:
    """Whether an allowed call may only read: by its mode or the caller's role, or because it was allowed for that."""
    if state.mode is PermissionMode.BYPASS or (action.spec.confinable and Confinement.LOOK not in state.confinements):
        return False
    if state.mode is PermissionMode.PLAN or action.call.principal.role is Role.VIEWER:
        return True
    return verdict.layer == "default" and action.danger <= DangerLevel.LOW


def _network_use(action: Action) -> str:
    from toolreeve.policy.shell.analysis import analysis_of

    found = analysis_of(action)
    return "" if found is None else found.network


def _may_become_trial(action: Action, verdict: Verdict, state: PolicyState) -> bool:
    if action.spec.confirmation is not None:
        return False
    if verdict.decision is Decision.DENY:
        return verdict.layer == "plan"
    return verdict.layer == "default" and state.mode in _TRYING


def _suffices(confinement: Confinement, action: Action, state: PolicyState) -> bool:
    from toolreeve.policy.shell.analysis import analysis_of

    found = analysis_of(action)
    return confinement in state.confinements and found is not None and found.confinable.within is confinement


def find_obstacle(action: Action, state: PolicyState) -> str:
    """Why the call cannot run confined; empty if it can."""
    from toolreeve.policy.shell.analysis import analysis_of

    if action.danger is DangerLevel.CRITICAL:
        return "its effect cannot be undone"
    found = analysis_of(action)
    if need := _declared_need(action, state) if found is None else found.confinable.find_need(offline=state.offline):
        return need
    if (found is not None and found.known) or (guard := state.read_guard) is None:
        return ""
    return f"it may read what the rule {guard!r} guards"


def installs(action: Action) -> bool:
    """Whether the call is for what it installs, which git mostly ignores."""
    from toolreeve.policy.shell.analysis import analysis_of

    found = analysis_of(action)
    return found is not None and found.confinable.installs


def _declared_need(action: Action, state: PolicyState) -> str:
    """What a tool says it needs that no confinement gives; commands are analysed instead."""
    for effect in action.effects:
        if effect.kind in CONTACTS:
            return "it needs the network"
        if effect.kind in _CHANGES and not state.is_writable(effect.target):
            return f"it changes {effect.target}, outside the workspace"
    return ""


def find_undo_obstacle(action: Action, state: PolicyState, *, network: str) -> str:
    """Why what the call changes cannot be undone if it runs for real; empty if it can run over layers, without the
    `network` that commands have."""
    from toolreeve.core.toolset import is_builtin
    from toolreeve.policy.shell.analysis import analysis_of

    if state.mode is PermissionMode.BYPASS or Confinement.TRY not in state.confinements:
        return "commands run without layers here"
    found = analysis_of(action)
    offline = network == "none"
    if need := _declared_need(action, state) if found is None else found.confinable.find_need(offline=offline):
        return need
    uses_network = is_builtin(action.spec) and (found is None or not found.known)
    if uses_network and not offline:
        return f"it may use the network (commands.network = {network})"
    return ""


def refuse_changes(action: Action, changes: ObservedChanges, state: PolicyState) -> Verdict | None:
    """The floor or the deny rule that the changes of an approved call meet; the approval covers all others."""
    observed = action.after_trial(changes.effects)
    narrowed = state.narrowed(observed)
    return floor(observed, narrowed) or denied(observed, narrowed)


def decide_changes(action: Action, changes: ObservedChanges, state: PolicyState) -> Verdict:
    """Whether the changes of a trial are kept (ALLOW), asked about (ASK) or discarded (DENY).

    They meet the same floor, deny, ask and allow rules as predicted effects. `action` is the call as it was tried.
    """
    if not changes.effects:
        return NOTHING_CHANGED
    observed = action.after_trial(changes.effects)
    narrowed = state.narrowed(observed)
    found = floor(observed, narrowed) or _discarded(changes, state) or denied(observed, narrowed)
    found = found or ruled(observed, narrowed) or _by_mode(action, changes, state)
    return replace(found, runs=Confinement.TRY)


def _discarded(changes: ObservedChanges, state: PolicyState) -> Verdict | None:
    if state.mode is not PermissionMode.PLAN:
        return None
    return Verdict(Decision.DENY, "plan", f"Plan mode: this would {describe_changes(changes.effects)}; discarded")


def _by_mode(action: Action, changes: ObservedChanges, state: PolicyState) -> Verdict:
    if state.mode is PermissionMode.BYPASS:
        return Verdict(Decision.ALLOW, "bypass", "Bypass mode: everything above the floor is allowed")
    if state.mode is not PermissionMode.ACCEPT_EDITS:
        return Verdict(Decision.ASK, "default", f"The command would {describe_changes(changes.effects)}")
    is_viewer = action.call.principal.role is Role.VIEWER
    if objection := "the caller may only look" if is_viewer else _find_objection(changes, state):
        return Verdict(Decision.ASK, "default", f"Accept-edits mode: {objection}")
    reason = f"Accept-edits mode: kept, with undo: {describe_changes(changes.effects)}"
    return Verdict(Decision.ALLOW, "default", reason)


def _find_objection(changes: ObservedChanges, state: PolicyState) -> str:
    """Why the mode accept_edits does not keep the changes unasked; empty if it does."""
    outside = next((each.target for each in changes.effects if not state.is_writable(each.target)), None)
    if outside is not None:
        return f"the command would change {outside}, outside the workspace"
    for effect in changes.effects:
        if why := state.find_protection(effect.target):
            return f"the command would change {effect.target}: {why}"
        if effect.target.endswith(_IGNORE_FILES):
            return f"the command would change {effect.target}, which decides what later commands keep"
    if changes.untracked:
        return f"the command would delete {changes.untracked[0]}, which version control cannot restore"
    deleted = max(changes.deleted, sum(effect.kind is EffectKind.DELETE for effect in changes.effects))
    if deleted > state.deletes:
        return f"the command would delete {deleted} files (policy.accept_edits_deletes = {state.deletes})"
    return ""


def describe_changes(effects: tuple[Effect, ...]) -> str:
    """In a few words: `change F`, or how many files."""
    parts = []
    for kind, verb in ((EffectKind.WRITE, "change"), (EffectKind.DELETE, "delete")):
        paths = [effect.target for effect in effects if effect.kind is kind]
        if paths:
            parts.append(f"{verb} {paths[0]}" if len(paths) == 1 else f"{verb} {len(paths)} files")
    return " and ".join(parts)


def foresee(action: Action, verdict: Verdict, state: PolicyState) -> tuple[Decision, str]:
    """The decision as a person will see it, and whether they are asked after the trial: `never`, `if it changes files`,
    or `yes` with what it is known to change. In plan mode, that all changes are discarded. `verdict` is that of
    `decide_trial`."""
    from toolreeve.policy.shell.analysis import analysis_of

    if verdict.decision is not Decision.ALLOW or verdict.runs is not Confinement.TRY:
        return verdict.decision, "never"
    if state.mode is PermissionMode.PLAN:
        return verdict.decision, "never: what it changes is discarded"
    found = analysis_of(action)
    changes = ObservedChanges(effects=() if found is None else found.changes)
    if changes.effects:
        kept = decide_changes(action, changes, state)
        if kept.decision is not Decision.ALLOW:
            doing = "writes" if changes.effects[0].kind is EffectKind.WRITE else "deletes"
            return kept.decision, f"yes: {doing} {changes.effects[0].target}"
        if found is not None and found.known and not found.alarms:
            return Decision.ALLOW, "never"
    accepts = state.mode is PermissionMode.ACCEPT_EDITS
    return Decision.ALLOW, "if it deletes files" if accepts else "if it changes files"
