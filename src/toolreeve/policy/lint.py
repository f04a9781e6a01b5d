"""Can this rule ever decide anything? A rule that cannot is a mistake of its author, and is told as one."""

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
    """A tool of a server may come and go, so its name is taken on trust."""
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


class _Reach:
    """What a rule covers, made ready to be compared with many others."""

    __slots__ = ("everything", "matcher", "names", "patterns", "rank", "spellings")

    def __init__(self, matcher: Matcher, position: int) -> None:
        self.matcher = matcher
        self.names = frozenset(_patterns(matcher.rule))
        self.everything = "*" in self.names
        self.patterns = [re.compile(fnmatch.translate(each)) for each in self.names if not _is_plain(each)]
        self.spellings = [names_of(canonical(each), server=None) if _is_plain(each) else None for each in self.names]
        # A deny is asked first whatever the priorities; of equals the one written first.
        deny = matcher.decision is Decision.DENY
        self.rank = (deny, matcher.rule.priority, int(matcher.decision), -position)

    def covers_tools(self, narrow: "_Reach") -> bool:
        if self.everything or narrow.names <= self.names:
            return True
        return all(spelled is not None and self._covers(spelled) for spelled in narrow.spellings)

    def _covers(self, spellings: frozenset[str]) -> bool:
        return not self.names.isdisjoint(spellings) or any(
            pattern.match(name) for pattern in self.patterns for name in spellings
        )


def shadowed(matchers: Sequence[Matcher]) -> Iterator[tuple[Matcher, Matcher]]:
    """Each rule that never decides, with the one that always answers before it."""
    reaches = [_Reach(matcher, position) for position, matcher in enumerate(matchers)]
    for reach in reaches:
        other = next((each for each in reaches if each.rank > reach.rank and _overrules(each, reach)), None)
        if other is not None:
            yield reach.matcher, other.matcher


def _overrules(wide: _Reach, narrow: _Reach) -> bool:
    if not wide.covers_tools(narrow) or not _covers(wide.matcher.rule, narrow.matcher.rule):
        return False
    rule = wide.matcher.rule
    unconditional = not (rule.when or rule.effect or rule.target or rule.program)
    return unconditional or (wide.matcher.decision is Decision.ALLOW) == (narrow.matcher.decision is Decision.ALLOW)


_SAME = (
    "server",
    "effect",
    "target",
    "program",
    "user",
    "role",
    "mode",
    "session",
    "origin",
    "min_danger",
    "max_danger",
)


def _covers(wide: PermissionRule, narrow: PermissionRule) -> bool:
    """Whether, of calls to the same tool, every one that the narrow rule matches is matched by the wide one; False
    where in doubt."""
    return (
        all(getattr(wide, key) in (None, "", ()) or getattr(wide, key) == getattr(narrow, key) for key in _SAME)
        and all(narrow.when.get(argument) == condition for argument, condition in wide.when.items())
        and (wide.expires is None or (narrow.expires is not None and narrow.expires <= wide.expires))
    )
