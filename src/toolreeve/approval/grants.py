"""Session grants: approvals that cover the same call again, or what a person chose to allow with it.

A grant holds in the same session, for the same principal and client, under the same policy, and for the same tool with
the same definition. It covers
- the same call: of the same danger, with the same effects on the same resolved paths if it only touches files (the
  content may differ), else with exactly the same arguments;
- or the calls that a rule covers, which the person chose from what was offered. It answers only what the same policy
  rule, or none, asks about: a wider yes does not answer what another rule asks.
Grants live in memory and end with the process.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.approval.request import definition, fingerprint
from toolreeve.core.action import Action
from toolreeve.core.effects import EffectKind

MAX_GRANTS = 10_000
_FILE_EFFECTS = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE))

Rule = Mapping[str, Any]
"""A rule as a policy file writes it."""
Covers = Callable[[Rule, Action], bool]


def only_touches_files(action: Action) -> bool:
    return bool(action.effects) and all(effect.kind in _FILE_EFFECTS for effect in action.effects)


class Grants:
    """Maps each granted call, or rule, to the user who granted it. Beyond `MAX_GRANTS` the oldest is dropped."""

    def __init__(self, covers: Covers | None = None) -> None:
        self._by: OrderedDict[str, str] = OrderedDict()
        self._rules: OrderedDict[str, tuple[str, Rule, str]] = OrderedDict()
        self._covers = covers

    def add(
        self, action: Action, *, version: str, by: str, rule: Rule | None = None, asked_by: str | None = None
    ) -> None:
        """With a rule, for the calls of the same holder that it covers; else for the same call. `asked_by` is the
        policy rule that asked."""
        holder = _holder(action, version)
        if rule is None:
            _put(self._by, _key(action, holder), by)
        else:
            asker = fingerprint(holder, asked_by)
            _put(self._rules, fingerprint(asker, rule), (asker, rule, by))

    def find(self, action: Action, *, version: str, asked_by: str | None = None) -> str | None:
        """The user who granted it, or None."""
        if not self._by and not self._rules:
            return None
        holder = _holder(action, version)
        return self._by.get(_key(action, holder)) or self._find_rule(action, fingerprint(holder, asked_by))

    def _find_rule(self, action: Action, asker: str) -> str | None:
        if self._covers is None:
            return None
        own = [(rule, by) for asked, rule, by in self._rules.values() if asked == asker]
        return next((by for rule, by in own if self._covers(rule, action)), None)

    def forget(self) -> None:
        self._by.clear()
        self._rules.clear()


def _put(grants: OrderedDict[str, Any], key: str, value: Any) -> None:
    grants[key] = value
    if len(grants) > MAX_GRANTS:
        grants.popitem(last=False)


def _holder(action: Action, version: str) -> str:
    call = action.call
    principal = call.principal
    return fingerprint(
        definition(action.spec), call.session, call.client, call.origin, principal.user, principal.role.value, version
    )


def _key(action: Action, holder: str) -> str:
    if only_touches_files(action):
        subject: Any = sorted(f"{effect} {effect.reach}" for effect in action.effects)
    else:
        subject = action.args
    return fingerprint(holder, action.danger.value, subject)
