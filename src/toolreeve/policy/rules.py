"""Permission rules, and matchers compiled from them.

A rule is written as plain data (`PermissionRule`) and compiled once, for one workspace, into a `Matcher`. An allow
needs proof: every effect and every selected value matches. For a deny or an ask suspicion is enough.
"""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolreeve.core.action import Action
from toolreeve.core.call import Role
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision
from toolreeve.policy.command_rules import (
    CommandRule,
    compile_patterns,
    compile_writes,
    covers,
    refuse_raw_text,
)
from toolreeve.policy.conditions import ConditionProblem, Purpose, Test, Truth, compile_condition
from toolreeve.policy.deny_matching import DenyMatcher, commands_of
from toolreeve.policy.flow.label_rules import LabelRule
from toolreeve.policy.json_path import Steps, evaluate, parse_steps
from toolreeve.policy.known_tools import names_of, suspects_of
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.path_overlap import may_touch

Condition = Mapping[str, Any]
NO_ACTION = cast(Action, None)
"""For the conditions of targets, which look at no action."""
CHANGES = frozenset((EffectKind.WRITE, EffectKind.DELETE))
"""Effects that a read-only call does not have."""
_EXACT = frozenset(("equals", "one_of"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRule:
    """One rule. Every field that is set must match; a field that is not set matches anything.

    `tool` is a glob over any name of the tool. `when` maps the path of an argument to its conditions, `target` is a
    condition on what an effect touches. `program` (or `programs`) names programs, with subcommands: an ask or a deny
    matches every command that may name one, however it is spelled; an allow matches each simple command by its words,
    which `args` may narrow to patterns, and the allows must explain the whole command together. `command` is such a
    pattern in one: `npm run test *`. An allow with `confined` holds for a call that runs so confined, one with `writes`
    where all that the command changes lies below these directories. `labels` are conditions on the flow of
    information into the call. `session` and `origin` (globs) limit where the
    rule applies, `expires` (seconds since 1970) until when. An ask with `approvals` needs that many people. A
    `tighten_only` rule comes from a file that must not loosen anything. An `only_certain` rule does not match an effect
    that merely may reach its target. A rule that is not to `enforce` decides nothing: what it would have decided is
    recorded.
    """

    decision: Decision | str
    tool: str | Sequence[str] = "*"
    id: str = ""
    server: str | None = None
    effect: EffectKind | str | Sequence[EffectKind | str] = ()
    target: Condition | None = None
    program: str | Sequence[str] = ()
    programs: str | Sequence[str] = ()
    args: Sequence[str] | None = None
    command: str | Sequence[str] = ()
    confined: Confinement | str | None = None
    writes: str | Sequence[str] = ()
    when: Mapping[str, Condition] = field(default_factory=dict)
    min_danger: DangerLevel | str | None = None
    max_danger: DangerLevel | str | None = None
    user: str | None = None
    labels: Mapping[str, Any] | None = None
    role: Role | str | Sequence[Role | str] = ()
    mode: PermissionMode | str | Sequence[PermissionMode | str] = ()
    session: str | None = None
    origin: str | None = None
    priority: int = 0
    expires: float | None = None
    approvals: int = 1
    reason: str = ""
    advice: str = ""
    tighten_only: bool = False
    only_certain: bool = False
    enforce: bool = True
    source: str = "code"
    line: int | None = None

    @property
    def place(self) -> str:
        """The file and line of the rule, or how it was made."""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    @property
    def label(self) -> str:
        """How a verdict names the rule."""
        return self.id or self.place


class RuleProblems(ToolreeveError):
    """Everything wrong with one rule; each problem's `key` says where in it."""

    def __init__(self, rule: PermissionRule, problems: Sequence[ConditionProblem]) -> None:
        self.problems = tuple(problems)
        listed = "; ".join(f"{'.'.join(map(str, each.key))}: {each.problem}" for each in problems)
        super().__init__(f"rule {rule.label!r}: {listed}")


_ON_FILES = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE})
"""What a command that is not known may do to any file; the network that it has is a setting of the sandbox."""


