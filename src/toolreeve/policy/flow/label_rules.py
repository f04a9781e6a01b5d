"""The `labels` of a rule: conditions on a call's information flow.

For an allow the flow must be known; for an ask or a deny, not knowing it is a match.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.core.labels import Authority, FlowView

KINDS = [str(kind) for kind in Authority if kind is not Authority.NONE]
CARRIED = ["private", "secret"]

LABELS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "description": "Conditions on the flow of information; all of them must hold.",
    "properties": {
        "unvouched": {
            "anyOf": [{"enum": KINDS}, {"type": "array", "items": {"enum": KINDS}, "minItems": 1}],
            "description": "Nobody vouches for a value of one of these kinds.",
        },
        "vouched": {
            "enum": ["all"],
            "description": "In an allow, with policy.flow = vouch: everything that the call decides is vouched for.",
        },
        "carries": {
            "anyOf": [{"enum": CARRIED}, {"type": "array", "items": {"enum": CARRIED}, "minItems": 1}],
            "description": "The call would carry such data out, and the user did not name it.",
        },
        "session": {"enum": ["untrusted"], "description": "Untrusted text was read in the session."},
        "unasked": {"enum": [True], "description": "The current request did not ask for the effect."},
    },
}


@dataclass(frozen=True, slots=True)
class LabelRule:
    """Compiled `labels`. `proof`: for an allow."""

    unvouched: frozenset[str]
    carries: frozenset[str]
    vouched: bool
    session: bool
    unasked: bool
    proof: bool

    @staticmethod
    def of(written: Mapping[str, Any], *, proof: bool) -> "LabelRule":
        return LabelRule(
            unvouched=frozenset(_listed(written.get("unvouched"))),
            carries=frozenset(_listed(written.get("carries"))),
            vouched=written.get("vouched") == "all",
            session=written.get("session") == "untrusted",
            unasked=written.get("unasked") is True,
            proof=proof,
        )

    def matches(self, view: FlowView | None) -> bool:
        if view is None:
            return not self.proof
        if self.vouched and not view.is_vouched():
            return False
        if self.session and not view.has_read_untrusted():
            return False
        if self.unasked and not view.is_unasked():
            return False
        if self.unvouched and not self.unvouched & view.unvouched():
            return False
        return not self.carries or bool(self.carries & view.carries())


def _listed(value: str | Sequence[str] | None) -> Sequence[str]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value
