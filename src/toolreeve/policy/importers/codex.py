"""Importer of Codex's rules: calls of `prefix_rule` in Starlark.

The file is parsed, and only literals are read; nothing in it is evaluated.
"""

import ast
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from toolreeve.policy.importers.imported import ImportedRules, command_rule

_DECISIONS = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
MOST_ALTERNATIVES = 64


def import_codex(text: str, *, root: str) -> ImportedRules:
    found = ImportedRules()
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        found.skip("the file", f"cannot be parsed: {problem}")
        return found
    for statement in statements:
        written = ast.get_source_segment(text, statement) or ""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "prefix_rule":
            found.skip(written, "only prefix_rule has a counterpart")
            continue
        _import(written, _literals(call), found, root)
    return found


def _literals(call: ast.Call) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for each in call.keywords:
        try:
            values[str(each.arg)] = ast.literal_eval(each.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            values[str(each.arg)] = None
    return values


def _import(written: str, given: Mapping[str, Any], found: ImportedRules, root: str) -> None:
    decision = _DECISIONS.get(str(given.get("decision", "allow")))
    prefixes = list(_prefixes(given.get("pattern")))
    if decision is None or not prefixes:
        found.skip(written, f"its pattern or decision is not a literal, or has more than {MOST_ALTERNATIVES} forms")
        return
    reason = given.get("justification")
    for words in prefixes:
        rule = command_rule(words, decision)
        if isinstance(reason, str) and reason:
            rule["reason"] = reason
        found.add(written, rule, root=root)


def _prefixes(pattern: Any) -> Iterator[str]:
    """Every list of words that the pattern stands for; each place is a word, or a list of alternatives."""
    if not isinstance(pattern, list) or not pattern:
        return
    places = [each if isinstance(each, list) else [each] for each in pattern]
    count = 1
    for place in places:
        count *= len(place)
    words = [word for place in places for word in place]
    plain = all(isinstance(word, str) and word and not set(word) & set(" \t\n*?[") for word in words)
    if plain and 0 < count <= MOST_ALTERNATIVES:
        yield from (" ".join(each) for each in product(*places))
