"""Conditions on values, compiled into three-valued tests.

An allow needs proof, a deny needs only suspicion. So a condition is compiled for one purpose or the other: for proof
every selected value must match, and a regular expression must match all of it; for suspicion one value, or a part of
it, is enough. None ("undecided": the argument is absent, or of another type) is never proof and always suspicion;
`present: true` turns an absent argument into False.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlsplit

from toolreeve.core.action import Action
from toolreeve.core.effects import EffectKind
from toolreeve.core.suggest import hint_similar

Truth = bool | None
Test = Callable[[Any, Action], Truth]

EVERY = "*"
"""In the path of an argument: every item of a list. As a host: every host."""

_PATH_KINDS = (EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE)


class ConditionProblem(Exception):
    """A condition that cannot be compiled; `key` says where in it, `fix` what to write."""

    def __init__(self, problem: str, *, key: tuple[str | int, ...] = (), fix: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.key = key
        self.fix = fix


class Purpose:
    """What a condition is compiled for: the workspace, and whether proof is required or suspicion is enough.

    `resolved` says that the values are targets of effects, with symbolic links already followed.
    """

    __slots__ = ("proof", "resolved", "root")

    def __init__(self, *, root: str, proof: bool, resolved: bool = False) -> None:
        self.root = root
        self.proof = proof
        self.resolved = resolved

    def combine(self, truths: Sequence[Truth]) -> Truth:
        """The truth for several values: all of them for proof, any of them for suspicion."""
        return all_of(truths) if self.proof else any_of(truths)


def all_of(truths: Sequence[Truth]) -> Truth:
    if False in truths:
        return False
    return None if None in truths else True


def any_of(truths: Sequence[Truth]) -> Truth:
    if True in truths:
        return True
    return None if None in truths else False


def compile_condition(written: Any, purpose: Purpose) -> Test:
    """All parts of a condition must hold. Raises ConditionProblem."""
    if not isinstance(written, Mapping):
        raise ConditionProblem(f"expected conditions like {{equals: …}}, got {written!r}")
    if not written:
        raise ConditionProblem("has no condition", fix=f"use one of {', '.join(OPERATORS)}")
    tests = [_compile_part(name, value, purpose) for name, value in written.items() if name != "present"]
    _refuse_contradiction(written)
    present = written.get("present")
    if present is not None and not isinstance(present, bool):
        raise ConditionProblem("expected true or false", key=("present",))

    def test(value: Any, action: Action) -> Truth:
        if present is not None and (value is not None) is not present:
            return False
        return all_of([part(value, action) for part in tests])

    return test


def _compile_part(name: str, value: Any, purpose: Purpose) -> Test:
    operator = OPERATORS.get(name)
    if operator is None:
        known = (*OPERATORS, "present")
        hint = hint_similar(str(name), known)
        fix = f"use one of {', '.join(known)}"
        raise ConditionProblem(f"unknown condition {name!r}{hint}", key=(name,), fix=fix)
    try:
        return operator(value, purpose)
    except ConditionProblem as problem:
        raise ConditionProblem(problem.problem, key=(name, *problem.key), fix=problem.fix) from None


def _refuse_contradiction(written: Mapping[str, Any]) -> None:
    if "min" in written and "max" in written and written["min"] > written["max"]:
        raise ConditionProblem("can never hold: min is greater than max", key=("min",), fix="swap them")
    if "equals" in written and "one_of" in written and written["equals"] not in written["one_of"]:
        raise ConditionProblem("can never hold: equals is not in one_of", key=("equals",), fix="keep one of them")
    if written.get("present") is False and len(written) > 1:
        raise ConditionProblem("can never hold beside present: false", key=("present",), fix="remove one of them")


def _equals(expected: Any, _: Purpose) -> Test:
    return lambda value, _: None if value is None and expected is not None else json_equal(value, expected)


def _one_of(options: Any, _: Purpose) -> Test:
    if not isinstance(options, (list, tuple)) or not options:
        raise ConditionProblem("expected a list with at least one value", fix="list the values: [a, b]")
    return lambda value, _: None if value is None else any(json_equal(value, option) for option in options)


def json_equal(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, but 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(json_equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(json_equal, one, other))
    return bool(one == other)


def _min(least: Any, _: Purpose) -> Test:
    least = _number(least)
    return lambda value, _: value >= least if _is_number(value) else None


def _max(most: Any, _: Purpose) -> Test:
    most = _number(most)
    return lambda value, _: value <= most if _is_number(value) else None


def _number(value: Any) -> float:
    if not _is_number(value):
        raise ConditionProblem(f"expected a number, got {value!r}")
    return cast(float, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _not(written: Any, purpose: Purpose) -> Test:
    opposite = Purpose(root=purpose.root, proof=not purpose.proof, resolved=purpose.resolved)
    inner = compile_condition(written, opposite)

    def test(value: Any, action: Action) -> Truth:
        truth = inner(value, action)
        return None if truth is None else not truth

    return test


def _regex(pattern: Any, purpose: Purpose) -> Test:
    compiled = compile_regex(pattern, dot_matches_newline=not purpose.proof)
    search = compiled.fullmatch if purpose.proof else compiled.search
    return lambda value, _: _matched(search, value)


def compile_regex(pattern: Any, *, dot_matches_newline: bool = False, of_lines: bool = False) -> Any:
    """Compile with RE2, which matches in linear time. Raises ConditionProblem.

    With `of_lines` the result searches bytes, and no match crosses the end of a line.
    """
    import re2

    if not isinstance(pattern, str) or not pattern:
        raise ConditionProblem(f"expected a regular expression, got {pattern!r}")
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = dot_matches_newline
    options.never_nl = of_lines
    try:
        return re2.compile(pattern.encode("utf-8", "replace") if of_lines else pattern, options)
    except re2.error as problem:
        reason = problem.args[0].decode(errors="replace") if problem.args else "not understood"
        fix = "use RE2 syntax (no look-around, no back-references)"
        raise ConditionProblem(f"bad regular expression: {reason}", fix=fix) from None


def _matched(search: Callable[[str], Any], value: Any) -> Truth:
    if not isinstance(value, str):
        return None
    try:
        return search(value) is not None
    except UnicodeEncodeError:
        return None


def _under(places: Any, purpose: Purpose) -> Test:
    roots = [absolute(place, purpose.root) for place in _texts(places)]

    def inside(path: str) -> bool:
        return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)

    return _path_test(inside, purpose)


def _glob(patterns: Any, purpose: Purpose) -> Test:
    compiled = [compile_regex(glob_to_regex(each, purpose.root)) for each in _texts(patterns)]

    def fits(path: str) -> Truth:
        return any_of([_matched(pattern.fullmatch, path) for pattern in compiled])

    return _path_test(fits, purpose)


def _path_test(fits: Callable[[str], Truth], purpose: Purpose) -> Test:
    """Test a path by where it really leads.

    The effects of the call hold the resolved paths. An argument that is among them as written is tested alone;
    otherwise there is a link on the way and all resolved paths are tested with it. A tool without path effects leaves
    only the text, which is undecided if it has `..` or `~`.
    """

    def test(value: Any, action: Action) -> Truth:
        if not isinstance(value, str) or not value or "\0" in value:
            return None
        written = absolute(value, purpose.root)
        if purpose.resolved:
            return fits(written)
        resolved = [effect.target for effect in action.effects if effect.kind in _PATH_KINDS]
        if written in resolved:
            return fits(written)
        if not resolved:
            return None if ".." in value.split("/") or value.startswith("~") else fits(written)
        return purpose.combine([fits(path) for path in (written, *resolved)])

    return test


def absolute(path: str, root: str) -> str:
    """The absolute path, with `.` and `..` resolved as text."""
    return "/" + posixpath.normpath(posixpath.join(root, path)).lstrip("/")


_GLOB_PART = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|[^*?\[]+|\[")


def glob_to_regex(pattern: str, root: str) -> str:
    """A path glob as a regular expression: `*` and `?` stay within a name, `**` crosses directories."""
    base = "" if pattern.startswith("/") else re.escape(root.rstrip("/")) + "/"
    return base + "".join(_translate_part(part) for part in _GLOB_PART.findall(pattern.removeprefix("./")))


def _translate_part(part: str) -> str:
    match part:
        case "**/":
            return "(?:[^/]+/)*"
        case "**":
            return "(?s:.*)"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(part) > 2 and part[0] == "[" and part[-1] == "]":
            negated = part[1] == "!"
            inner = part[2 if negated else 1 : -1].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
            return f"[{'^/' if negated else ''}{inner}]"
        case _:
            return re.escape(part)


def _host(patterns: Any, _: Purpose) -> Test:
    hosts = [_host_pattern(pattern) for pattern in _texts(patterns)]

    def test(value: Any, _: Action) -> Truth:
        host = host_of(value)
        return None if host is None else any(_host_fits(host, pattern) for pattern in hosts)

    return test


def _host_pattern(written: str) -> str:
    """Normalize for comparison. Raises ConditionProblem for what no host could match."""
    if written == EVERY:
        return EVERY
    name = written.removeprefix("*.")
    host = host_of(f"[{name.strip('[]')}]" if name.count(":") > 1 and "/" not in name else name)
    if host is None or "*" in name or host != _spelled_host(name):
        meant = f" (did you mean {host!r}?)" if host and "*" not in host else ""
        raise ConditionProblem(
            f"not a host: {written!r}{meant}", fix="write a name or an address, *.name for all below it, or *"
        )
    return host if name == written else f"*.{host}"


def _spelled_host(name: str) -> str | None:
    """The name normalized for comparison, if it is a plain name."""
    try:
        return name.strip("[]").rstrip(".").encode("idna").decode().lower()
    except ValueError:
        return None


def _host_fits(host: str, pattern: str) -> bool:
    if pattern == EVERY:
        return True
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern


_ODD = re.compile(r"[\x00-\x20\x7f\\%]")


def host_of(value: Any) -> str | None:
    """The normalized host of a URL or `host[:port]`; None where programs could read it differently."""
    if not isinstance(value, str) or not value or _ODD.search(value.split("?")[0].split("#")[0]):
        return None
    try:
        host = urlsplit(value if "://" in value else f"//{value}").hostname
        return host.rstrip(".").encode("idna").decode().lower() if host else None
    except ValueError:
        return None


def _texts(value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not texts or not all(isinstance(each, str) and each for each in texts):
        raise ConditionProblem(f"expected a string or a list of strings, got {value!r}")
    return list(texts)


OPERATORS: Mapping[str, Callable[[Any, Purpose], Test]] = {
    "equals": _equals,
    "one_of": _one_of,
    "glob": _glob,
    "under": _under,
    "regex": _regex,
    "min": _min,
    "max": _max,
    "host": _host,
    "not": _not,
}
