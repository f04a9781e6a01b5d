"""Policy files: read into rules, or refused with every problem.

Each problem has a line, a key and a fix. A file with an error yields no rules at all: half a policy is a different
policy. A project's file may only tighten. The calls under `matches` and `not_matches` are checked when a file is read.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, Protocol

from toolreeve.core.action import Action
from toolreeve.core.call import Principal, Role
from toolreeve.core.documents import Document, KeyPath, read_document
from toolreeve.core.errors import ConfigError, ConfigErrors
from toolreeve.core.schema import Schema
from toolreeve.core.verdict import Decision
from toolreeve.policy.flow.declarations import FlowDeclarations, read_declarations
from toolreeve.policy.hypothetical import build_action
from toolreeve.policy.lint import never_matches, shadowed
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import Matcher, PermissionRule, RuleProblems
from toolreeve.policy.schema import MAX_RULES, policy_schema

_UNKNOWN = re.compile(r"unknown '([^']+)'")
_MEANT = re.compile(r"did you mean '([^']+)'")
_SCHEMA = Schema(policy_schema())
_NOT_RULE = ("matches", "not_matches", "expires", "enforce")


class ActionBuilder(Protocol):
    """Makes the action that a call would be, without running anything."""

    def __call__(
        self, tool: str, args: Mapping[str, Any], *, root: str, principal: Principal, session: str, origin: str
    ) -> Action: ...


def read_rules(path: Path, **options: Any) -> tuple[PermissionRule, ...]:
    """The rules of a policy file; the options are those of `parse_rules`. Raises ConfigErrors."""
    try:
        document = read_document(path)
    except ConfigError as problem:
        raise ConfigErrors([problem]) from None
    return parse_rules(document, **options)


def read_flow(path: Path, *, tighten_only: bool = False) -> FlowDeclarations:
    """The sources and authority that a policy file declares; `read_rules` reports what is wrong with them."""
    return read_declarations(read_document(path), tighten_only=tighten_only)[0]


def _is_sound(document: Document) -> bool:
    """Whether the declarations fit the schema, so that they can be read."""
    value = _plain(document.value)
    return not any(each.pointer.startswith(("/sources", "/authority")) for each in _SCHEMA.problems(value or {}))


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

    With `tools` (the registered names) a rule about a tool that does not exist is an error, with `now` an expired rule
    is. `action_builder` makes an action of an example; the runtime's own knows its registered tools.
    """
    _, declared = read_declarations(document, tighten_only=tighten_only) if _is_sound(document) else (None, [])
    reader = _PolicyReader(document, root=root, tighten_only=tighten_only, now=now, tools=tools)
    rules = reader.rules()
    reader.problems += declared
    if not reader.problems:
        reader.problems += _failing_examples(document, reader.matchers, root, action_builder)
    if reader.problems:
        raise ConfigErrors(sorted(reader.problems, key=lambda problem: problem.line or 0))
    return rules


class _PolicyReader:
    """One pass over a document that collects every problem."""

    def __init__(
        self, document: Document, *, root: str, tighten_only: bool, now: float | None, tools: Collection[str] | None
    ) -> None:
        self.document = document
        self.problems: list[ConfigError] = []
        self.matchers: dict[int, Matcher] = {}
        self._root = root
        self._tighten_only = tighten_only
        self._now = now
        self._tools = tools
        self._enforce = True

    def rules(self) -> tuple[PermissionRule, ...]:
        value = _plain(self.document.value)
        if value is None:
            return ()
        invalid = self._check_schema(value)
        if isinstance(value, Mapping) and value.get("enforce") is False:
            self._enforce = False
        written = value.get("rules") if isinstance(value, Mapping) else None
        for index, entry in enumerate(written[:MAX_RULES] if isinstance(written, list) else []):
            if index not in invalid:
                self._read_rule(index, entry)
        self._check_names()
        self._check_shadows()
        return tuple(matcher.rule for matcher in self.matchers.values())

    def _check_schema(self, value: Any) -> set[int]:
        """The indexes of the rules that do not match the schema."""
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
            enforce=entry.get("enforce", self._enforce),
            tighten_only=self._tighten_only,
            source=self.document.source,
            line=self.document.line(path),
        )
        try:
            matcher = Matcher(rule, self._root)
        except RuleProblems as found:
            for problem in found.problems:
                self._refuse(problem.problem, (*path, *problem.key), fix=problem.fix)
            return
        self.matchers[index] = matcher
        self._check_rule(matcher, path)

    def _check_rule(self, matcher: Matcher, path: KeyPath) -> None:
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
        enforced = [matcher for matcher in self.matchers.values() if matcher.rule.enforce]
        for matcher, other in shadowed(enforced):
            self._refuse(
                f"never decides: the rule {other.rule.label!r} (line {other.rule.line}) always decides first",
                ("rules", numbers[matcher]),
                fix="remove it, narrow the other, or give it a higher priority",
            )

    def _refuse(self, problem: str, path: Sequence[str | int], *, fix: str) -> None:
        self.problems.append(self.document.error(problem, path=path, fix=fix))


def _failing_examples(
    document: Document, matchers: Mapping[int, Matcher], root: str, build_action: ActionBuilder
) -> list[ConfigError]:
    problems = []
    for index, matcher in matchers.items():
        for key, expected in (("matches", True), ("not_matches", False)):
            for number, example in enumerate(document.value["rules"][index].get(key, [])):
                if _matches_example(matcher, example, root, build_action) is not expected:
                    problems.append(_example_error(document, matcher, (index, key, number), example))
    return problems


def _matches_example(matcher: Matcher, example: Mapping[str, Any], root: str, build_action: ActionBuilder) -> bool:
    """Examples are evaluated as if no rule had expired."""
    principal = Principal(user=example.get("user", "local"), role=Role(example.get("role", "operator")))
    action = build_action(
        example["tool"],
        example.get("args", {}),
        root=root,
        principal=principal,
        session=example.get("session", "default"),
        origin=example.get("origin", "python"),
    )
    mode = PermissionMode(example.get("mode", "default"))
    return matcher.may_concern(action, mode) and matcher.alone_matches(action, lambda: 0.0, (root,))


def _example_error(
    document: Document, matcher: Matcher, at: tuple[int, str, int], example: Mapping[str, Any]
) -> ConfigError:
    index, key, number = at
    does = "does not match" if key == "matches" else "matches"
    shown = f"{example['tool']} {example.get('args', {})}"
    return document.error(
        f"the rule {matcher.rule.label!r} {does} this example: {shown:.200}",
        path=("rules", index, key, number),
        fix="correct the rule or the example",
    )


def read_moment(text: str) -> float:
    """A date means the end of that day, UTC; a time without a zone is UTC. Raises ValueError."""
    if len(text) == len("2030-12-31"):
        return datetime.combine(date.fromisoformat(text), time.max, UTC).timestamp()
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _plain(value: Any) -> Any:
    """The value with dates and bytes as text: YAML has types that the schema has not."""
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
    """A JSON pointer as a path of keys; a number is an index only in a list."""
    steps: list[str | int] = []
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            steps.append(int(key))
            value = value[int(key)]
        else:
            steps.append(key)
            value = value.get(key) if isinstance(value, dict) else None
    return tuple(steps)


def _fix(problem: str) -> str:
    if meant := _MEANT.search(problem):
        return f"write {meant[1]}"
    if problem.startswith("unknown"):
        return "remove it, or use one of the known keys"
    if "is required" in problem:
        return "add it"
    return "write a value that fits"
