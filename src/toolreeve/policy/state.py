"""Policy state: mode, lists, rules and budget, compiled for one workspace.

Immutable: a change makes a new state. Only `Budget` changes; its owner keeps `spent` current.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

from toolreeve.core.action import Action
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.guarded_paths import find_guarded
from toolreeve.core.secrets.paths import find_secret, is_sensitive
from toolreeve.core.tool import BoundTool
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision, Verdict
from toolreeve.policy.command_rules import programs_of
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import Matcher, PermissionRule, compile_rules, names_tool

_ROUNDING = 1e-9
ACCEPT_EDITS_DELETES = 10


@dataclass(slots=True, kw_only=True)
class Budget:
    """A spending limit. `spent` includes reservations of running calls; `scope` names the account that is charged."""

    limit: float
    spent: float = 0.0
    scope: str = "all"

    def covers(self, cost: float) -> bool:
        """False also for NaN."""
        return self.spent + (0.0 if cost < 0 else cost) <= self.limit + _ROUNDING

    @property
    def remaining(self) -> float:
        return max(0.0, self.limit - self.spent)


@dataclass(frozen=True, slots=True, eq=False)
class ToolPolicy:
    """The policy for all calls of one tool at one danger: the verdict if fixed, else the rules that may match."""

    tool: BoundTool
    state: "PolicyState"
    verdict: Verdict | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PolicyState:
    """`floor` holds deny rules that no mode lifts; `version` changes whenever any of this does.

    `writable` are the workspace and the other roots that tools may change. `confinements` are those that the sandbox
    enforces; without any, every call runs as it was allowed beforehand. `deletes` is how many files a command may
    delete unasked in the mode accept_edits. `read_guards` are the rules that keep paths from being read, `hidden` those
    of them whose paths the sandbox hides. `offline`: the sandbox gives commands no network. `uses_labels`: a rule asks
    about the flow of information, so that it must be known for every call.
    """

    mode: PermissionMode = PermissionMode.DEFAULT
    allowed_tools: frozenset[str] = frozenset()
    denied_tools: frozenset[str] = frozenset()
    floor: tuple[Matcher, ...] = ()
    denies: tuple[Matcher, ...] = ()
    rules: tuple[Matcher, ...] = ()
    budget: Budget | None = None
    now: Callable[[], float] | None = None
    version: str = ""
    writable: tuple[str, ...] = ("/",)
    confinements: frozenset[Confinement] = frozenset()
    deletes: int = ACCEPT_EDITS_DELETES
    read_guards: tuple[Matcher, ...] = ()
    hidden: tuple[PermissionRule, ...] = ()
    offline: bool = False
    shadow: "PolicyState | None" = None
    """The same policy with the rules that are not enforced; None if all are."""
    uses_labels: bool = False
    tool_policies: dict[tuple[str, int], ToolPolicy] = field(default_factory=dict)
    index: dict[str | None, list[tuple[int, Matcher]]] = field(default_factory=dict)

    @staticmethod
    def of(
        *,
        mode: PermissionMode = PermissionMode.DEFAULT,
        allowed_tools: Iterable[str] = (),
        denied_tools: Iterable[str] = (),
        rules: Sequence[PermissionRule] = (),
        floor: Sequence[PermissionRule] = (),
        budget: Budget | None = None,
        root: str = "/",
        now: Callable[[], float] | None = None,
        writable: Sequence[str] = (),
        confinements: Iterable[Confinement] = (),
        deletes: int = ACCEPT_EDITS_DELETES,
        hidden: Sequence[PermissionRule] = (),
        offline: bool = False,
    ) -> "PolicyState":
        """Compile a policy for the workspace at `root`. Raises ToolreeveError for an invalid rule."""
        compiled = compile_rules([rule for rule in rules if rule.enforce], root)
        compiled_floor = compile_rules(floor, root)
        if any(matcher.decision is not Decision.DENY for matcher in compiled_floor):
            raise ToolreeveError("the floor can only deny: give it rules whose decision is deny")
        if now is None and any(rule.expires is not None for rule in (*rules, *floor)):
            raise ToolreeveError("rules that expire need a clock: pass `now`")
        mode = PermissionMode(mode)
        allowed = names(allowed_tools)
        denied = names(denied_tools)
        state = PolicyState(
            mode=mode,
            allowed_tools=allowed,
            denied_tools=denied,
            floor=compiled_floor,
            budget=budget,
            now=now,
            version=_fingerprint(mode, allowed, denied, rules, floor, budget),
            writable=(root, *writable),
            confinements=frozenset(confinements) - {Confinement.WORK},
            deletes=deletes,
            hidden=tuple(hidden),
            offline=offline,
        )._with_rules(compiled)
        if all(rule.enforce for rule in rules):
            return state
        every = compile_rules([replace(rule, enforce=True) for rule in rules], root)
        return replace(state, shadow=state._with_rules(every))

    def _with_rules(self, compiled: Sequence[Matcher]) -> "PolicyState":
        enforced = {Confinement.WORK, *self.confinements}
        return replace(
            self,
            denies=tuple(matcher for matcher in compiled if matcher.decision is Decision.DENY),
            rules=tuple(
                matcher
                for matcher in compiled
                if matcher.decision is not Decision.DENY and (matcher.confined or Confinement.WORK) in enforced
            ),
            uses_labels=any(each.uses_labels for each in (*self.floor, *compiled)),
            read_guards=tuple(each for each in (*self.floor, *compiled) if each.guards_reads),
            tool_policies={},
            index={},
        )

    @property
    def read_guard(self) -> str | None:
        """The first rule whose paths a command could read because the sandbox does not hide them."""
        return next((each.rule.label for each in self.read_guards if each.rule not in self.hidden), None)

    def is_unread(self, path: str) -> bool:
        """Whether a rule keeps an absolute path from being read unasked."""
        return any(matcher.targets(path) for matcher in self.read_guards)

    def is_writable(self, path: str) -> bool:
        """Whether an absolute, normal path lies in the workspace, or in another root that tools may change."""
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in self.writable)

    def find_protection(self, path: str) -> str:
        """Why a path inside is protected: programs of the host obey it, or it may hold secrets. Empty if it is not."""
        root = next(root for root in self.writable if path == root or path.startswith(root.rstrip("/") + "/"))
        names = path[len(root) :].strip("/").split("/")
        guarded = find_guarded(names) if names != [".git"] else None
        if guarded is not None:
            return guarded.by
        return "it may hold secrets" if find_secret(names) or is_sensitive("/".join(names)) else ""

    def narrowed(self, action: Action) -> "PolicyState":
        """This policy with only the rules and names that may concern the tool of this action."""

        def concerning(matchers: tuple[Matcher, ...]) -> tuple[Matcher, ...]:
            return tuple(matcher for matcher in matchers if matcher.may_concern(action, self.mode))

        def naming(patterns: frozenset[str], *, proof: bool) -> frozenset[str]:
            return frozenset(pattern for pattern in patterns if names_tool((pattern,), action, proof=proof))

        return replace(
            self,
            allowed_tools=naming(self.allowed_tools, proof=True),
            denied_tools=naming(self.denied_tools, proof=False),
            floor=concerning(self.floor),
            denies=concerning(self.denies),
            rules=concerning(self.rules),
            tool_policies={},
            index={},
        )

    def rules_for(self, action: Action) -> Sequence[Matcher]:
        """The ask and allow rules, without those on programs that the command does not name."""
        if not self.index:
            self._fill_index()
        if len(self.index) == 1:
            return self.rules
        named = [*self.index[None], *(each for name in programs_of(action) for each in self.index.get(name, ()))]
        return [matcher for _, matcher in sorted(dict(named).items())]

    def _fill_index(self) -> None:
        self.index[None] = []
        for position, matcher in enumerate(self.rules):
            for name in matcher.commands.programs if matcher.commands else (None,):
                self.index.setdefault(name, []).append((position, matcher))

    @property
    def fixed(self) -> bool:
        """Whether every call of the same tool and danger gets the same answer, budget aside."""
        return all(matcher.fixed for matcher in (*self.floor, *self.denies, *self.rules))


def names(given: Iterable[str]) -> frozenset[str]:
    """A set of names. A bare string is refused: as a set of letters it would deny nothing."""
    if isinstance(given, str):
        raise ToolreeveError(f"expected a set of tool names, got the string {given!r}: write {{{given!r}}}")
    return frozenset(given)


def _fingerprint(
    mode: PermissionMode,
    allowed: frozenset[str],
    denied: frozenset[str],
    rules: Sequence[PermissionRule],
    floor: Sequence[PermissionRule],
    budget: Budget | None,
) -> str:
    parts = [
        mode.value,
        sorted(allowed),
        sorted(denied),
        [_written(rule) for rule in rules],
        [_written(rule) for rule in floor],
        None if budget is None else budget.limit,
    ]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _written(rule: PermissionRule) -> list[object]:
    return [getattr(rule, each.name) for each in fields(rule)]
