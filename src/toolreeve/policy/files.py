"""What does a policy file say? All its rules, or everything that is wrong with it, with lines, keys and fixes.

A file with an error gives no rules at all: half a policy is a different policy. A project's file may only tighten.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from toolreeve.core.documents import Document, KeyPath, read_document
from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.core.schema import Schema
from toolreeve.core.verdict import Decision
from toolreeve.policy.examples import ActionBuilder, failing_examples
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.lint import never_matches, shadowed
from toolreeve.policy.rules import Matcher, PermissionRule, RuleProblems
from toolreeve.policy.schema import MAX_RULES, policy_schema

_UNKNOWN = re.compile(r"unknown '([^']+)'")
_MEANT = re.compile(r"did you mean '([^']+)'")
_SCHEMA = Schema(policy_schema())
_NOT_RULE = ("matches", "not_matches", "expires")


def read_rules(path: Path, **options: Any) -> tuple[PermissionRule, ...]:
    """The rules of a policy file; the options are those of `parse_rules`. Raises ConfigErrors."""
    try:
        document = read_document(path)
    except ConfigError as problem:
        raise ConfigErrors([problem]) from None
    return parse_rules(document, **options)


def parse_rules(
    document: Document,
    *,
    root: str,
    tighten_only: bool = False,
    now: float | None = None,
    tools: Collection[str] | None = None,
    action_builder: ActionBuilder = build_action,
) -> tuple[PermissionRule, ...]:
    """Raises ConfigErrors.

    With `tools` (the names that are registered) a rule about a tool that does not exist is an error, with `now` one
    that has expired. `imagine_call` makes an action of an example; the runtime's own knows its registered tools.
    """
    reading = _Reading(document, root=root, tighten_only=tighten_only, now=now, tools=tools)
    rules = reading.rules()
    if not reading.problems:
        reading.problems += failing_examples(document, reading.matchers, root, action_builder)
    if reading.problems:
        raise ConfigErrors(sorted(reading.problems, key=lambda problem: problem.line or 0))
    return rules


class _Reading:
    """One pass over a document that keeps every problem it meets."""

    def __init__(
        self, document: Document, *, root: str, tighten_only: bool, now: float | None, tools: Collection[str] | None
    ) -> None:
        self.document = document
        self.problems: list[ConfigError] = []
        self.matchers: dict[int, Matcher] = {}
        self._root, self._tighten_only, self._now, self._tools = root, tighten_only, now, tools

    def rules(self) -> tuple[PermissionRule, ...]:
        value = _plain(self.document.value)
        if value is None:
            return ()
        misshapen = self._check_shape(value)
        written = value.get("rules") if isinstance(value, Mapping) else None
        for index, entry in enumerate(written[:MAX_RULES] if isinstance(written, list) else []):
            if index not in misshapen:
                self._read_rule(index, entry)
        self._check_names()
        self._check_shadows()
        return tuple(matcher.rule for matcher in self.matchers.values())

    def _check_shape(self, value: Any) -> set[int]:
        """The numbers of the rules that do not have the shape of one."""
        wrong = set()
        for problem in _SCHEMA.problems(value):
            path = _steps(problem.pointer, value)
            if unknown := _UNKNOWN.match(problem.text):
                path = (*path, unknown[1])
            self._refuse(problem.text, path, fix=_fix(problem.text))
            if len(path) > 1 and isinstance(path[1], int):
                wrong.add(path[1])
        return wrong

    def _read_rule(self, index: int, entry: Mapping[str, Any]) -> None:
        path: KeyPath = ("rules", index)
        try:
            expires = read_moment(entry["expires"]) if "expires" in entry else None
        except ValueError:
            self._refuse("is not a date", (*path, "expires"), fix="write it like 2030-12-31 or 2030-12-31T12:00:00Z")
            return
        rule = PermissionRule(
            **{key: value for key, value in entry.items() if key not in _NOT_RULE},
            expires=expires,
            tighten_only=self._tighten_only,
            source=self.document.source,
            line=self.document.line(path),
        )
        try:
            matcher = self.matchers[index] = Matcher(rule, self._root)
        except RuleProblems as found:
            for problem in found.problems:
                self._refuse(problem.problem, (*path, *problem.key), fix=problem.fix)
            return
        self._judge(matcher, path)

    def _judge(self, matcher: Matcher, path: KeyPath) -> None:
        if self._tighten_only and matcher.decision is Decision.ALLOW:
            self._refuse(
                "a project's policy may only tighten, not allow",
                (*path, "decision"),
                fix="move the rule to your own policy file, or make it ask or deny",
            )
        for problem in never_matches(matcher.rule, now=self._now, tools=self._tools):
            self._refuse(problem.problem, (*path, *problem.key), fix=problem.fix)

    def _check_names(self) -> None:
        seen: dict[str, int] = {}
        for index, matcher in self.matchers.items():
            name = matcher.rule.id
            if name and name in seen:
                self._refuse(
                    f"is also the id of the rule on line {self.document.line(('rules', seen[name]))}",
                    ("rules", index, "id"),
                    fix="give each rule its own id",
                )
            seen.setdefault(name, index)

    def _check_shadows(self) -> None:
        numbers = {matcher: index for index, matcher in self.matchers.items()}
        for matcher, other in shadowed(list(self.matchers.values())):
            self._refuse(
                f"never decides: the rule {other.rule.label!r} (line {other.rule.line}) always does before it",
                ("rules", numbers[matcher]),
                fix="remove it, narrow the other, or give it a higher priority",
            )

    def _refuse(self, problem: str, path: Sequence[str | int], *, fix: str) -> None:
        self.problems.append(self.document.error(problem, path=path, fix=fix))


def read_moment(text: str) -> float:
    """A date means the end of that day, UTC; a time without a zone is UTC. Raises ValueError."""
    if len(text) == len("2030-12-31"):
        return datetime.combine(date.fromisoformat(text), time.max, UTC).timestamp()
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _plain(value: Any) -> Any:
    """YAML reads dates as dates; the format knows them as text. Whatever else JSON cannot say becomes text too."""
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return repr(value)
        case _:
            return value


def _steps(pointer: str, value: Any) -> KeyPath:
    """A JSON pointer as the path of keys it stands for; a number is an index only where there is a list."""
    steps: list[str | int] = []
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        steps.append(int(key) if isinstance(value, list) else key)
        value = value[int(key)] if isinstance(value, list) else value.get(key) if isinstance(value, dict) else None
    return tuple(steps)


def _fix(problem: str) -> str:
    if meant := _MEANT.search(problem):
        return f"write {meant[1]}"
    if problem.startswith("unknown"):
        return "remove it, or spell it as one of the known keys"
    if "is required" in problem:
        return "add it"
    return "write a value that fits"
