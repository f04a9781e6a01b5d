"""Can this rule ever decide anything? A rule that cannot is a mistake of its author, and is told as one."""

import fnmatch
from collections.abc import Collection, Sequence

from toolreeve.core.verdict import Decision
from toolreeve.policy.conditions import ConditionProblem
from toolreeve.policy.known import KNOWN, canonical, names_of, nearest, suspects_of
from toolreeve.policy.rules import CHANGES, Matcher, PermissionRule


def never_matches(rule: PermissionRule, *, now: float | None, tools: Collection[str] | None) -> list[ConditionProblem]:
    """Why the rule is dead, if it is. What is not known (no clock, no registry) is not held against it."""
    found = []
    if now is not None and rule.expires is not None and rule.expires <= now:
        found.append(ConditionProblem("has expired", key=("expires",), fix="remove the rule, or set a later day"))
    patterns = _patterns(rule)
    if (
        rule.server is not None
        and all(_is_plain(each) and "__" not in each for each in patterns)
        and "*" not in patterns
    ):
        found.append(
            ConditionProblem(
                "never matches: no server has a tool of that name",
                key=("tool",),
                fix=f"write {rule.server}__{patterns[0]}, or leave server out",
            )
        )
    if tools is not None and not any(_exists(each, tools) for each in patterns):
        near = nearest(patterns[0], [*tools, *KNOWN])
        found.append(
            ConditionProblem(f"never matches: there is no such tool{near}", key=("tool",), fix="correct the name")
        )
    if _only_reads(patterns) and _kinds(rule) and _kinds(rule) <= {str(kind) for kind in CHANGES}:
        found.append(
            ConditionProblem("never matches: the tool changes nothing", key=("effect",), fix="name the effect it has")
        )
    return found


def _patterns(rule: PermissionRule) -> tuple[str, ...]:
    return (rule.tool,) if isinstance(rule.tool, str) else tuple(rule.tool)


def _kinds(rule: PermissionRule) -> set[str]:
    return {rule.effect} if isinstance(rule.effect, str) else {str(kind) for kind in rule.effect}


def _is_plain(pattern: str) -> bool:
    return not any(mark in pattern for mark in "*?[")


def _exists(pattern: str, tools: Collection[str]) -> bool:
    """A tool of a server may come and go, so its name is taken on trust."""
    if "__" in pattern or pattern == "*":
        return True
    names = {other for name in (*tools, *KNOWN) for other in suspects_of(name, server=None)}
    return pattern in names or any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _only_reads(patterns: Sequence[str]) -> bool:
    found = [KNOWN.get(canonical(pattern)) for pattern in patterns]
    return bool(found) and all(known is not None and known.read_only for known in found)


def shadowed_by(matcher: Matcher, others: Sequence[Matcher]) -> Matcher | None:
    """The rule that always answers before this one, if there is one."""
    return next((other for other in others if other is not matcher and _overrules(other, matcher, others)), None)


def _overrules(one: Matcher, other: Matcher, order: Sequence[Matcher]) -> bool:
    if not _is_before(one, other, order) or not _covers(one.rule, other.rule):
        return False
    unconditional = not (one.rule.when or one.rule.effect or one.rule.target)
    return unconditional or (one.decision is Decision.ALLOW) == (other.decision is Decision.ALLOW)


def _is_before(one: Matcher, other: Matcher, order: Sequence[Matcher]) -> bool:
    """A deny goes first whatever the priorities; of equals the one written first."""
    first, second = _rank(one), _rank(other)
    return first > second or (first == second and order.index(one) < order.index(other))


def _rank(matcher: Matcher) -> tuple[bool, int, int]:
    is_deny = matcher.decision is Decision.DENY
    return is_deny, matcher.rule.priority, matcher.decision


def _covers(wide: PermissionRule, narrow: PermissionRule) -> bool:
    """Whether every call that the narrow rule matches is one that the wide rule matches; False where in doubt."""
    return (
        _covers_tools(wide, narrow)
        and all(
            getattr(wide, key) in (None, "", ()) or getattr(wide, key) == getattr(narrow, key)
            for key in (
                "server",
                "effect",
                "target",
                "user",
                "role",
                "mode",
                "session",
                "origin",
                "min_danger",
                "max_danger",
            )
        )
        and all(narrow.when.get(argument) == condition for argument, condition in wide.when.items())
        and (wide.expires is None or (narrow.expires is not None and narrow.expires <= wide.expires))
    )


def _covers_tools(wide: PermissionRule, narrow: PermissionRule) -> bool:
    patterns = _patterns(wide)
    return all(
        each in patterns or any(_pattern_covers(pattern, each) for pattern in patterns) for each in _patterns(narrow)
    )


def _pattern_covers(wide: str, narrow: str) -> bool:
    if wide == "*":
        return True
    if not _is_plain(narrow):
        return False
    names = names_of(canonical(narrow), server=None)
    return any(fnmatch.fnmatchcase(name, wide) for name in names)
