"""Allow rules on commands: by program and words, for each simple command.

An allow explains the whole command or nothing: every simple command is named by a rule, or is known to only read, and
everything that is written lies where the rules say. What is not literal is named by no rule.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from toolreeve.core.action import Action
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.conditions import ConditionProblem, absolute

ANY_WORDS = "*"
COMMAND_ARGUMENTS = ("command", "cmd")
_CHANGES = frozenset((EffectKind.WRITE, EffectKind.DELETE))
_SYNTAX = frozenset(";|&<>(){}$`\\\"'\n#~!")
_EXACT = frozenset(("equals", "one_of", "present"))


class WordPattern(NamedTuple):
    """The words of a command: the program literally, then a pattern for each word. `open`: any words may follow."""

    words: tuple[str, ...]
    open: bool

    @property
    def program(self) -> str:
        return self.words[0]

    def matches(self, words: Sequence[str], program: str) -> bool:
        """`program` is what the first word names; a program in the workspace is named only by its own path."""
        count = len(self.words)
        if len(words) < count or (len(words) > count and not self.open):
            return False
        if words[0] != self.program and not (program == self.program and words[0].startswith("/")):
            return False
        return all(map(_fits, words[1:count], self.words[1:]))


def _fits(word: str, pattern: str) -> bool:
    return word == pattern or fnmatchcase(word, pattern)


def compile_patterns(
    program: Sequence[str], args: Sequence[str] | None, command: Sequence[str]
) -> tuple[WordPattern, ...]:
    """Raises ConditionProblem. `program` may name subcommands (`git add`), and any words follow, unless `args` has a
    pattern for each. `command` is a whole command by its words; a last `*` stands for any further words."""
    found = []
    for named in program:
        words = _split(named, "program")
        found.append(WordPattern(words, open=True) if args is None else _closed((*words, *args), ("args",)))
    found += [_closed(_split(each, "command"), ("command",)) for each in command]
    if args is not None and not program:
        raise ConditionProblem("has no program", key=("args",), fix="name the program: program: pytest")
    for pattern in found:
        _refuse_wide(pattern, "command" if command else "program")
    return tuple(found)


def _split(written: str, key: str) -> tuple[str, ...]:
    if not _SYNTAX.isdisjoint(written):
        raise ConditionProblem(
            f"{written!r} is not plain words", key=(key,), fix="write the words of one command; patterns use * and ?"
        )
    words = tuple(written.split())
    if not words or any(mark in words[0] for mark in "*?["):
        raise ConditionProblem(
            f"{written!r} names no program", key=(key,), fix="begin with the program: npm run test *"
        )
    return words


def _closed(words: tuple[str, ...], key: tuple[str, ...]) -> WordPattern:
    if not all(isinstance(word, str) and word for word in words):
        raise ConditionProblem("has a pattern that is not text", key=key, fix='write each word as text: ["-q", "*"]')
    if words[-1] == ANY_WORDS and len(words) > 1:
        return WordPattern(words[:-1], open=True)
    return WordPattern(words, open=False)


def _refuse_wide(pattern: WordPattern, key: str) -> None:
    """A program that runs any command says nothing about what runs."""
    from toolreeve.policy.shell.allowlist import RUNS_ANYTHING
    from toolreeve.policy.shell.programs.subcommands import runs_others

    name = pattern.program
    if name in RUNS_ANYTHING or (pattern.open and runs_others(pattern.words)):
        raise ConditionProblem(
            f"{' '.join(pattern.words)!r} runs any other program", key=(key,), fix="name the program that it should run"
        )


class CommandRule(NamedTuple):
    """The part of an allow rule that is about commands. `writes` are the directories that may be changed; None stands
    for the workspace."""

    patterns: tuple[WordPattern, ...]
    writes: tuple[str, ...] | None

    @property
    def programs(self) -> frozenset[str]:
        return frozenset(pattern.program for pattern in self.patterns)


def compile_writes(written: Any, root: str) -> tuple[str, ...] | None:
    if not written:
        return None
    return tuple(absolute(each, root) for each in ([written] if isinstance(written, str) else written))


def programs_of(action: Action) -> frozenset[str]:
    """The programs that the call's command names, as rules name them."""
    from toolreeve.policy.shell.analysis import analysis_of
    from toolreeve.policy.shell.simple_commands import simple_commands

    found = analysis_of(action)
    if found is None:
        return frozenset()
    cached: frozenset[str] | None = found.cache.get("programs")
    if cached is None:
        links = [link for each in simple_commands(found) for link in each.chain]
        cached = found.cache["programs"] = frozenset(name for link in links for name in (link.words[0], link.program))
    return cached