class Matcher:
    """A compiled rule. If it is `fixed`, it matches all calls of a tool at the same danger, or none. An allow on
    commands has `commands`: it counts together with the others, so `matches` leaves them out."""

    __slots__ = (
        "_conditions",
        "_deny_matcher",
        "_kinds",
        "_labels",
        "_max_danger",
        "_min_danger",
        "_modes",
        "_patterns",
        "_programs",
        "_purpose",
        "_roles",
        "_suspects_unknown",
        "_target",
        "commands",
        "confined",
        "decision",
        "fixed",
        "rule",
    )

    def __init__(self, rule: PermissionRule, root: str) -> None:
        problems: list[ConditionProblem] = []
        read = _RuleReader(problems)
        self.rule = rule
        decision = read.one("decision", rule.decision, _decision)
        self.decision = Decision.DENY if decision is None else decision
        self._purpose = Purpose(root=root, proof=self.decision is Decision.ALLOW)
        self._patterns = tuple(_as_list(rule.tool))
        self._kinds = frozenset(read.many("effect", rule.effect, EffectKind))
        if EffectKind.NET in self._kinds and not self._purpose.proof:
            self._kinds |= {EffectKind.SEND}  # what sends to a host reaches it
        self._roles = frozenset(read.many("role", rule.role, Role))
        self._modes = frozenset(read.many("mode", rule.mode, PermissionMode))
        self._min_danger = read.one("min_danger", rule.min_danger, DangerLevel)
        self._max_danger = read.one("max_danger", rule.max_danger, DangerLevel)
        self.confined = read.one("confined", rule.confined, Confinement)
        self._programs = (*_as_list(rule.program), *_as_list(rule.programs))
        self.commands = self._compile_commands(root, problems)
        self._conditions = tuple(read.conditions(rule.when, self._purpose))
        self._target = read.target(rule.target, Purpose(root=root, proof=self._purpose.proof, resolved=True))
        self._labels = None if rule.labels is None else LabelRule.of(rule.labels, proof=self._purpose.proof)
        problems += self._contradictions()
        if problems:
            raise RuleProblems(rule, problems)
        self._deny_matcher = self._compile_deny_matcher(root)
        denies = self.decision is Decision.DENY and not rule.only_certain
        self._suspects_unknown = denies and self._target is None and bool(self._kinds & _ON_FILES)
        self.fixed = not (
            self._conditions
            or self._kinds
            or self._programs
            or self.commands
            or self._target
            or self._labels
            or self._roles
            or rule.user
            or rule.session
            or rule.origin
            or rule.expires is not None
        )

    def _compile_commands(self, root: str, problems: list[ConditionProblem]) -> CommandRule | None:
        """For an allow on commands. Ask and deny rules match programs by suspicion."""
        rule = self.rule
        command = _as_list(rule.command)
        if self.decision is not Decision.ALLOW or not (self._programs or command or rule.args is not None):
            return None
        try:
            patterns = compile_patterns(self._programs, rule.args, command)
        except ConditionProblem as problem:
            problems.append(problem)
            return None
        return CommandRule(patterns, compile_writes(rule.writes, root))

    def _compile_deny_matcher(self, root: str) -> DenyMatcher | None:
        """For a deny about targets: how it matches commands that are not known."""
        target = self._target
        rule = self.rule
        if target is None or rule.target is None or rule.only_certain or self.decision is not Decision.DENY:
            return None
        return DenyMatcher(rule.target, target, self._kinds, root)

    def _contradictions(self) -> list[ConditionProblem]:
        """Contradictions that keep the rule from ever matching."""
        found = []
        if self._min_danger and self._max_danger and self._min_danger > self._max_danger:
            found.append(
                ConditionProblem(
                    "can never match: min_danger is above max_danger", key=("min_danger",), fix="swap them"
                )
            )
        if self._modes == {PermissionMode.BYPASS}:
            found.append(
                ConditionProblem("never matches: bypass mode applies no rules", key=("mode",), fix="name another mode")
            )
        if self.decision is Decision.ALLOW:
            found += refuse_raw_text(self.rule.when, self._patterns)
        for key in ("args", "command", "confined", "writes"):
            if getattr(self.rule, key) not in (None, ()) and self.decision is not Decision.ALLOW:
                fix = "name the program: program: git push; or match the text: when: {command: {regex: …}}"
                found.append(ConditionProblem("is for allow rules only", key=(key,), fix=fix))
            elif key == "writes" and self.rule.writes and self.commands is None:
                fix = "name the program, or use effect: write and target: {under: …}"
                found.append(ConditionProblem("is for rules that name a program", key=(key,), fix=fix))
        if self.rule.approvals != 1 and self.decision is not Decision.ASK:
            fix = "write decision: ask, or leave approvals out"
            found.append(ConditionProblem("is for ask rules only", key=("approvals",), fix=fix))
        if (self.rule.labels or {}).get("vouched") and self.decision is not Decision.ALLOW:
            fix = "make the rule an allow, or write unvouched: […]"
            found.append(ConditionProblem("vouched is for allow rules only", key=("labels", "vouched"), fix=fix))
        if not self._patterns or not all(self._patterns):
            found.append(ConditionProblem("names no tool", key=("tool",), fix='write "*" for every tool'))
        return found

    @property
    def guards_reads(self) -> bool:
        """Whether the rule keeps paths from being read unasked."""
        if self._purpose.proof or (self._kinds and EffectKind.READ not in self._kinds):
            return False
        return self.rule.target is not None and not {"host"} & set(self.rule.target)

    def may_reach(self, place: str) -> bool:
        """Whether the rule's target may lie at or below an absolute path."""
        return may_touch(Effect(EffectKind.READ, place, Reach.BELOW), self.rule.target or {}, self._purpose.root)

    def targets(self, path: str) -> bool:
        """Whether the rule's target may be this absolute path, without links."""
        return self._target is not None and self._target(path, NO_ACTION) is not False

    @property
    def uses_labels(self) -> bool:
        return self._labels is not None

    def may_concern(self, action: Action, mode: PermissionMode) -> bool:
        """Whether the rule may match calls of this tool at this danger; the arguments are not looked at."""
        if self._min_danger is not None and action.danger < self._min_danger:
            return False
        if self._max_danger is not None and action.danger > self._max_danger:
            return False
        if self._modes and mode not in self._modes:
            return False
        if action.read_only and self._kinds and self._kinds <= CHANGES:
            return False
        if self.commands is not None and action.tool.grounds is None:
            return False
        return self._names_server(action.spec.server) and self._names_tool(action)

    def _names_server(self, server: str | None) -> bool:
        return self.rule.server is None or (server is not None and fnmatch.fnmatchcase(server, self.rule.server))

    def _names_tool(self, action: Action) -> bool:
        return names_tool(self._patterns, action, proof=self._purpose.proof)

    def matches(self, action: Action, now: Callable[[], float] | None) -> bool:
        """Whether the rule matches this call; requires that `may_concern` is true."""
        if self.fixed:
            return True
        rule = self.rule
        principal = action.call.principal
        if rule.expires is not None and (now is None or now() >= rule.expires):
            return False
        if self._roles and principal.role not in self._roles:
            return False
        if not _fits(rule.user, principal.user) or not _fits(rule.session, action.call.session):
            return False
        if not _fits(rule.origin, action.call.origin):
            return False
        if self._labels is not None and not self._labels.matches(action.flow):
            return False
        if not self._accepts(self._match_arguments(action)) or not self._accepts(self._match_effects(action)):
            return False
        return not self._programs or self.commands is not None or self._names_program(action)

    def alone_matches(self, action: Action, now: Callable[[], float] | None, roots: Sequence[str]) -> bool:
        """Whether the rule matches this call without the help of others."""
        return self.matches(action, now) and (self.commands is None or covers((self.commands,), action, roots))

    def _names_program(self, action: Action) -> bool:
        """Lossy by design: quotes, escapes, wrappers and globs do not hide a program from an ask or a deny."""
        from toolreeve.policy.shell.deny_words import may_name

        commands = [effect.target for effect in action.effects if effect.kind is EffectKind.EXEC]
        return any(
            all(may_name(command, word) for word in program.split())
            for command in commands
            for program in self._programs
        )

    def _accepts(self, truth: Truth) -> bool:
        return truth is True if self._purpose.proof else truth is not False

    def _match_arguments(self, action: Action) -> Truth:
        answer: Truth = True
        for steps, test in self._conditions:
            truth = evaluate(action, steps, test, self._purpose)
            if truth is False:
                return False
            answer = answer if truth else None
        return answer

    def _match_effects(self, action: Action) -> Truth:
        """An allow must cover every effect of the call; a call without effects matches no effect rule."""
        if not self._kinds and self._target is None:
            return True
        if not action.effects:
            return False
        truth = self._purpose.combine([self._match_effect(effect, action) for effect in self._effects_to_match(action)])
        if truth is False and self._suspects_unknown:
            return bool(commands_of(action))
        if truth is False and self._deny_matcher is not None:
            return any(self._deny_matcher.matches(command, action) for command in commands_of(action))
        return truth

    def _effects_to_match(self, action: Action) -> Sequence[Effect]:
        """An allow to change a file covers reading that file, as the change itself does."""
        if not self._purpose.proof or EffectKind.READ in self._kinds:
            return action.effects
        changed = {effect.target for effect in action.effects if effect.kind in CHANGES}
        return [
            effect for effect in action.effects if effect.kind is not EffectKind.READ or effect.target not in changed
        ]

    def _match_effect(self, effect: Effect, action: Action) -> Truth:
        """An effect beyond one path proves nothing, unless all of it lies in a directory that the rule names; it is
        suspected of all that it may touch. Listing names is suspected only where the path itself matches."""
        if self._kinds and effect.kind not in self._kinds:
            return False
        if self._target is None:
            return True
        if self._purpose.proof and effect.kind is EffectKind.EXEC and not _EXACT.issuperset(self.rule.target or ()):
            return False  # a pattern over the text of a command proves nothing about it
        if effect.reach in (Reach.EXACT, Reach.NAMES) or self.rule.only_certain or self._encloses(effect):
            return self._target(effect.target, action)
        return None if may_touch(effect, self.rule.target or {}, self._purpose.root) else False

    def _encloses(self, effect: Effect) -> bool:
        """Whether the rule is about directories, so that all below a path in one of them lies in it too."""
        return self._purpose.proof and effect.reach is Reach.BELOW and [*(self.rule.target or {})] == ["under"]


