"""May a command run unasked? The shipped default: what is SAFE or LOW runs, everything else is asked about."""

from toolreeve.core.danger import DangerLevel
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.shell.analysis import Analysis


def decide_default(analysis: Analysis) -> Verdict:
    if analysis.known and analysis.danger <= DangerLevel.LOW:
        return Verdict(Decision.ALLOW, layer="shell", reason=analysis.reason)
    return Verdict(Decision.ASK, layer="shell", reason=analysis.reason)
