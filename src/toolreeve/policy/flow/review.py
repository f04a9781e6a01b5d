"""Review of one call: findings for rules and for the question.

Never loosens: a review turns an allow into an ask, or into a denial if a secret would leave.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from toolreeve.core.effects import CONTACTS, Effect, EffectKind
from toolreeve.core.labels import Authority, Provenance
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.flow.authority import ToolAuthority
from toolreeve.policy.flow.commands import EXECUTED, judge_command
from toolreeve.policy.flow.judge import PRIVATE, SECRET, UNASKED, FlowJudge, requested

LAYER = "flow"
RULE = "information flow"
"""Names the question: a wider yes that was given to another question does not answer it."""
_SECRET = "Information flow: a secret would leave with this call; pass ${secret:NAME} where the tool takes it"  # noqa: S105
_KINDS = frozenset(Authority)
_KNOWABLE = frozenset((Authority.DESTINATION, Authority.HOST))
_LASTING = frozenset((EffectKind.SEND, EffectKind.WRITE, EffectKind.NET))
"""Effects whose recipients may become known: not deletions and payments."""


class FlowReview:
    """`command` and `effects` are those of a shell command; `foreign` are files in it with content from outside. A call
    that `is_plain` carries nothing out."""

    def __init__(
        self,
        judge: FlowJudge,
        tool: ToolAuthority,
        args: Mapping[str, Any],
        *,
        command: str | None = None,
        effects: Sequence[Effect] = (),
        foreign: Mapping[str, str] | None = None,
        is_plain: bool = False,
    ) -> None:
        self._judge = judge
        self.tool = tool
        self._args = args
        self._command = command
        self._effects = effects
        self._foreign = foreign or {}
        self._findings: list[Provenance] | None = [] if is_plain else None
        self._secrets: list[Provenance] | None = [] if is_plain else None

    @property
    def findings(self) -> Sequence[Provenance]:
        """What nobody vouches for, whether or not untrusted text was read."""
        if self._findings is None:
            if self._command is None:
                self._findings = self._judge.judge(self.tool, self._args)
            else:
                self._findings = list(
                    judge_command(self._judge, self.tool, self._command, self._effects, self._foreign)
                )
        return self._findings

    @property
    def secrets(self) -> Sequence[Provenance]:
        if self._secrets is None:
            leaves = self.tool.leaves_machine
            if self._command is not None:
                leaves = any(effect.kind in CONTACTS for effect in self._effects)
            self._secrets = self._judge.secrets(self.tool, self._args) if leaves else []
        return self._secrets

    def unvouched(self) -> frozenset[str]:
        return frozenset(finding.kind for finding in self.findings if finding.kind in _KINDS)

    def carries(self) -> frozenset[str]:
        private = {PRIVATE for finding in self.findings if finding.kind == PRIVATE}
        return frozenset(private | ({SECRET} if self.secrets else set()))

    def is_unasked(self) -> bool:
        return any(finding.kind == UNASKED for finding in self.findings)

    def is_vouched(self) -> bool:
        return not self.findings and not self.secrets

    def has_read_untrusted(self) -> bool:
        return self._judge.memory.has_read_untrusted

    def _is_knowable(self, finding: Provenance) -> bool:
        lasts = self.tool.effect in _LASTING and not self.tool.identity
        return lasts and finding.kind in _KNOWABLE and bool(finding.value)

    def tighten(self, verdict: Verdict, named: Sequence[str] = ()) -> Verdict:
        """The verdict with what the review adds. `named` are parameters whose values a rule spells out."""
        if self.secrets:
            return Verdict(Decision.DENY, LAYER, _SECRET, RULE, provenance=tuple(self.secrets))
        if not self.has_read_untrusted() and not self._foreign:
            return verdict
        found = tuple(
            replace(finding, knowable=self._is_knowable(finding))
            for finding in self.findings
            if finding.kind == EXECUTED or (_top(finding.parameter) not in named and self.has_read_untrusted())
        )
        if not found:
            return verdict
        asked = replace(
            verdict,
            decision=Decision.ASK,
            provenance=found,
            requested=requested(self._judge.memory),
            rule=RULE,
        )
        if verdict.decision is Decision.ASK:
            return asked
        return replace(asked, layer=LAYER, reason=describe(found), runs=Confinement.WORK)


def describe(findings: Sequence[Provenance]) -> str:
    """For people and models alike: no foreign text, no value, no way around."""
    kinds = dict.fromkeys(_WORDS.get(finding.kind, finding.kind) for finding in findings)
    places = dict.fromkeys(_top(finding.parameter) for finding in findings if finding.parameter)
    where = f" ({', '.join(list(places)[:5])})" if places else ""
    return f"Information flow: {', '.join(list(kinds)[:4])}{where}; the user did not name it"


_WORDS = {
    UNASKED: "an effect that was not asked for",
    PRIVATE: "private data in an outgoing text",
    "link": "a link or address in an outgoing text",
    "dictated": "text that was dictated by what was read",
    EXECUTED: "text from outside that would run",
}


def _top(parameter: str) -> str:
    return parameter.partition(".")[0].partition("[")[0]
