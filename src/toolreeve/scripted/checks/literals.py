"""Literal check: where quoted values may appear in SQL and jq.

Reads only the author's text. Fails closed: a position that dialects read differently is refused.
"""

import re
from collections.abc import Sequence

from toolreeve.scripted.words import Part, Unknown

_BEFORE = frozenset(" \t\n(,=<>|")
_BEHIND = frozenset(" \t\n),;:|<>=")
_CLOSERS = {"'": "'", '"': '"', "`": "`", "/*": "*/", "--": "\n", "#": "\n", "[": "]"}
_DOLLAR = re.compile(r"\$[A-Za-z_]*\$")
_USES_SQL = "write {{…|sql}} there, without quotes around it"
_USES_JQ = "pass it by name: jq --arg v {{…}} '… $v …'; or write {{…|json}}, without quotes around it"


def sql_problem(parts: Sequence[Part], dialect: str) -> tuple[str, str]:
    """Why a value may not appear in its position of a statement, and what to write instead; empty if it may."""
    state = ""
    before = " "
    for index, part in enumerate(parts):
        if isinstance(part, str):
            state = _after_sql(part, state, dialect)
            if state == "?":
                return "is in a statement that dialects read differently", "do without backslashes in it"
            before = part[-1]
        elif part.taint:
            if (problem := _sql_place(part, state, before, _next_letter(parts, index), dialect)) != ("", ""):
                return problem
            before = "'"
        else:
            before = "_"
    return "", ""


def _next_letter(parts: Sequence[Part], index: int) -> str:
    following = parts[index + 1] if index + 1 < len(parts) else " "
    return following[0] if isinstance(following, str) else "_"


def _sql_place(part: Unknown, state: str, before: str, behind: str, dialect: str) -> tuple[str, str]:
    literal = part.hole.literal if part.hole is not None else ""
    if literal not in ("sql", f"sql:{dialect}"):
        if literal.startswith("sql:"):
            return f"is quoted for another dialect than {dialect}", f"write {{{{…|sql('{dialect}')}}}}"
        return "would be part of an SQL statement", _USES_SQL
    if state:
        return f"is inside {state} … {_CLOSERS.get(state, state)!r} of an SQL statement", _USES_SQL
    if before not in _BEFORE or behind not in _BEHIND:
        return "touches other text of an SQL statement", "put blanks around it"
    return "", ""


def _after_sql(text: str, state: str, dialect: str) -> str:
    """What is still open after a stretch of SQL: a quote, a comment, or nothing; `?` if it is not clear."""
    position = 0
    while position < len(text):
        if state:
            closer = _CLOSERS.get(state, state)
            if text[position] == "\\" and state in "'\"" and dialect != "sqlite":
                return "?"
            if text.startswith(closer, position):
                position += len(closer)
                state = ""
            else:
                position += 1
            continue
        if text[position] == "\\":
            return "?"
        state = _opened_sql(text, position, dialect)
        position += len(state) or 1
    return state


def _opened_sql(text: str, position: int, dialect: str) -> str:
    for opener in ("/*", "--", "'", '"', "`"):
        if text.startswith(opener, position):
            return opener
    if text[position] == "#" and dialect == "mysql":
        return "#"
    if text[position] == "[" and dialect == "sqlite":
        return "["
    found = _DOLLAR.match(text, position)
    return found[0] if found and dialect in ("postgres", "duckdb") else ""


def jq_problem(parts: Sequence[Part]) -> tuple[str, str]:
    """As `sql_problem`. A value may be the whole program: jq can neither run programs nor write files."""
    if len(parts) == 1:
        return "", ""
    quoted = False
    for part in parts:
        if isinstance(part, str):
            if "#" in part:
                return "is in a jq program with comments", "remove the comment"
            quoted = quoted != (len(re.findall(r'"', re.sub(r"\\.", "", part))) % 2 == 1)
        elif part.taint and (quoted or part.hole is None or part.hole.literal != "json"):
            return "would be part of a jq program", _USES_JQ
    return "", ""
