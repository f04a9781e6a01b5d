"""Information flow as a stage of the road: reviews calls, labels results.

Labels are assigned when a result is recorded; what a session holds is looked at only when a side effect is judged. The
stage never loosens a verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from toolreeve.core.action import Action
from toolreeve.core.effects import CONTACTS, EffectKind
from toolreeve.core.entry import Entry
from toolreeve.core.files import Files
from toolreeve.core.labels import Confidentiality, Labels
from toolreeve.core.result import Failure
from toolreeve.core.secrets.paths import is_sensitive
from toolreeve.core.tool import BoundTool
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.information_flow.file_labels import FileLabels
from toolreeve.information_flow.sessions import FlowSessions
from toolreeve.information_flow.settings import FlowSettings
from toolreeve.policy.flow.authority import ToolAuthority, authority_of
from toolreeve.policy.flow.memory import KeptResult, SessionMemory
from toolreeve.policy.flow.sources import ToolSource, labels_by_effects, source_of
from toolreeve.policy.state import PolicyState
from toolreeve.record.flow_facts import FlowTable

if TYPE_CHECKING:
    from toolreeve.policy.flow.review import FlowReview

_JUDGED = frozenset(("web", "http", "shell"))
"""Categories of builtin tools that reach third parties; files of the workspace carry no authority."""


@dataclass(frozen=True, slots=True)
class _ToolFlow:
    tool: BoundTool
    settings: FlowSettings
    authority: ToolAuthority
    source: ToolSource
    words: tuple[str, ...]
    reads: bool
    is_plain: bool


class InformationFlow:
    """`finds_secret` knows the secrets of the runtime; `policy` gives the rules that spell values out. `settings` may
    answer differently later: policy files are read again when they change."""

    def __init__(
        self,
        table: FlowTable,
        *,
        now: Callable[[], float],
        redact: Callable[[str], str],
        finds_secret: Callable[[str], bool],
        files: Files,
        policy: Callable[[], PolicyState],
        settings: Callable[[], FlowSettings],
    ) -> None:
        self._settings = settings
        self.sessions = FlowSessions(table, now=now, redact=redact, own=self.settings.own)
        self.files = FileLabels(table, files, now)
        self._finds_secret = finds_secret
        self._policy = policy
        self._tools: dict[str, _ToolFlow] = {}

    @property
    def settings(self) -> FlowSettings:
        return self._settings()

    def is_plain(self, action: Action) -> bool:
        """Whether calls of the tool carry nothing out, so that there is nothing to review."""
        return self._know(action.tool).is_plain

    async def prepare(self, action: Action) -> None:
        """Load what the review of the call needs."""
        from toolreeve.policy.flow.judge import FlowJudge
        from toolreeve.policy.flow.review import FlowReview

        known = self._know(action.tool)
        memory = await self.sessions.load(action.call.principal.user, action.call.session)
        foreign: Mapping[str, str] = {}
        if known.is_plain or _stays_here(action):
            judge = FlowJudge(memory, self._finds_secret, self.settings.infers)
            action.flow = FlowReview(judge, known.authority, action.args, is_plain=True)
            return
        if action.spec.category == "shell":
            foreign = await self.files.foreign(action)
        action.flow = self._review(action, known, memory, foreign)

    def tighten(self, action: Action, verdict: Verdict) -> Verdict:
        """The verdict with the questions that the flow of information adds. Bypass mode asks nothing."""
        from toolreeve.policy.flow.review import FlowReview

        review = action.flow
        if not isinstance(review, FlowReview) or self.settings.use == "off" or verdict.decision is Decision.DENY:
            return verdict
        return verdict if verdict.layer == "bypass" else review.tighten(verdict, self._named_by(verdict, action))

    def label(self, entry: Entry) -> tuple[str, ...]:
        """The labels of the result that is being recorded; the session keeps it. Constant work at any size."""
        action = entry.action
        outcome = entry.outcome
        stated = tuple(entry.meta.labels)
        if action is None or outcome is None:
            return stated
        if isinstance(outcome, Failure) and not entry.executed and not entry.meta.cached:
            return stated  # refused: the text is ours
        tool = action.tool
        known = self._know(tool)
        source = known.source
        words = known.words
        if not source.declared and (stated or not known.is_plain or action.danger.rank):
            source = replace(source, labels=self._by_call(action, known, stated))
            words = source.labels.words
        call = entry.call
        content = _content(entry)
        own = not known.reads
        kept = KeptResult(call.id, tool.spec.name, action.args, content, source, own=own, at=entry.at)
        self.sessions.keep(call.principal.user, call.session, kept)
        return words

    async def label_files(self, action: Action) -> None:
        """Label the files that an executed call wrote, if their content came from outside."""
        memory = self.sessions.memory(action.call.principal.user, action.call.session)
        if self.files.may_label(action, memory):
            await self.files.label(action)

    async def approved(self, action: Action, verdict: Verdict, *, by: str, known: bool = False) -> None:
        """A person allowed the call: its values count as named in this session, its recipients in others as well if
        the person said so. Not for deletions, money and credentials."""
        from toolreeve.policy.flow.judge import approve
        from toolreeve.policy.flow.review import FlowReview

        review = action.flow
        if not isinstance(review, FlowReview):
            return
        user = action.call.principal.user
        approve(await self.sessions.load(user, action.call.session), review.tool, action.args, self.settings.infers)
        if known:
            found = [each for each in verdict.provenance if each.knowable]
            recipients = [(action.spec.name, key_of(each.parameter), each.value) for each in found]
            await self.sessions.know(recipients, user=user, by=by, days=self.settings.known_days)

    def authority(self, tool: BoundTool) -> ToolAuthority:
        """The parameters of a tool that carry authority, for people."""
        return authority_of(tool.spec, self.settings.authority)

    def source(self, tool: BoundTool) -> ToolSource:
        """The labels of what a tool returns, for people."""
        return source_of(tool.spec, self.settings.sources)

    def _know(self, tool: BoundTool) -> _ToolFlow:
        name = tool.spec.name
        known = self._tools.get(name)
        if known is None or known.tool is not tool or known.settings is not self.settings:
            known = self._tools[name] = self._learn(tool)
        return known

    def _learn(self, tool: BoundTool) -> _ToolFlow:
        spec = tool.spec
        authority = self.authority(tool)
        is_builtin = spec.server is None and spec.source.split(".")[0] == "toolreeve"
        is_plain = spec.category not in _JUDGED if is_builtin else authority.effect is EffectKind.READ
        source = self.source(tool)
        return _ToolFlow(tool, self.settings, authority, source, source.labels.words, authority.reads, is_plain)

    def _review(
        self, action: Action, known: _ToolFlow, memory: SessionMemory, foreign: Mapping[str, str]
    ) -> "FlowReview":
        from toolreeve.policy.flow.judge import FlowJudge
        from toolreeve.policy.flow.review import FlowReview

        judge = FlowJudge(memory, self._finds_secret, self.settings.infers)
        tool = known.authority
        if action.spec.server is None and action.spec.category == "shell":
            command = str(action.args.get("command", ""))
            return FlowReview(judge, tool, action.args, command=command, effects=action.effects, foreign=foreign)
        sends = any(effect.kind is EffectKind.SEND for effect in action.effects)
        if action.spec.server is None and (sends or action.spec.category in _JUDGED):
            tool = replace(tool, effect=EffectKind.SEND if sends else EffectKind.NET)
        return FlowReview(judge, tool, action.args)

    def _by_call(self, action: Action, known: _ToolFlow, stated: Sequence[str]) -> Labels:
        """The labels of this very result: what the tool says of it, and which files and hosts it touched."""
        labels = known.source.labels
        if stated:
            labels = labels.join(Labels.read(stated))
        if not known.is_plain and action.spec.server is None and action.tool.list_effects is not None:
            labels = labels_by_effects(labels, {effect.kind for effect in action.recorded_effects})
        if action.danger.rank and _reads_secrets(action):
            labels = labels.join(Labels(labels.integrity, Confidentiality.SECRET))
        return labels

    def _named_by(self, verdict: Verdict, action: Action) -> Sequence[str]:
        """The parameters whose values the rule that decided spells out: what is configured is vouched for."""
        if verdict.layer != "rules" or verdict.rule is None:
            return ()
        rules = [each.rule for each in self._policy().rules_for(action) if each.rule.label == verdict.rule]
        named = [key for rule in rules for key, test in rule.when.items() if {"equals", "one_of"} & set(test)]
        if any(rule.command or rule.program or rule.programs for rule in rules):
            named.append("command")
        return named


def key_of(parameter: str) -> str:
    """The name nearest to a value: `to` of `mail.to[0]`."""
    return parameter.rsplit(".", 1)[-1].partition("[")[0]


def _stays_here(action: Action) -> bool:
    """Whether a builtin tool that can contact hosts contacts none with these arguments."""
    spec = action.spec
    if spec.server is not None or spec.category not in ("web", "http"):
        return False
    return not any(effect.kind in CONTACTS for effect in action.effects)


def _reads_secrets(action: Action) -> bool:
    return any(effect.kind is EffectKind.READ and is_sensitive(effect.target) for effect in action.recorded_effects)


def _content(entry: Entry) -> Any:
    """What the session keeps of a result: structured content where the tool sent some, else the text."""
    outcome = entry.outcome
    if outcome is None:
        return ""
    if isinstance(outcome, Failure):
        return "\n".join((outcome.message, *(str(value) for value in (outcome.data or {}).values())))
    if entry.meta.raw is not None:
        structured = entry.meta.raw.get("structuredContent")
        return structured if isinstance(structured, Mapping) else outcome.main or outcome.data
    return outcome.main if isinstance(outcome.main, str) else outcome.data
