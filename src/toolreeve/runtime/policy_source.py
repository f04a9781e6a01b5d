"""The current policy state: the configuration, plus what the program passed.

The program may choose mode, allowed tools and budget; what the configuration denies stays denied. The state changes
when a person answers "always" or saves a policy, in this process or another, or when the program changes the
PermissionPolicy it passed. A file that is not valid any more leaves the policy as it was.
"""

import dataclasses
import hashlib
import logging
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.config import Configuration
from toolreeve.config.sources import DEFAULT
from toolreeve.config.xdg import POLICY_FILE
from toolreeve.core.call import new_id
from toolreeve.core.errors import ConfigError, ConfigErrors, ToolreeveError
from toolreeve.core.trial import Confinement
from toolreeve.permissions import ExecutionContext, PermissionPolicy
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule, protect
from toolreeve.policy.state import Budget, PolicyState
from toolreeve.runtime.policy_file import FileWatch, append_rule, parse_policy, save_rules
from toolreeve.runtime.processes import find_hideable

if TYPE_CHECKING:
    from toolreeve.approval.always_rule import AlwaysRule
    from toolreeve.information_flow.settings import FlowSettings
    from toolreeve.policy.flow.declarations import FlowDeclarations

logger = logging.getLogger(__name__)


class PolicySource:
    """`policy` is what the program passed: a PermissionPolicy whose context may change at any time, or rules."""

    def __init__(
        self, configuration: Configuration, policy: PermissionPolicy | Sequence[PermissionRule] | None
    ) -> None:
        self._configuration = configuration
        self._configured = list(read_configured(configuration))
        self._watch = FileWatch(own_files(configuration))
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
        self._hidden: tuple[PermissionRule, ...] = ()
        self._state = self._compile()
        self._project_flow = _project_flow(configuration)
        self._flow = flow_settings(configuration, self._project_flow)
        self._refuse_vouching(self._configured)

    def _refuse_vouching(self, configured: Sequence[PermissionRule]) -> None:
        """A rule that lets calls through if they are vouched for needs the setting that says so."""
        rules = [rule for rule in (*self._context.rules, *configured) if (rule.labels or {}).get("vouched")]
        if rules and self._flow.use != "vouch":
            raise ConfigError(
                "labels: {vouched: all} allows nothing without the setting for it",
                source=rules[0].place,
                key="labels.vouched",
                fix='set policy.flow = "vouch"',
            )

    def __call__(self) -> PolicyState:
        if self._watch.has_changed():
            self._reload()
        if self._may_change and self._context.snapshot() != self._snapshot:
            self._state = self._compile()
        return self._state

    def _reload(self) -> None:
        """Read the user's files again; those of the project hold as they were at start."""
        project = [rule for rule in self._configured if rule.tighten_only]
        try:
            rules = [*read_own(self._configuration), *project]
            self._refuse_vouching(rules)
            self._flow = flow_settings(self._configuration, self._project_flow)
        except (ConfigError, ConfigErrors) as problem:
            logger.warning("the policy stays as it was: %s", problem)
            return
        self._configured = rules
        self._state = self._compile()

    def enforce(self, confinements: Iterable[Confinement], hidden: Sequence[PermissionRule] | None = None) -> None:
        """Tell the policy which confinements the sandbox enforces, and which rules about reading; by default, those
        that a sandbox with trials can."""
        self._confinements = frozenset(confinements)
        if hidden is None:
            hidden = find_hideable(self().read_guards, self._configuration) if Confinement.TRY in confinements else ()
        self._hidden = tuple(hidden)
        self._state = self._compile()

    @property
    def flow(self) -> "FlowSettings":
        """As the policy files say now."""
        self()
        return self._flow

    @property
    def digest(self) -> str:
        """The same wherever the same policy is in use, whatever the paths of its files."""
        context = self._context
        denied = {*context.denied_tools, *self._configuration.settings.policy.denied_tools}
        rules = [dataclasses.replace(rule, source="", line=None) for rule in (*context.rules, *self._configured)]
        parts = (context.mode, sorted(context.allowed_tools), sorted(denied), rules, context.budget_limit)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

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
            hidden=self._hidden,
            offline=bool(self._confinements) and settings.commands.network == "none",
        )

    async def remember(self, rule: "AlwaysRule") -> str:
        """Append the rule of an "always" answer to the user's policy file, and apply it. Returns its location."""
        written = append_rule(self.file, rule, root=self._configuration.settings.workspace.dir)
        self._configured.append(written)
        self._state = self._compile()
        return written.place

    @property
    def file(self) -> Path:
        """The user's policy file, which answers and the console write."""
        files = self._configuration.settings.policy.files
        return Path(files[0]) if files else self._configuration.user_file.with_name(POLICY_FILE)

    def save(self, text: str, version: str) -> str:
        """Replace the user's policy file and apply it. Returns the difference. Raises ConfigErrors, StalePolicy."""
        if self.file not in own_files(self._configuration):
            raise ToolreeveError("the program that runs this chose its settings and no policy file: set policy.files")
        root = self._configuration.settings.workspace.dir
        self._refuse_vouching(parse_policy(text, self.file, root=root))
        changed = save_rules(self.file, text, version=version, root=root)
        self._reload()
        return changed


