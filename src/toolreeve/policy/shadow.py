"""Shadow mode: what rules that are not enforced would have decided.

Pure. It costs nothing where every rule is enforced.
"""

from toolreeve.core.action import Action
from toolreeve.core.verdict import Verdict
from toolreeve.policy.layers import decide
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import decide_trial


def decide_shadow(action: Action, verdict: Verdict, state: PolicyState) -> Verdict | None:
    """The verdict if all rules were enforced; None if it is the same decision."""
    if state.shadow is None:
        return None
    other = decide_trial(action, decide(action, state.shadow), state.shadow)
    same = (other.decision, other.runs) == (verdict.decision, verdict.runs)
    return None if same else other
