"""Which commands need no grammar? Those of plain words and whole quoted ones, joined by `|`, `&&`, `||`, `;` and lines.

Whatever has more to it is left to the grammar, which must read all of these the same way.
"""

import re

from toolreeve.policy.shell.syntax import Node, Pipeline, Script, Simple, Step

_SEGMENT = re.compile(r"""((?:[A-Za-z0-9_./:=,@%+\-^ \t]++|'[^'\n]*+'|"[^"$`\\!\n]*+")*+)(\|\||&&|[|;\n]|\Z)""")
_WORD = re.compile(r"""[ \t]*+(?:([^ \t'"]++)|'([^']*+)'|"([^"]*+)")(?=[ \t]|\Z)""")
_NAMES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,@%+-^")
_OF_THE_GRAMMAR = frozenset(
    "if then elif else fi for while until do done case esac in select function coproc time declare typeset export "
    "readonly local unset unsetenv let".split()
)


def plain(command: str) -> Script | None:
    """The command, or None where only the grammar can tell."""
    steps: list[Step] = []
    stages: list[Node] = []
    at, size, joined = 0, len(command), False
    while at <= size:
        segment = _SEGMENT.match(command, at)
        if segment is None:
            return None
        text, operator = segment[1].strip(" \t"), segment[2]
        at = segment.end() + (not operator)
        if not text:
            if operator not in ("\n", "") or (joined and not operator):
                return None
            continue
        words = _words(text)
        if words is None:
            return None
        stages.append(Simple(words, (), (), text))
        joined = operator in ("|", "&&", "||")
        if operator != "|":
            steps.append(Step(stages[0] if len(stages) == 1 else Pipeline(tuple(stages)), operator if joined else ";"))
            stages = []
    return Script(tuple(steps)) if steps else None


def _words(text: str) -> tuple[str, ...] | None:
    first, *more = text.split()
    if first in _OF_THE_GRAMMAR or not _NAMES.issuperset(first):
        return None
    if "'" not in text and '"' not in text:
        return (first, *more)
    words: list[str] = []
    at = 0
    while at < len(text):
        word = _WORD.match(text, at)
        if word is None:
            return None
        words.append(word[word.lastindex or 0])
        at = word.end()
    return tuple(words)
