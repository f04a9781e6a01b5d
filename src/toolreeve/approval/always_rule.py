"""What would "always" write? The narrowest rule that answers this call: the same files, or exactly these arguments."""

import re
from collections.abc import Mapping
from typing import Any

from toolreeve.approval.grants import only_touches_files
from toolreeve.core import json
from toolreeve.core.action import Action
from toolreeve.core.effects import Reach

Lasting = Mapping[str, Any]
"""A rule as a policy file writes it."""

_BEYOND = re.compile(r"[^\x20-\x7e]")
PRIORITY = 1000
"""A person's word on exactly this outranks rules that ask about more; a deny it never outranks."""


def lasting_rule(action: Action) -> Lasting:
    narrow: dict[str, Any] = {
        "tool": action.spec.name,
        "decision": "allow",
        "max_danger": action.danger.value,
        "priority": PRIORITY,
    }
    if only_touches_files(action) and all(effect.reach is Reach.EXACT for effect in action.effects):
        narrow["effect"] = sorted({str(effect.kind) for effect in action.effects})
        narrow["target"] = {"one_of": sorted({effect.target for effect in action.effects})}
    else:
        narrow["when"] = {"$": {"equals": dict(action.args)}}
    return narrow | {"user": action.call.principal.user, "reason": "approved for always"}


def rule_text(rule: Lasting) -> str:
    """One line of plain characters that YAML reads back as it was: some characters break lines there, so all beyond
    ASCII are escaped, as YAML has it."""
    return _BEYOND.sub(_escaped, json.dumps(rule).decode())


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
