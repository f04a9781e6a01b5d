"""Suggested rules: the narrowest ones for calls that people approved often.

Pure. Nothing is suggested for what cannot be undone, nor for what a rule allows already; each rule is checked to cover
every call that it is suggested for, and nothing is written here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core import json
from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.core.verdict import Decision
from toolreeve.policy.layers import decide
from toolreeve.policy.offers import covers
from toolreeve.policy.simulation import PastCall, Simulator
from toolreeve.policy.state import PolicyState

OFTEN = 3
_ON_FILES = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """`rule` is as a policy file writes it."""

    sentence: str
    count: int
    rule: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"sentence": self.sentence, "count": self.count, "rule": dict(self.rule)}


def suggest_rules(
    calls: Iterable[PastCall | None], state: PolicyState, simulator: Simulator, *, often: int = OFTEN
) -> list[Suggestion]:
    """For calls that a person approved at least so often, the most frequent first."""
    groups: dict[tuple[str, bytes], list[PastCall]] = defaultdict(list)
    for call in calls:
        if call is not None and call.recorded == "ask" and call.approved_by:
            groups[call.tool, json.dumps(call.args)].append(call)
    found = [_suggest(each, state, simulator) for each in groups.values() if len(each) >= often]
    return sorted(filter(None, found), key=lambda each: -each.count)


def _suggest(calls: Sequence[PastCall], state: PolicyState, simulator: Simulator) -> Suggestion | None:
    action = simulator.action(calls[0])
    if action.danger is DangerLevel.CRITICAL or decide(action, state).decision is not Decision.ASK:
        return None
    rule = next((each for each in _candidates(action) if covers(each, action, state)), None)
    if rule is None:
        return None
    return Suggestion(sentence=f"approved {_shown(action)} {len(calls)} times here", count=len(calls), rule=rule)


def _candidates(action: Action) -> Iterable[dict[str, Any]]:
    """Rules for exactly this call, the most readable first."""
    base = {"tool": action.spec.name, "decision": "allow", "max_danger": action.danger.value}
    command = action.args.get("command")
    if action.tool.grounds is not None and isinstance(command, str) and _WILD.isdisjoint(command):
        yield base | {"command": command}
    effects = action.effects
    if effects and all(each.kind in _ON_FILES and each.reach is Reach.EXACT for each in effects):
        kinds = sorted({str(each.kind) for each in effects})
        yield base | {"effect": kinds, "target": {"one_of": sorted({each.target for each in effects})}}
    yield base | {"when": {"$": {"equals": dict(action.args)}}}


def _shown(action: Action) -> str:
    """The telling part of the call."""
    main = action.args.get("command") or action.args.get("path") or action.args.get("url")
    text = main if isinstance(main, str) else json.dumps(dict(action.args)).decode()
    return f"`{text[:80]}`" if action.tool.grounds is not None else f"{action.spec.name} {text[:80]}"