def covers(rules: Sequence[CommandRule], action: Action, roots: Sequence[str]) -> bool:
    """Whether the rules together explain the whole command. `roots` are the directories that tools may change."""
    from toolreeve.policy.shell.analysis import analysis_of
    from toolreeve.policy.shell.simple_commands import simple_commands

    found = analysis_of(action)
    if found is None or found.danger is DangerLevel.CRITICAL:
        return False
    used: set[int] = set()
    for each in simple_commands(found):
        if not each.reads:
            rule = next((index for index, rule in enumerate(rules) if _explains(rule, each.chain)), None)
            if rule is None:
                return False
            used.add(rule)
    if not used:
        return False
    changes = action.effects if action.tried else found.changes
    allowed = [rules[index].writes or tuple(roots) for index in used]
    return _reads_plainly(found) and all(_lies_below(effect, places) for effect in changes for places in allowed)


def _explains(rule: CommandRule, chain: Sequence[Any]) -> bool:
    """Whether each command of the chain is named, or is known and only wraps the next one."""
    named = False
    inner: tuple[str, ...] = ()
    for link in chain:
        pattern = _find_pattern(rule, link)
        if pattern is not None:
            inner = pattern.words
            named = True
        elif not (link.known and link is not chain[-1]) and not _is_inside(link, inner, chain[0].words):
            return False
    return named


def _find_pattern(rule: CommandRule, link: Any) -> WordPattern | None:
    if not link.explained:
        return None
    found = (each for each in rule.patterns if each.matches(link.words, link.program))
    return next((each for each in found if not 0 < link.elsewhere <= len(each.words)), None)


def _is_inside(link: Any, named: tuple[str, ...], outermost: tuple[str, ...]) -> bool:
    """Whether the pattern that named the wrapper also names the program that it runs: `uv run pytest *`."""
    count = len(named) - (len(outermost) - len(link.words))
    return bool(link.explained and count > 0 and not 0 < link.elsewhere <= count)


def _reads_plainly(found: Any) -> bool:
    """No rule by program covers reading what may hold secrets."""
    from toolreeve.policy.shell.danger import assess_effect

    reads = (effect for effect in found.effects if effect.kind is EffectKind.READ)
    return all(assess_effect(each, found.home, found.root, found.allowed)[0] <= DangerLevel.LOW for each in reads)


def _lies_below(effect: Effect, places: Iterable[str]) -> bool:
    if effect.kind not in _CHANGES:
        return True
    path = effect.target
    if effect.reach is Reach.MATCHING:
        wild = min((path.find(mark) for mark in "*?[" if mark in path), default=len(path))
        path = path[:wild].rpartition("/")[0] or "/"
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def refuse_raw_text(when: Mapping[str, Any], patterns: Sequence[str]) -> list[ConditionProblem]:
    """An allow that matches the text of a command would also match what follows in it: `pytest; rm -rf .`."""
    if not _may_name_shell(patterns):
        return []
    return [
        ConditionProblem(
            "an allow cannot match the text of a command: a second command in it would be allowed too",
            key=("when", argument, *operators),
            fix=suggest_rewrite(condition),
        )
        for argument, condition in when.items()
        if argument in COMMAND_ARGUMENTS and (operators := sorted(set(condition) - _EXACT)[:1])
    ]


def _may_name_shell(patterns: Sequence[str]) -> bool:
    from toolreeve.policy.known_tools import KNOWN, RUNS, names_of

    names = [each for name, known in KNOWN.items() if known.effects is RUNS for each in names_of(name, server=None)]
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)


def suggest_rewrite(condition: Mapping[str, Any]) -> str:
    """The rule by program that was probably meant by a regular expression or a glob."""
    text = str(condition.get("regex") or condition.get("glob") or "")
    words = (
        text.removeprefix("^")
        .removesuffix("$")
        .replace("\\s+", " ")
        .replace("\\s", " ")
        .replace("\\ ", " ")
        .split("(")[0]
    )
    plain = [word for word in words.split() if word.replace("-", "").replace("_", "").replace("/", "").isalnum()]
    named = " ".join(plain) if words.split()[: len(plain)] == plain else ""
    return f"match each command by its program: program: {named or 'pytest'}"