def _rules(policy: Any) -> Sequence[PermissionRule]:
    if policy is None:
        return ()
    if not isinstance(policy, Sequence) or not all(isinstance(each, PermissionRule) for each in policy):
        raise ToolreeveError(f"policy={policy!r:.100}: pass a PermissionPolicy, or a list of PermissionRule")
    return policy


def read_configured(configuration: Configuration) -> Sequence[PermissionRule]:
    """The rules of the user's files, then those of the project, which may only tighten."""
    rules = list(read_own(configuration))
    if (project := configuration.project_policy) is not None:
        from toolreeve.policy.files import read_rules

        rules += read_rules(project, root=configuration.settings.workspace.dir, tighten_only=True)
    return rules


def read_own(configuration: Configuration) -> Sequence[PermissionRule]:
    """The rules of the user's files."""
    if not (paths := _to_read(configuration)):
        return ()
    from toolreeve.policy.files import read_rules

    root = configuration.settings.workspace.dir
    return [rule for path in paths for rule in read_rules(path, root=root)]


def _to_read(configuration: Configuration) -> Sequence[Path]:
    """A file that is named must be there."""
    return [path for path in own_files(configuration) if configuration.settings.policy.files or path.exists()]


def own_files(configuration: Configuration) -> Sequence[Path]:
    """The user's policy files; one that is created where it is looked for counts from then on."""
    if files := configuration.settings.policy.files:
        return [Path(each) for each in files]
    is_default = configuration.origins.get("policy.files") == DEFAULT
    return [configuration.user_file.with_name(POLICY_FILE)] if is_default else []


def flow_settings(configuration: Configuration, project: "FlowDeclarations") -> "FlowSettings":
    """What the settings and the user's policy files say about the flow of information, and what `project` adds."""
    from toolreeve.information_flow.settings import FlowSettings
    from toolreeve.policy.flow.declarations import FlowDeclarations

    policy = configuration.settings.policy
    declared = FlowDeclarations()
    if paths := _to_read(configuration):
        from toolreeve.policy.files import read_flow

        for path in paths:
            declared = declared.joined(read_flow(path))
    declared = declared.joined(project)
    return FlowSettings(
        use=policy.flow,
        sources=declared.sources,
        authority=declared.authority,
        own=policy.own_identifiers,
        infers=policy.flow_records,
        known_days=policy.known_days,
    )


def _project_flow(configuration: Configuration) -> "FlowDeclarations":
    from toolreeve.policy.flow.declarations import FlowDeclarations

    if configuration.project_policy is None:
        return FlowDeclarations()
    from toolreeve.policy.files import read_flow

    return read_flow(configuration.project_policy, tighten_only=True)


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
