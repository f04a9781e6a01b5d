"""Lint for rules: those that can never match or never decide.

Such a rule is a mistake of its author and is reported as an error.
"""

import fnmatch
import functools
import re
from collections.abc import Collection, Iterator, Sequence

from toolreeve.core.suggest import hint_similar
from toolreeve.core.verdict import Decision
from toolreeve.policy.conditions import ConditionProblem
from toolreeve.policy.known_tools import KNOWN, canonical, names_of, suspects_of
from toolreeve.policy.rules import CHANGES, Matcher, PermissionRule


def never_matches(rule: PermissionRule, *, now: float | None, tools: Collection[str] | None) -> list[ConditionProblem]:
    """Why the rule can never match, if so. Without a clock or a registry, those checks are skipped."""
    found = []
    if now is not None and rule.expires is not None and rule.expires <= now:
        found.append(ConditionProblem("has expired", key=("expires",), fix="remove the rule, or set a later date"))
    patterns = _patterns(rule)
    names_no_server_tool = "*" not in patterns and all(_is_plain(each) and "__" not in each for each in patterns)
    if rule.server is not None and names_no_server_tool:
        found.append(
            ConditionProblem(
                "never matches: tools of servers are named server__tool",
                key=("tool",),
                fix=f"write {rule.server}__{patterns[0]}, or leave server out",
            )
        )
    if tools is not None and not any(_exists(each, tools) for each in patterns):
        near = hint_similar(patterns[0], [*tools, *KNOWN])
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
    """Tools of servers come and go, so their names are not checked."""
    if "__" in pattern or pattern == "*":
        return True
    names = _spellings(frozenset(tools))
    return pattern in names or any(fnmatch.fnmatchcase(name, pattern) for name in names)


@functools.lru_cache(maxsize=4)
def _spellings(tools: frozenset[str]) -> frozenset[str]:
    return frozenset(other for name in (*tools, *KNOWN) for other in suspects_of(name, server=None))


def _only_reads(patterns: Sequence[str]) -> bool:
    found = [KNOWN.get(canonical(pattern)) for pattern in patterns]
    return bool(found) and all(known is not None and known.read_only for known in found)


class _Coverage:
    """What a rule covers, precomputed for comparison with many others."""

    __slots__ = ("everything", "matcher", "names", "patterns", "rank", "spellings")

    def __init__(self, matcher: Matcher, position: int) -> None:
        self.matcher = matcher
        self.names = frozenset(_patterns(matcher.rule))
        self.everything = "*" in self.names
        self.patterns = [re.compile(fnmatch.translate(each)) for each in self.names if not _is_plain(each)]
        self.spellings = [names_of(canonical(each), server=None) if _is_plain(each) else None for each in self.names]
        # Denies are asked first whatever their priority; among equals, the one written first.
        deny = matcher.decision is Decision.DENY
        self.rank = (deny, matcher.rule.priority, int(matcher.decision), -position)

    def covers_tools(self, narrow: "_Coverage") -> bool:
        if self.everything or narrow.names <= self.names:
            return True
        return all(spelled is not None and self._covers(spelled) for spelled in narrow.spellings)

    def _covers(self, spellings: frozenset[str]) -> bool:
        return not self.names.isdisjoint(spellings) or any(
            pattern.match(name) for pattern in self.patterns for name in spellings
        )


def shadowed(matchers: Sequence[Matcher]) -> Iterator[tuple[Matcher, Matcher]]:
    """Each rule that never decides, with the rule that always decides before it."""
    coverages = [_Coverage(matcher, position) for position, matcher in enumerate(matchers)]
    for narrow in coverages:
        other = next((wide for wide in coverages if wide.rank > narrow.rank and _overrules(wide, narrow)), None)
        if other is not None:
            yield narrow.matcher, other.matcher


def _overrules(wide: _Coverage, narrow: _Coverage) -> bool:
    if not wide.covers_tools(narrow) or not _covers(wide.matcher.rule, narrow.matcher.rule):
        return False
    rule = wide.matcher.rule
    unconditional = not (rule.when or rule.effect or rule.target or rule.program or rule.programs or rule.command)
    return unconditional or (wide.matcher.decision is Decision.ALLOW) == (narrow.matcher.decision is Decision.ALLOW)


_COMPARED_FIELDS = (
    "server",
    "effect",
    "target",
    "program",
    "programs",
    "args",
    "command",
    "confined",
    "writes",
    "user",
    "role",
    "mode",
    "session",
    "origin",
    "min_danger",
    "max_danger",
)


def _covers(wide: PermissionRule, narrow: PermissionRule) -> bool:
    """Whether the wide rule matches every call of a tool that the narrow rule matches; False if in doubt."""
    for key in _COMPARED_FIELDS:
        if getattr(wide, key) not in (None, "", ()) and getattr(wide, key) != getattr(narrow, key):
            return False
    if wide.expires is not None and (narrow.expires is None or narrow.expires > wide.expires):
        return False
    return all(narrow.when.get(argument) == condition for argument, condition in wide.when.items())
