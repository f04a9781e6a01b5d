"""Verdicts of the policy. Decisions are ordered: the strictest is the greatest."""

from dataclasses import dataclass
from enum import IntEnum


class Decision(IntEnum):
    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its reason. `change` is the smallest change that would alter it, for `explain`."""

    decision: Decision
    layer: str
    reason: str = ""
    rule: str | None = None
    advice: str = ""
    change: str = ""

    def to_dict(self) -> dict[str, str | None]:
        return {"effect": self.decision.word, "layer": self.layer, "rule": self.rule, "reason": self.reason}