def names_tool(patterns: Sequence[str], action: Action, *, proof: bool) -> bool:
    """Whether a pattern matches a name of the tool; for a deny, of any tool that does the same."""
    spec = action.spec
    if proof:
        names = names_of(spec.name, server=spec.server)
    else:
        names = suspects_of(spec.name, server=spec.server) | {action.call.tool}
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _fits(pattern: str | None, name: str) -> bool:
    return pattern is None or fnmatch.fnmatchcase(name, pattern)


def _decision(value: Any) -> Decision:
    return value if isinstance(value, Decision) else Decision[value.upper()]


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


class _RuleReader:
    """Reads the parts of a rule and collects the problems of each."""

    def __init__(self, problems: list[ConditionProblem]) -> None:
        self.problems = problems

    def one(self, key: str, value: Any, read: Callable[[Any], Any]) -> Any:
        if value is None:
            return None
        try:
            return read(value)
        except (ValueError, KeyError, AttributeError):
            self.problems.append(ConditionProblem(f"{value!r} is not an allowed value", key=(key,)))
            return None

    def many(self, key: str, value: Any, read: Callable[[Any], Any]) -> list[Any]:
        found = [self.one(key, each, read) for each in _as_list(value)]
        return [each for each in found if each is not None]

    def conditions(self, when: Mapping[str, Condition], purpose: Purpose) -> list[tuple[Steps, Test]]:
        compiled = []
        for argument, condition in when.items():
            try:
                compiled.append((parse_steps(argument), compile_condition(condition, purpose)))
            except ConditionProblem as problem:
                self._add(problem, "when", argument)
        return compiled

    def target(self, condition: Condition | None, purpose: Purpose) -> Test | None:
        if condition is None:
            return None
        try:
            return compile_condition(condition, purpose)
        except ConditionProblem as problem:
            self._add(problem, "target")
            return None

    def _add(self, problem: ConditionProblem, *where: str) -> None:
        self.problems.append(ConditionProblem(problem.problem, key=(*where, *problem.key), fix=problem.fix))


def compile_rules(rules: Sequence[PermissionRule], root: str) -> tuple[Matcher, ...]:
    """In evaluation order: the highest priority first, the strictest first among equals."""
    matchers = [Matcher(rule, root) for rule in rules]
    return tuple(sorted(matchers, key=lambda each: (-each.rule.priority, -each.decision)))


def protect(paths: Sequence[str]) -> tuple[PermissionRule, ...]:
    """Floor rules that keep these paths from being changed. Commands that may reach them among much else are kept from
    them by the sandbox, where they are read-only."""
    if not paths:
        return ()
    return (
        PermissionRule(
            id="protected-places",
            decision=Decision.DENY,
            effect=tuple(sorted(CHANGES)),
            target={"under": list(paths)},
            reason="The path belongs to the runtime itself: no tool may change it",
            only_certain=True,
            source="floor",
        ),
    )
