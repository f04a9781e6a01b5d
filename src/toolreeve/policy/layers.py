"""Policy layers: decide whether a call may run.

Pure: no I/O, no clock, no globals. The floor is asked first, then the layers in order; the first that answers decides.
The order of `LAYERS` is the security model.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.command_rules import covers
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import Matcher, names_tool
from toolreeve.policy.state import Budget, PolicyState, ToolPolicy

__all__ = ["FLOOR", "LAYERS", "PolicyState", "decide", "with_rationale"]

Layer = Callable[[Action, PolicyState], Verdict | None]
MAX_TOOL_POLICIES = 8192

BYPASSED = Verdict(Decision.ALLOW, "bypass", "Bypass mode: everything above the floor is allowed")
_ON_FILES = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))
_LITERAL = frozenset((Reach.EXACT, Reach.NAMES, Reach.BELOW))
_BY_MODE = frozenset(("plan", "default"))
EDIT_ACCEPTED = Verdict(
    Decision.ALLOW, "default", "Accept-edits mode: changes inside the workspace that can be undone run without approval"
)
PLAN_READ = Verdict(Decision.ALLOW, "default", "Plan mode: the call only reads")
PLAN_REFUSAL = Verdict(Decision.DENY, "plan", "Plan mode: Only read-only tools allowed")


def floor(action: Action, state: PolicyState) -> Verdict | None:
    matcher = _first(state.floor, action, state)
    return None if matcher is None else _denial(matcher, action, "floor")


def bypass(_: Action, state: PolicyState) -> Verdict | None:
    return BYPASSED if state.mode is PermissionMode.BYPASS else None


def budget(action: Action, state: PolicyState) -> Verdict | None:
    if state.budget is None or state.budget.covers(action.cost):
        return None
    return Verdict(Decision.DENY, "budget", _describe_overspending(state.budget, action.cost))


def plan(action: Action, state: PolicyState) -> Verdict | None:
    return PLAN_REFUSAL if state.mode is PermissionMode.PLAN and not _only_reads(action) else None


def _only_reads(action: Action) -> bool:
    """Not what may hold secrets: then a harmless tool is dangerous for the sake of its arguments."""
    reads_secrets = action.danger >= DangerLevel.HIGH > action.spec.danger
    return action.read_only and not reads_secrets


def denied(action: Action, state: PolicyState) -> Verdict | None:
    if state.denied_tools and names_tool(tuple(state.denied_tools), action, proof=False):
        return Verdict(Decision.DENY, "denied", _disallowed(action))
    matcher = _first(state.denies, action, state)
    return None if matcher is None else _denial(matcher, action, "denied")


def allowed(action: Action, state: PolicyState) -> Verdict | None:
    if state.allowed_tools and names_tool(tuple(state.allowed_tools), action, proof=True):
        return Verdict(Decision.ALLOW, "allowed", f"Tool {action.call.tool!r} is explicitly allowed")
    return None


def ruled(action: Action, state: PolicyState) -> Verdict | None:
    """The highest priority decides; among equals, ask before allow. A rule that may only tighten is compared with the
    verdict that would hold without it."""
    rules = state.rules_for(action)
    own, used = _first_rule([each for each in rules if not each.rule.tighten_only], action, state)
    tightening = _first([each for each in rules if each.rule.tighten_only], action, state)
    loose = None if own is None else _verdict(own, action, used)
    if tightening is None or (own is not None and own.rule.priority > tightening.rule.priority):
        return loose
    otherwise = loose or mode_default(action, state)
    return otherwise if otherwise.decision > tightening.decision else _verdict(tightening, action)


def exhaustion(action: Action, state: PolicyState) -> Verdict | None:
    """The budget again: it may have been spent while earlier layers, or a person, were asked."""
    found = budget(action, state)
    return None if found is None else replace(found, layer="exhaustion")


def mode_default(action: Action, state: PolicyState) -> Verdict:
    """What the mode decides. It never allows a tool that asks for confirmation of each call."""
    default = _decide_by_mode(action, state)
    if action.spec.confirmation is None or default.decision is Decision.DENY or state.mode is PermissionMode.BYPASS:
        return default
    return Verdict(Decision.ASK, "default", action.spec.confirmation)


def _decide_by_mode(action: Action, state: PolicyState) -> Verdict:
    danger = action.danger
    match state.mode:
        case PermissionMode.BYPASS:
            return BYPASSED
        case PermissionMode.PLAN:
            return PLAN_READ if _only_reads(action) else PLAN_REFUSAL
        case PermissionMode.ACCEPT_EDITS if can_be_undone(action, state):
            return EDIT_ACCEPTED
        case PermissionMode.DEFAULT | PermissionMode.ACCEPT_EDITS:
            allowed = danger <= DangerLevel.LOW
            doing = "run without approval" if allowed else "need approval"
            reason = f"{state.mode.title} mode: {danger.name}-danger calls {doing}"
            return Verdict(Decision.ALLOW if allowed else Decision.ASK, "default", reason)
        case PermissionMode.STRICT if danger >= DangerLevel.HIGH:
            return Verdict(
                Decision.DENY,
                "default",
                f"Strict mode: {action.call.tool!r} is {danger.name} danger and no rule allows it",
            )
        case PermissionMode.STRICT:
            return Verdict(Decision.ASK, "default", "Strict mode: every call without an allow rule needs approval")


def can_be_undone(action: Action, state: PolicyState) -> bool:
    """Whether the call only changes unprotected files of the workspace, through a tool that keeps what it replaces."""
    if not action.spec.undoable or action.danger > DangerLevel.MEDIUM or not action.effects:
        return False
    return all(
        effect.kind in _ON_FILES
        and effect.reach in _LITERAL
        and state.is_writable(effect.target)
        and not state.find_protection(effect.target)
        for effect in action.effects
    )


FLOOR: Layer = floor
LAYERS: Sequence[Layer] = (bypass, budget, plan, denied, allowed, ruled, exhaustion, mode_default)


def decide(action: Action, state: PolicyState) -> Verdict:
    """The verdict on a call. What is the same for every call of a tool is computed once."""
    tool_policy = state.tool_policies.get((action.call.tool, action.danger.rank))
    if tool_policy is None or tool_policy.tool is not action.tool:
        tool_policy = _narrow(action, state)
    if tool_policy.verdict is not None and (state.budget is None or state.budget.covers(action.cost)):
        return tool_policy.verdict
    return _ask_layers(action, tool_policy.state)


def with_rationale(verdict: Verdict, action: Action) -> Verdict:
    """Where the mode decides by danger, add the tool's own reason for that danger."""
    if verdict.decision is Decision.ALLOW or verdict.layer not in _BY_MODE or action.tool.grounds is None:
        return verdict
    why = action.tool.grounds(action.args).reason
    return replace(verdict, reason=f"{verdict.reason}: {why}") if why else verdict


