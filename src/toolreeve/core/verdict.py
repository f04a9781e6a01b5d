"""Verdicts of the policy. Decisions are ordered: the strictest is the greatest."""

from dataclasses import dataclass, replace
from enum import IntEnum

from toolreeve.core.labels import Provenance
from toolreeve.core.trial import Confinement


class Decision(IntEnum):
    ALLOW = 0
    ASK = 1
    DENY = 2

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its reason. `change` is the smallest change that would alter it, for `explain`.

    `runs` is the confinement of the programs that the call starts. An ALLOW that runs in TRY allows the trial; what
    it changed is decided afterwards. An ASK always means: before anything runs; `approvals` people must allow it.

    `provenance` are the values that nobody vouches for, with the places where they stand; `requested` is what the user
    had asked for, in their own words. Both are for people: what a model reads never holds them.
    """

    decision: Decision
    layer: str
    reason: str = ""
    rule: str | None = None
    advice: str = ""
    change: str = ""
    runs: Confinement = Confinement.WORK
    provenance: tuple[Provenance, ...] = ()
    requested: str = ""
    approvals: int = 1

    def without_undo(self, why: str) -> "Verdict":
        """The same verdict, saying that what the call changes cannot be undone."""
        if "cannot be undone" in self.reason:
            return self
        because = "" if why in self.reason else f": {why}"
        return replace(self, reason=f"{self.reason}; cannot be undone{because}")

    def to_dict(self) -> dict[str, str | None]:
        return {"effect": self.decision.word, "layer": self.layer, "rule": self.rule, "reason": self.reason}
