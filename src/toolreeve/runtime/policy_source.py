"""The current policy state: the configuration, plus what the program passed.

The program may choose mode, allowed tools and budget; what the configuration denies stays denied. The state changes
when a person answers "always", or when the program changes the PermissionPolicy it passed.
"""

import fcntl
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.config import Configuration
from toolreeve.core.atomic import write_private
from toolreeve.core.call import new_id
from toolreeve.core.documents import Document, parse_yaml
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.trial import Confinement
from toolreeve.permissions import ExecutionContext, PermissionPolicy
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule, protect
from toolreeve.policy.state import Budget, PolicyState

if TYPE_CHECKING:
    from toolreeve.approval.always_rule import AlwaysRule
    from toolreeve.information_flow.settings import FlowSettings


class PolicySource:
    """`policy` is what the program passed: a PermissionPolicy whose context may change at any time, or rules."""

    def __init__(
        self, configuration: Configuration, policy: PermissionPolicy | Sequence[PermissionRule] | None
    ) -> None:
        self._configuration = configuration
        self._configured = list(read_configured(configuration))
        self._may_change = isinstance(policy, PermissionPolicy)
        self._policy = policy if isinstance(policy, PermissionPolicy) else None
        if self._policy is not None:
            self._context = self._policy.context
        else:
            self._context = _context(configuration, _rules(policy))
        self._budget = _budget(self._context, configuration, own=self._may_change)
        if self._budget is not None:
            self._context.follow(self._budget)
        self._snapshot: tuple[object, ...] = ()
        self._confinements: frozenset[Confinement] = frozenset()
        self._hides_reads = False
        self._state = self._compile()
        self.flow = flow_settings(configuration)
        self._refuse_vouching()

    def _refuse_vouching(self) -> None:
        """A rule that lets calls through if they are vouched for needs the setting that says so."""
        rules = [rule for rule in (*self._context.rules, *self._configured) if (rule.labels or {}).get("vouched")]
        if rules and self.flow.use != "vouch":
            raise ConfigError(
                "labels: {vouched: all} allows nothing without the setting for it",
                source=rules[0].place,
                key="labels.vouched",
                fix='set policy.flow = "vouch"',
            )

    def __call__(self) -> PolicyState:
        if self._may_change and self._context.snapshot() != self._snapshot:
            self._state = self._compile()
        return self._state

    def enforce(self, confinements: Iterable[Confinement], *, hides_reads: bool = False) -> None:
        """Tell the policy which confinements the sandbox enforces, and whether it hides what rules guard."""
        self._confinements = frozenset(confinements)
        self._hides_reads = hides_reads
        self._state = self._compile()

    @property
    def budget(self) -> Budget | None:
        return self().budget

    def _compile(self) -> PolicyState:
        context = self._context
        settings = self._configuration.settings
        self._snapshot = context.snapshot()
        if context.budget_limit is not None and self._budget is not None:
            self._budget.limit = context.budget_limit
        if self._policy is not None:
            self._policy.serve(root=settings.workspace.dir, confinements=self._confinements)
        return PolicyState.of(
            mode=context.mode,
            allowed_tools=context.allowed_tools,
            denied_tools={*context.denied_tools, *settings.policy.denied_tools},
            rules=[*context.rules, *self._configured],
            floor=protect([settings.state.dir, *self._configuration.governing]),
            budget=self._budget,
            root=settings.workspace.dir,
            now=time.time,
            writable=settings.workspace.writable_roots,
            confinements=self._confinements,
            deletes=settings.policy.accept_edits_deletes,
            hides_reads=self._hides_reads,
        )

    async def remember(self, rule: "AlwaysRule") -> str:
        """Append the rule of an "always" answer to the user's policy file, and apply it. Returns its location."""
        files = self._configuration.settings.policy.files
        path = Path(files[0]) if files else self._configuration.user_file.with_name("policy.yaml")
        written = append_rule(path, rule, root=self._configuration.settings.workspace.dir)
        self._configured.append(written)
        self._state = self._compile()
        return written.place