def _narrow(action: Action, state: PolicyState) -> ToolPolicy:
    narrowed = state.narrowed(action)
    by_effects = state.mode is PermissionMode.ACCEPT_EDITS and action.spec.undoable
    fixed = narrowed.fixed and not by_effects
    verdict = _ask_layers(action, replace(narrowed, budget=None)) if fixed else None
    tool_policy = ToolPolicy(action.tool, narrowed, verdict)
    if len(state.tool_policies) >= MAX_TOOL_POLICIES:
        state.tool_policies.clear()
    state.tool_policies[(action.call.tool, action.danger.rank)] = tool_policy
    return tool_policy


def _ask_layers(action: Action, state: PolicyState) -> Verdict:
    for layer in (FLOOR, *LAYERS):
        if verdict := layer(action, state):
            return verdict
    return Verdict(Decision.DENY, "none", "no layer answered")


def _first(matchers: Sequence[Matcher], action: Action, state: PolicyState) -> Matcher | None:
    return next((matcher for matcher in matchers if matcher.matches(action, state.now)), None)


def _first_rule(
    matchers: Sequence[Matcher], action: Action, state: PolicyState
) -> tuple[Matcher | None, Sequence[Matcher]]:
    """The rule that decides, with those that it decides together with: allows on commands explain a command together,
    and the one that completes the explanation decides."""
    together: list[Matcher] = []
    for matcher in matchers:
        if not matcher.matches(action, state.now):
            continue
        if matcher.commands is None:
            return matcher, (matcher,)
        together.append(matcher)
        if covers([each.commands for each in together if each.commands], action, state.writable):
            return matcher, together
    return None, ()


def _denial(matcher: Matcher, action: Action, layer: str) -> Verdict:
    rule = matcher.rule
    return Verdict(Decision.DENY, layer, rule.reason or _disallowed(action), rule.label, rule.advice)


def _verdict(matcher: Matcher, action: Action, together: Sequence[Matcher] = ()) -> Verdict:
    rule = matcher.rule
    reason = rule.reason or f"Rule {rule.label!r} says {matcher.decision.word} for {action.call.tool!r}"
    order = list(Confinement)
    runs = min((each.confined or Confinement.WORK for each in together), key=order.index, default=Confinement.WORK)
    return Verdict(matcher.decision, "rules", reason, rule.label, rule.advice, runs=runs, approvals=rule.approvals)


def _disallowed(action: Action) -> str:
    return f"Tool {action.call.tool!r} is explicitly disallowed"


def _describe_overspending(money: Budget, cost: float) -> str:
    return (
        f"Budget exceeded: ${money.spent:.2f} spent, ${money.remaining:.2f} remaining, tool needs ${max(cost, 0.0):.2f}"
    )
