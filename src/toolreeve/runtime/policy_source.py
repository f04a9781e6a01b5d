"""Which policy stands at this moment? What is configured, and what the program says on top of it.

The program may choose mode, allowed tools and budget; what the configuration denies stays denied. The state changes
when a person answers "always", or when the program changes the PermissionPolicy it passed.
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from toolreeve.approval.always_rule import AlwaysRule, rule_text
from toolreeve.config import Configuration
from toolreeve.core.call import new_id
from toolreeve.core.documents import Document, parse_yaml
from toolreeve.permissions import ExecutionContext, PermissionPolicy
from toolreeve.policy.files import parse_rules, read_rules
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule, protect
from toolreeve.policy.state import Budget, PolicyState


class PolicySource:
    """`said` is what the program passed: a PermissionPolicy whose context may change at any time, or rules."""

    def __init__(self, configuration: Configuration, said: PermissionPolicy | Sequence[PermissionRule] | None) -> None:
        self._configuration = configuration
        self._configured = list(read_configured(configuration))
        self._may_change = isinstance(said, PermissionPolicy)
        self._context = said.context if isinstance(said, PermissionPolicy) else _context(configuration, said or ())
        self._budget = _budget(self._context, configuration, own=self._may_change)
        self._snapshot: tuple[object, ...] = ()
        self._state = self._compile()

    def __call__(self) -> PolicyState:
        if self._may_change and self._context.snapshot() != self._snapshot:
            self._state = self._compile()
        return self._state

    @property
    def budget(self) -> Budget | None:
        return self().budget

    def _compile(self) -> PolicyState:
        context, settings = self._context, self._configuration.settings
        self._snapshot = context.snapshot()
        if context.budget_limit is not None and self._budget is not None:
            self._budget.limit = context.budget_limit
        return PolicyState.of(
            mode=context.mode,
            allowed_tools=context.allowed_tools,
            denied_tools={*context.denied_tools, *settings.policy.denied_tools},
            rules=[*context.rules, *self._configured],
            floor=protect([settings.state.dir, *self._configuration.governing]),
            budget=self._budget,
            root=settings.workspace.dir,
            now=time.time,
        )

    async def remember(self, rule: AlwaysRule) -> str:
        """Write the rule of an "always" into the user's own policy file; from now on it holds. Says where."""
        files = self._configuration.settings.policy.files
        path = Path(files[0]) if files else self._configuration.user_file.with_name("policy.yaml")
        written = append_rule(path, rule, root=self._configuration.settings.workspace.dir)
        self._configured.append(written)
        self._state = self._compile()
        return written.place


def read_configured(configuration: Configuration) -> Sequence[PermissionRule]:
    """The rules of the user's files, and those of the project, which may only tighten."""
    root = configuration.settings.workspace.dir
    rules = [rule for path in configuration.settings.policy.files for rule in read_rules(Path(path), root=root)]
    if (project := configuration.project_policy) is not None:
        rules += read_rules(project, root=root, tighten_only=True)
    return rules


def append_rule(path: Path, rule: AlwaysRule, *, root: str) -> PermissionRule:
    """Add a rule at the end of a policy file, which stays valid or stays as it was. Raises ConfigErrors."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone_with(path):
        text = _EMPTY.sub("rules:", path.read_text() if path.exists() else "")
        if "rules" not in (parse_yaml(text, str(path)).value or {}):
            text = f"{text.rstrip()}\nrules:\n".lstrip()
        longer = f"{text.rstrip()}\n{_indent(parse_yaml(text, str(path)), text)}- {rule_text(rule)}\n"
        rules = parse_rules(parse_yaml(longer, str(path)), root=root)
        _replace(path, longer)
    return rules[-1]


_EMPTY = re.compile(r"^rules:[ \t]*\[[ \t]*\]", re.MULTILINE)


@contextmanager
def _alone_with(path: Path) -> Iterator[None]:
    """Nobody else adds a rule meanwhile: what two processes read and write back would lose one of the rules."""
    with path.with_name(f".{path.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _indent(document: Document, text: str) -> str:
    """How far the rules of the file are indented."""
    first = document.line(("rules", 0)) if document.value and document.value.get("rules") else None
    line = text.splitlines()[first - 1] if first else "  -"
    return line[: len(line) - len(line.lstrip())]


def _replace(path: Path, text: str) -> None:
    """The whole new text or the old one, also after a crash. The file keeps its mode; a new one is its owner's."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    fresh = path.with_name(f".{path.name}.{new_id()}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _context(configuration: Configuration, rules: Sequence[PermissionRule]) -> ExecutionContext:
    policy = configuration.settings.policy
    return ExecutionContext(
        mode=PermissionMode(policy.mode),
        budget_limit=policy.budget_limit,
        allowed_tools=policy.allowed_tools,
        rules=rules,
    )


def _budget(context: ExecutionContext, configuration: Configuration, *, own: bool) -> Budget | None:
    """A configured budget is one account for all runs; one that the program sets is an account of this run alone."""
    if own and context.budget_limit is not None:
        return Budget(limit=context.budget_limit, spent=context.budget_used, scope=f"run:{new_id()}")
    limit = configuration.settings.policy.budget_limit
    return None if limit is None else Budget(limit=limit)
