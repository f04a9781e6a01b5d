"""Fast parser for plain commands, which need no grammar.

Simple commands joined by `|`, `&&`, `||`, `;` and line ends. Words may be quoted, patterns, variables and commands one
level deep; redirections stand at the end; heredocs have been removed. Everything else is left to the grammar, which
must read all of these the same way where it reads them.
"""

import re
from itertools import islice

from toolreeve.policy.shell.parse.heredocs import HEREDOCS
from toolreeve.policy.shell.parse.lexemes import ALONE, BARE, FIXED, INSIDE, PIECE, QUOTED
from toolreeve.policy.shell.parse.scanner import PLAIN, Unreadable, scan
from toolreeve.policy.shell.parse.syntax import (
    Assignment,
    Node,
    RawWord,
    Redirect,
    ShellPipeline,
    ShellScript,
    Simple,
    Step,
)

_ENDED = r"(\|\||&&|[|;\n]|\Z)"
# What is no segment or token is consumed to the end at once: searching again at every position would be quadratic.
_SEGMENT = re.compile(rf"(?:([{BARE} \t]*+)|((?:[ \t]++|{PIECE}|{ALONE}|>&|&>|[<>])++)){_ENDED}|(?s:.++)")
_TOKEN = re.compile(rf"(?:([0-9]?)(>&(?=[0-9])|>>?|<|&>>?)[ \t]*+)?((?:{PIECE})++|{ALONE})(?=[ \t]|\Z)|(\S(?s:.*+))")
_Token = tuple[str, str, str, str]
"""A redirection's descriptor and operator if it is one, a word, and the rest if no token matches."""
_JOINS = ("|", "&&", "||")
_INNER = re.compile(rf"[$<>]\(({INSIDE})\)")
_FIXED_WORDS = re.compile(rf"(?:(?:[{BARE}]++|{FIXED})(?:[ \t]++|\Z))++")
_NAME = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*+")
_ANY_NAME = re.compile(r"[A-Za-z0-9_./:,@%+\-^]++")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*+)=")
_OF_THE_GRAMMAR = frozenset(
    "if then elif else fi for while until do done case esac in select function coproc time declare typeset export "
    "readonly local unset unsetenv let".split()
)


class _NeedsGrammar(Exception):
    """The command is not plain."""


def plain(command: str) -> ShellScript | None:
    """The parsed command, given without its heredocs; None if it needs the grammar."""
    try:
        return _script(command, _ANY_NAME)
    except (_NeedsGrammar, Unreadable):
        return None


def _script(command: str, names: re.Pattern[str]) -> ShellScript:
    steps: list[Step] = []
    stages: list[Node] = []
    for text, bare, operator in _segments(command):
        stages.append(_bare(text, names) if bare else _mixed(text, names if _FIXED_WORDS.fullmatch(text) else _NAME))
        if operator != "|":
            node = stages[0] if len(stages) == 1 else ShellPipeline(tuple(stages))
            steps.append(Step(node, operator if operator in _JOINS else ";"))
            stages = []
    return ShellScript(tuple(steps))


def _segments(command: str) -> list[tuple[str, bool, str]]:
    """The text between operators, whether it is bare words, and the operator after it; nothing is skipped."""
    found: list[tuple[str, bool, str]] = []
    read = 0
    joined = False
    for bare, mixed, operator in _SEGMENT.findall(command):
        text = bare or mixed
        read += len(text) + len(operator)
        if text := text.strip(" \t"):
            found.append((text, bool(bare), operator))
            joined = operator in _JOINS
        elif operator not in ("\n", "") or (joined and not operator):
            raise _NeedsGrammar
    if read != len(command) or not found:
        raise _NeedsGrammar
    return found


def _bare(text: str, names: re.Pattern[str]) -> Simple:
    words = tuple(text.split())
    if words[0] in _OF_THE_GRAMMAR:
        raise _NeedsGrammar
    return Simple(words, (), (), text) if names.fullmatch(words[0]) else _mixed(text, _NAME)


def _mixed(text: str, names: re.Pattern[str]) -> Simple:
    """Assignments, then words, then redirections."""
    tokens: list[_Token] = _TOKEN.findall(text)
    at = 0
    count = len(tokens)
    assignments: list[Assignment] = []
    while at < count and (assignment := _assignment(tokens[at])) is not None:
        assignments.append(assignment)
        at += 1
    words: list[RawWord] = []
    while at < count and not tokens[at][1] and tokens[at][2] not in HEREDOCS:
        words.append(_word(tokens[at][2]) if words else _program(tokens[at][2], names))
        at += 1
    if at == count:
        return Simple(tuple(words), tuple(assignments), (), text)
    if not words:
        raise _NeedsGrammar
    source = text[: next(islice(_TOKEN.finditer(text), at, None)).start()].rstrip(" \t")
    redirects = sorted(map(_redirect, tokens[at:]), key=_is_heredoc)
    return Simple(tuple(words), tuple(assignments), tuple(redirects), source)


def _assignment(token: _Token) -> Assignment | None:
    _, operator, word, _ = token
    assigned = None if operator else _ASSIGNED.match(word)
    if assigned is None or assigned.end() == len(word):
        return None
    return Assignment(assigned[1], (_word(word[assigned.end() :]),))


def _program(word: str, names: re.Pattern[str]) -> str:
    if word in _OF_THE_GRAMMAR or not names.fullmatch(word):
        raise _NeedsGrammar
    return word


def _redirect(token: _Token) -> Redirect:
    descriptor, operator, word, _ = token
    if not operator and word in HEREDOCS:
        return Redirect("<<", "", HEREDOCS[word])
    # `2&>file` is the word 2 and a redirection of both outputs.
    if not operator or (descriptor and operator[0] == "&"):
        raise _NeedsGrammar
    return Redirect(operator, descriptor, _word(word))


def _is_heredoc(redirect: Redirect) -> bool:
    return redirect.operator == "<<"


def _word(text: str) -> RawWord:
    if not text or text in HEREDOCS:
        raise _NeedsGrammar
    if PLAIN.fullmatch(text):
        return text
    if QUOTED.fullmatch(text):
        return text[1:-1]
    if not text.isascii():
        raise _NeedsGrammar

    def inner(at: int, form: str) -> tuple[int, ShellScript | None]:
        found = _INNER.match(text, at)
        if found is None:
            raise _NeedsGrammar
        return found.end(), _script(found[1], _NAME)

    return scan(text, 0, inner)
