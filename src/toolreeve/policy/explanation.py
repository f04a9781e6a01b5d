"""Explanation of a verdict: every layer's answer, and what would change it.

The change that is named is the smallest that leads to another verdict.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolreeve.core import json
from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.errors import ToolError
from toolreeve.core.tool import Rationale
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.layers import FLOOR, LAYERS, decide, with_rationale
from toolreeve.policy.offers import Offer, find_offers
from toolreeve.policy.question_facts import describe_parts
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import decide_trial, foresee

_LONGEST_ADVICE = 2000
_ON_FILES = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))


@dataclass(frozen=True, slots=True)
class LayerAnswer:
    """What one layer alone would answer; None if it leaves the decision to the next."""

    layer: str
    verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Explanation:
    """`verdict.change` names what would change the verdict; `place` is the file and line of the rule that decided.

    `grounds` is the tool's own rationale: why the call is dangerous, and which parts of it are not known. `decision` is
    the verdict's, unless it is a trial whose changes are known to need approval; `asks_after` says when a person is
    asked about the changes of a trial; `wider` are rules that allow more than this call, as a question offers them;
    `commands` are the simple commands of a command, as a question shows them.
    """

    verdict: Verdict
    answers: Sequence[LayerAnswer]
    place: str | None
    danger: DangerLevel
    grounds: Rationale
    decision: Decision
    asks_after: str = "never"
    wider: Sequence[Offer] = ()
    commands: Sequence[Mapping[str, Any]] = ()

    def __repr__(self) -> str:
        return f"<Explanation: {self.decision.word}, decided by {self.verdict.layer}>"

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.verdict.to_dict(),
            "effect": self.decision.word,
            "runs": self.verdict.runs.value,
            "asks_after": self.asks_after,
            "place": self.place,
            "advice": self.verdict.advice,
            "change": self.verdict.change,
            "wider": [{"for": offer.sentence, "rule": dict(offer.rule)} for offer in self.wider],
            "danger": self.danger.value,
            "grounds": self.grounds.reason,
            "commands": list(self.commands),
            "parts": [{"part": part, "known": not why, "why": why} for part, why in self.grounds.parts],
            "layers": [
                {
                    "layer": answer.layer,
                    "effect": answer.verdict.decision.word if answer.verdict else None,
                    "reason": answer.verdict.reason if answer.verdict else "",
                }
                for answer in self.answers
            ],
        }


def explain(action: Action, state: PolicyState) -> Explanation:
    verdict = decide_trial(action, with_rationale(decide(action, state), action), state)
    decision, asks_after = foresee(action, verdict, state)
    narrowed = state.narrowed(action)
    answers = [LayerAnswer(layer.__name__, layer(action, narrowed)) for layer in (FLOOR, *LAYERS)]
    place = _place(verdict, narrowed)
    return Explanation(
        verdict=replace(verdict, change=_change(replace(verdict, decision=decision), action, narrowed, place)),
        answers=answers,
        place=place,
        danger=action.danger,
        grounds=action.tool.grounds(action.args) if action.tool.grounds else Rationale(""),
        decision=decision,
        asks_after=asks_after,
        wider=find_offers(action, state) if verdict.decision is Decision.ASK else (),
        commands=describe_parts(action).get("parts", ()),
    )


def refused(explanation: Explanation, problem: ToolError) -> Explanation:
    """The explanation of a call that the tool itself refuses, before any approval is requested."""
    change = problem.suggestions[0] if problem.suggestions else "nothing in this policy: the tool itself refuses it"
    verdict = Verdict(Decision.DENY, "tool", f"{problem.code}: {problem.message}", change=change)
    answers = [LayerAnswer("tool", verdict), *explanation.answers]
    return replace(
        explanation, verdict=verdict, answers=answers, place=None, decision=Decision.DENY, asks_after="never", wider=()
    )


def _place(verdict: Verdict, state: PolicyState) -> str | None:
    if verdict.rule is None:
        return None
    rules = (matcher.rule for matcher in (*state.floor, *state.denies, *state.rules))
    return next((rule.place for rule in rules if rule.label == verdict.rule), None)


def _change(verdict: Verdict, action: Action, state: PolicyState, place: str | None) -> str:
    """The smallest change that alters the verdict; its decision is the one that a person sees, also after a trial."""
    tool = action.spec.name
    match verdict.layer:
        case "floor":
            return "nothing in this policy: the floor holds in every mode"
        case "bypass":
            return "leave bypass mode"
        case "budget" | "exhaustion":
            spent = state.budget.spent if state.budget else 0.0
            return f"raise the budget limit to ${spent + max(action.cost, 0.0):.2f} or more"
        case "plan":
            return "leave plan mode"
        case "network":
            return 'give commands a network: commands.network = "guarded" in the configuration'
        case "denied" | "allowed" | "rules" if verdict.rule is not None:
            return f"change or remove the rule {verdict.rule!r} ({place})"
        case "denied":
            return f"remove {_quote(state.denied_tools)} from denied_tools"
        case "allowed":
            return f"remove {_quote(state.allowed_tools)} from allowed_tools"
        case _ if verdict.decision is Decision.ALLOW:
            return f"add {tool!r} to denied_tools, or a rule that asks: {{tool: {tool}, decision: ask}}"
        case _:
            return _suggest_allowing(action)


def _suggest_allowing(action: Action) -> str:
    """The smallest change: for this call, and not for every call of the tool."""
    tool = action.spec.name
    danger = action.danger
    if danger is DangerLevel.CRITICAL:
        return "nothing: its effect cannot be undone, so each call needs approval"
    ending = f"max_danger: {danger.value}, decision: allow}}"
    if danger <= DangerLevel.LOW:
        return f"a rule: {{tool: {tool}, {ending}"
    if danger < DangerLevel.HIGH and not action.args:
        return f"add {tool!r} to allowed_tools, or a rule: {{tool: {tool}, decision: allow}}"
    return f"a rule for exactly this call: {{tool: {tool}, {_exactly(action)}, {ending}"


def _exactly(action: Action) -> str:
    """The condition that only this call meets: the same files, or the same arguments."""
    effects = action.effects
    if effects and all(effect.kind in _ON_FILES and effect.reach is Reach.EXACT for effect in effects):
        kinds = sorted({str(effect.kind) for effect in effects})
        targets = sorted({effect.target for effect in effects})
        return f"effect: [{', '.join(kinds)}], target: {{one_of: {json.dumps(targets).decode()}}}"
    given = ", ".join(
        f"{json.dumps(name).decode()}: {{equals: {json.dumps(value).decode()}}}"
        for name, value in action.args.items()
        if value is not None
    )
    if not given or len(given) > _LONGEST_ADVICE:
        return 'when: {"$": {equals: {…}}}'
    return f"when: {{{given}}}"


def _quote(patterns: frozenset[str]) -> str:
    return " and ".join(repr(pattern) for pattern in sorted(patterns))
