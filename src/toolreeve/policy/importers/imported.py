"""Result of an import: rules for a policy file, and omissions.

Nothing is guessed: what has no exact or stricter counterpart here is named, with the reason. An allow never becomes
wider.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigErrors
from toolreeve.policy.files import parse_rules

TEXT_MATCHED = "matches text, which does not tell what a command or a file is"


@dataclass(slots=True)
class ImportedRules:
    rules: list[dict[str, Any]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """What was written, and why it was not carried over."""

    def add(self, written: str, rule: Mapping[str, Any], *, root: str) -> None:
        """The rule, if it is one that a policy file may hold."""
        try:
            parse_rules(Document("imported", {"rules": [dict(rule)]}), root=root)
        except ConfigErrors as problems:
            self.skip(written, problems.problems[0].problem)
            return
        if rule not in self.rules:
            self.rules.append(dict(rule))

    def skip(self, written: str, why: str) -> None:
        self.left_out.append((written[:200], why))


def command_rule(words: str, decision: str, *, exact: bool = False) -> dict[str, Any]:
    """A rule for commands that begin with these words. An ask or a deny also matches other spellings of them."""
    if decision == "allow":
        return {"tool": "bash", "decision": decision, "command": words if exact else f"{words} *"}
    return {"tool": "bash", "decision": decision, "program": words}
