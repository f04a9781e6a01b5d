"""Deny rules against commands that are not fully known.

Only for denies, where suspicion is enough: the words of a command prove nothing. They are taken for paths and hosts,
from a lossy reading, so quotes, escapes and variables do not hide a path, and resolved from every directory that the
command may be in. A command too long to read is suspected of everything.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from toolreeve.core.action import Action
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.conditions import Test, absolute, compile_regex, glob_to_regex
from toolreeve.policy.path_overlap import ANY_DEPTH, may_touch

_DIRECTORY_ARGUMENTS = ("working_dir", "cwd", "workdir", "directory", "dir_path")
"""Arguments that set the working directory in tools that run commands."""
_ON_PATHS = frozenset((EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE, EffectKind.EXEC))
_ON_HOSTS = frozenset((EffectKind.NET, EffectKind.SEND))
_UNTIDY = re.compile(r"//|(?:^|/)\.{1,2}(?:/|$)|/$")
_SHORT = 4096


class _Trace(NamedTuple):
    """What a command names: resolved paths and words as written, one a line, and patterns of paths."""

    paths: bytes
    words: bytes
    patterns: tuple[Effect, ...]
    moves: bool


def commands_of(action: Action) -> list[str]:
    """The commands that the call would run; none if all of them are known."""
    commands = [effect.target for effect in action.effects if effect.kind is EffectKind.EXEC]
    if not commands or _is_known(action):
        return []
    whole = max(commands, key=len)
    return [whole, *(each for each in commands if each not in whole)]


def _is_known(action: Action) -> bool:
    rationale = action.tool.grounds
    return rationale is not None and not any(why for _, why in rationale(action.args).parts)


class DenyMatcher:
    """A deny's condition on targets, compiled to match words of commands. `test` is the condition itself."""

    __slots__ = ("_condition", "_folders", "_hosts", "_names", "_paths", "_root", "_test")

    def __init__(self, condition: Mapping[str, Any], test: Test, kinds: frozenset[EffectKind], root: str) -> None:
        self._condition = condition
        self._test = test
        self._root = root
        globs = list(_globs(condition)) if not kinds or kinds & _ON_PATHS else []
        hosts = _texts(condition.get("host")) if not kinds or kinds & _ON_HOSTS else []
        self._paths = _any_line([glob_to_regex(glob, root) for glob in globs])
        folders = [glob.removesuffix("/**") for glob in globs if glob.endswith("/**") and glob.strip("/*")]
        self._folders = _any_line([glob_to_regex(folder, root) for folder in folders])
        self._names = _any_line([_anywhere(part) for part in map(_distinctive_part, globs) if part])
        self._hosts = _any_line([_host_in_word(host) for host in hosts])

    def matches(self, command: str, action: Action) -> bool:
        from toolreeve.policy.shell.deny_words import LONGEST

        if len(command) > LONGEST:
            return True
        cached_trace = _trace_short if len(command) <= _SHORT else _trace_long
        trace = cached_trace(command, _directories(action, self._root))
        return self._names_path(trace, action) or self._may_match(trace) or self._names_host(trace)

    def _names_path(self, trace: _Trace, action: Action) -> bool:
        if self._paths is None:
            return False
        if trace.moves and self._names is not None and self._names.search(trace.words) is not None:
            return True
        # A command that names a folder may take all that is in it.
        if self._folders is not None and self._folders.search(trace.paths) is not None:
            return True
        found = self._paths.finditer(trace.paths)
        return any(self._test(match.group().decode(errors="replace"), action) is not False for match in found)

    def _may_match(self, trace: _Trace) -> bool:
        return self._paths is not None and any(may_touch(each, self._condition, self._root) for each in trace.patterns)

    def _names_host(self, trace: _Trace) -> bool:
        return self._hosts is not None and self._hosts.search(trace.words) is not None


def _globs(condition: Mapping[str, Any]) -> Iterable[str]:
    """The paths that the condition is about, as globs; all paths for a regex or a negation."""
    if "glob" in condition:
        return _texts(condition["glob"])
    if "under" in condition:
        return [glob for place in _texts(condition["under"]) for glob in (place.rstrip("/"), f"{place.rstrip('/')}/**")]
    if "equals" in condition or "one_of" in condition:
        return [_literal(path) for path in _texts(condition.get("equals", condition.get("one_of")))]
    return ["/**"] if "regex" in condition or "not" in condition else []


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [each for each in value or () if isinstance(each, str)]


def _literal(path: str) -> str:
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def _any_line(expressions: Sequence[str]) -> Any:
    """One search over lines for all of them; None if there are none."""
    return compile_regex("(?m)^(?:" + "|".join(expressions) + ")$", of_lines=True) if expressions else None


def _distinctive_part(glob: str) -> str:
    """The last part of a glob that is not all wildcard: it identifies a file in any directory."""
    return next((part for part in reversed(glob.split("/")) if part.strip("*?.")), "")


def _anywhere(part: str) -> str:
    return f"(?:.*/)?{glob_to_regex('/' + part, '/')[1:]}(?:/.*)?"


def _host_in_word(host: str) -> str:
    """A host in a word such as `//user@host/path`; any at all where an address is written out."""
    if host == "*":
        return "//[^/].*"
    name = r"[^/@]*\." + re.escape(host[2:]) if host.startswith("*.") else re.escape(host)
    return rf"(?i)/*(?:[^/]*@)?{name}\.?(?:[/?#].*)?"


def _directories(action: Action, root: str) -> tuple[str, ...]:
    given = [action.args.get(name) for name in _DIRECTORY_ARGUMENTS]
    return tuple(dict.fromkeys([root, *(absolute(path, root) for path in given if isinstance(path, str))]))


def _trace(command: str, directories: tuple[str, ...]) -> _Trace:
    from toolreeve.policy.shell.deny_words import named_files

    named = named_files(command)
    paths = {path for place in directories for path in _resolved(named.words, place)}
    patterns = {_pattern(each, place) for place in directories for each in named.patterns}
    return _Trace(_lines(paths), _lines(named.words), tuple(patterns), named.moves)


def _resolved(words: Iterable[str], place: str) -> Iterable[str]:
    base = place.rstrip("/") + "/"
    for word in words:
        if _UNTIDY.search(word):
            yield absolute(word, place)
        else:
            yield word if word[0] == "/" else base + word


def _pattern(word: str, place: str) -> Effect:
    """A component that is all wildcard may be an expansion, and so any number of components; at the front, it starts at
    the root."""
    path = absolute(word, "/" if word.startswith("*/") else place)
    parts = [ANY_DEPTH if part and not part.strip("*") else part for part in path.split("/")]
    return Effect(EffectKind.READ, "/".join(parts), Reach.MATCHING)


def _lines(words: Iterable[str]) -> bytes:
    return "\n".join(words).encode("utf-8", "replace")


_TraceCommand = Callable[[str, tuple[str, ...]], _Trace]
# Cached because each rule in turn asks about the same command.
_trace_short: _TraceCommand = lru_cache(maxsize=128)(_trace)
_trace_long: _TraceCommand = lru_cache(maxsize=2)(_trace)
