"""The policy rule that answering "always" writes.

It is the narrowest rule that answers the call: the same files, or exactly the same arguments.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from toolreeve.approval.grants import only_touches_files
from toolreeve.core import json
from toolreeve.core.action import Action
from toolreeve.core.effects import Reach

AlwaysRule = Mapping[str, Any]
"""A rule as a policy file writes it."""

_NON_ASCII = re.compile(r"[^\x20-\x7e]")
PRIORITY = 1000
"""Outranks rules that ask about more; no priority outranks a deny."""


def new_always_rule(action: Action) -> AlwaysRule:
    rule: dict[str, Any] = {
        "tool": action.spec.name,
        "decision": "allow",
        "max_danger": action.danger.value,
        "priority": PRIORITY,
    }
    if only_touches_files(action) and all(effect.reach is Reach.EXACT for effect in action.effects):
        rule["effect"] = sorted({str(effect.kind) for effect in action.effects})
        rule["target"] = {"one_of": sorted({effect.target for effect in action.effects})}
    else:
        rule["when"] = {"$": {"equals": dict(action.args)}}
    return rule | _for_always(action)


def widen(rule: AlwaysRule, action: Action, *, outranks: bool) -> AlwaysRule:
    """The rule of a wider choice, as "always" writes it; `outranks` those that ask."""
    return dict(rule) | ({"priority": PRIORITY} if outranks else {}) | _for_always(action)


def until(rule: AlwaysRule, expires: float | None) -> AlwaysRule:
    """The rule with an expiry, if there is one."""
    if expires is None:
        return rule
    moment = datetime.fromtimestamp(expires, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return dict(rule) | {"expires": moment}


def _for_always(action: Action) -> dict[str, Any]:
    return {"user": action.call.principal.user, "reason": "approved permanently"}


def rule_text(rule: AlwaysRule) -> str:
    """One line of ASCII that YAML reads back unchanged; some Unicode characters break lines in YAML."""
    return _NON_ASCII.sub(_escape, json.dumps(rule).decode())


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
