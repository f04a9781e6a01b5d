"""Glob patterns, matched in linear time.

`*` and `?` stay within a name, `**` spans directories, `{a,b}` and `[a-z]` choose. A pattern without a slash matches
names at any depth. Patterns become RE2 expressions, so none can be made to take forever.
"""

from collections.abc import Callable
from typing import Any

from toolreeve.core.errors import ErrorCode, ToolError

MAX_PATTERN = 1000


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Raises ToolError(INVALID_PARAMS) for an invalid pattern."""
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/pattern: must have 1 to {MAX_PATTERN} characters")
    anchored = pattern.removeprefix("./")
    prefix = "" if "/" in anchored else "(?:.*/)?"
    expression = compile_regex(f"(?s){prefix}{translate(anchored)}", shown=pattern)
    return lambda path: expression.fullmatch(path) is not None


def wants_hidden(pattern: str) -> bool:
    """Whether the pattern itself names something that begins with a dot."""
    return any(part.startswith(".") and part not in (".", "..") for part in pattern.split("/"))


def compile_regex(expression: str, *, shown: str, line_by_line: bool = False, ignore_case: bool = False) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_nl = line_by_line
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(expression, options)
    except re2.error as problem:
        reason = problem.args[0] if problem.args else problem
        if isinstance(reason, bytes):
            reason = reason.decode("utf-8", "replace")
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/pattern: {shown[:200]!r} is invalid: {reason}") from None


def translate(pattern: str) -> str:
    """The regular expression of a glob."""
    import re2

    made: list[str] = []
    at = depth = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            made.append("(?:.*/)?")
            at += 3
            continue
        if pattern.startswith("**", at):
            made.append(".*")
            at += 2
            continue
        if char == "[" and (end := _end_of_class(pattern, at)):
            made.append(_class(pattern[at + 1 : end]))
            at = end + 1
            continue
        if char == "{" and "}" in pattern[at:]:
            depth += 1
            made.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            made.append(")")
        elif char == "," and depth:
            made.append("|")
        else:
            made.append({"*": "[^/]*", "?": "[^/]"}.get(char) or re2.escape(char))
        at += 1
    return "".join(made) + ")" * depth


def _end_of_class(pattern: str, start: int) -> int:
    """The index of the `]` that closes a `[`; 0 if there is none, so that the `[` is an ordinary character."""
    first = start + 2 if pattern[start + 1 : start + 2] in ("!", "^") else start + 1
    return max(pattern.find("]", first + 1), 0)


def _class(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    members = inner[1:] if negated else inner
    escaped = "".join(f"\\{char}" if char in "\\[]^&~|" else char for char in members)
    return f"[{'^/' if negated else ''}{escaped}]"