def _rules(policy: Any) -> Sequence[PermissionRule]:
    if policy is None:
        return ()
    if not isinstance(policy, Sequence) or not all(isinstance(each, PermissionRule) for each in policy):
        raise ToolreeveError(f"policy={policy!r:.100}: pass a PermissionPolicy, or a list of PermissionRule")
    return policy


def read_configured(configuration: Configuration) -> Sequence[PermissionRule]:
    """The rules of the user's files, then those of the project, which may only tighten."""
    files = configuration.settings.policy.files
    if not files and configuration.project_policy is None:
        return ()
    from toolreeve.policy.files import read_rules

    root = configuration.settings.workspace.dir
    rules = [rule for path in files for rule in read_rules(Path(path), root=root)]
    if (project := configuration.project_policy) is not None:
        rules += read_rules(project, root=root, tighten_only=True)
    return rules


def flow_settings(configuration: Configuration) -> "FlowSettings":
    """What the settings and the policy files say about the flow of information."""
    from toolreeve.information_flow.settings import FlowSettings
    from toolreeve.policy.flow.declarations import FlowDeclarations

    policy = configuration.settings.policy
    declared = FlowDeclarations()
    if policy.files or configuration.project_policy is not None:
        from toolreeve.policy.files import read_flow

        for path in policy.files:
            declared = declared.joined(read_flow(Path(path)))
        if (project := configuration.project_policy) is not None:
            declared = declared.joined(read_flow(project, tighten_only=True))
    return FlowSettings(
        use=policy.flow,
        sources=declared.sources,
        authority=declared.authority,
        own=policy.own_identifiers,
        infers=policy.flow_records,
        known_days=policy.known_days,
    )


def append_rule(path: Path, rule: "AlwaysRule", *, root: str) -> PermissionRule:
    """Append a rule to a policy file; if the result is not valid, the file stays as it was. Raises ConfigErrors."""
    from toolreeve.approval.always_rule import rule_text
    from toolreeve.policy.files import parse_rules

    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _locked(path):
        text = _EMPTY.sub("rules:", path.read_text() if path.exists() else "")
        if "rules" not in (parse_yaml(text, str(path)).value or {}):
            text = f"{text.rstrip()}\nrules:\n".lstrip()
        longer = f"{text.rstrip()}\n{_indent(parse_yaml(text, str(path)), text)}- {rule_text(rule)}\n"
        rules = parse_rules(parse_yaml(longer, str(path)), root=root)
        _replace(path, longer)
    return rules[-1]


_EMPTY = re.compile(r"^rules:[ \t]*\[[ \t]*\]", re.MULTILINE)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Against a lost update: two processes that read and write back would lose one of the rules."""
    with path.with_name(f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _indent(document: Document, text: str) -> str:
    """The indentation of the file's rules."""
    has_rules = bool(document.value and document.value.get("rules"))
    first = document.line(("rules", 0)) if has_rules else None
    if not first:
        return "  "
    line = text.splitlines()[first - 1]
    return line[: len(line) - len(line.lstrip())]


def _replace(path: Path, text: str) -> None:
    """Atomic, also across a crash. The file keeps its mode; a new one is private to its owner."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_private(path, text.encode(), mode=mode)


def _context(configuration: Configuration, rules: Sequence[PermissionRule]) -> ExecutionContext:
    policy = configuration.settings.policy
    return ExecutionContext(
        mode=PermissionMode(policy.mode),
        budget_limit=policy.budget_limit,
        allowed_tools=policy.allowed_tools,
        rules=rules,
    )


def _budget(context: ExecutionContext, configuration: Configuration, *, own: bool) -> Budget | None:
    """A configured budget is shared by all runs; one set by the program belongs to this run alone."""
    if own and context.budget_limit is not None:
        return Budget(limit=context.budget_limit, spent=context.budget_used, scope=f"run:{new_id()}")
    limit = configuration.settings.policy.budget_limit
    return None if limit is None else Budget(limit=limit)
