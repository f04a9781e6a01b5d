"""Conditional expressions: operands of `[`, `[[` and `test`.

Bash evaluates some operands as arithmetic, which can run commands. A word that expands to `-v` makes it evaluate the
next one, so operators must be literal.
"""

import re

from toolreeve.policy.shell.interpret.expansion import Dynamic, Word, several
from toolreeve.policy.shell.programs.arguments import NotKnown

_NUMERIC = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
_JOINING = frozenset(("-a", "-o", "("))
_NUMBER = re.compile(r"-?\d+")


def check_test(words: list[Word], operators: tuple[str, ...], *, double: bool) -> None:
    """The operands and operators of `[ … ]`, or `double` of `[[ … ]]`, as they were parsed."""
    if not double:
        _check_single(words)
        joined = len(words) > 2 or (len(words) == 2 and not operators) or not _JOINING.isdisjoint(operators)
        _check_written(words, plain=not joined)
    evaluated = (double and _NUMERIC.intersection(operators)) or "-v" in operators
    if evaluated and not all(isinstance(word, str) and _NUMBER.fullmatch(word) for word in words):
        raise NotKnown("a numeric test of a value decided only when it runs")


def check_words(words: list[Word]) -> None:
    """The words of `test`, or of `[` and its `]`."""
    given = words[:-1] if words[-1:] == ["]"] else words
    given = given[1:] if given[:1] == ["!"] else given
    if "-v" in words or "-R" in words:
        raise NotKnown("a test that evaluates a variable's name")
    _check_single(words)
    operator = {2: 0, 3: 1}.get(len(given))
    _check_written(given, plain=len(given) < 2 if operator is None else isinstance(given[operator], str))


def _check_single(words: list[Word]) -> None:
    if any(map(several, words)):
        raise NotKnown("a test that may evaluate a variable's name (quote its words)")


def _check_written(words: list[Word], *, plain: bool) -> None:
    if not plain and any(isinstance(word, Dynamic) for word in words):
        raise NotKnown("a test whose operators are decided only when it runs")
