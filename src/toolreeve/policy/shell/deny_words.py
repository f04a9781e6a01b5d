"""Which words could a command be said to contain? For denies: too many rather than too few.

Quotes, escapes and plain concatenation are folded away, text inside strings is read again as commands, globs,
braces and expansions stand for anything. Works on anything, also on what cannot be parsed, in linear time. What is too
long to be read is said to contain everything.
"""

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import NamedTuple

from toolreeve.policy.shell.parse.scanner import Unreadable, ansi, restore

_SEPARATORS = str.maketrans(dict.fromkeys(";&|<>(){}[]`$\"'=,:!", " "))
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{3})|u([0-9a-fA-F]{4}))")
_EMPTY_QUOTES = re.compile(r"''|\"\"|\\\n|\\(?=[A-Za-z0-9_./-])|(?<=[A-Za-z0-9_./-])[\"'](?=[A-Za-z0-9_./-])")
_PARAMETER = re.compile(r"\$\{[A-Za-z_]\w*:?[-+=?]([^{}]*)\}")
_EXPANSION = re.compile(r"\$\{?[A-Za-z_@*#?]\w*\}?")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])([A-Za-z_]\w*)=([^\s;&|()]*)")
_UNQUOTED = re.compile(r"[^\s;&|<>()`\"']+")
_WILD = frozenset("*?[")
_INNERMOST = re.compile(r"\$\([^()]*\)|`[^`]*`|\$?\{[^{}\s]*\}")
_ANYTHING = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?!$-])|\[[^\[\]\s]*\]+|[*?\[\]]")
_QUOTES = re.compile(r"\\\n|\$(?=[\"'])|[\"'\\]")
_BETWEEN = re.compile(r"[\s;&|<>(){}`=,:!]+")
_MANY_STARS = re.compile(r"\*\*+")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_SHELLS = frozenset(("eval", "source", "sh", "bash", "dash", "zsh", "ksh", "busybox"))
_MOVING = frozenset(("cd", "pushd", "popd", "chdir", "os.chdir", "-execdir", "-okdir"))
_MOVING_FLAGS = ("-C", "--chdir", "--cd", "--directory", "--cwd", "--work-tree", "--working-dir")
_DEEPEST = 4
_LONGEST_PATTERN = 1000
_LONGEST_VALUE = 128
"""A longer one is met where it is written; put in wherever it is named, it would fill the memory."""
LONGEST = 64 * 1024
_SHORT = 1000


class _Spelling(NamedTuple):
    """`globs` are matched as bash would; `holed` have a `*` wherever something is put in when it runs."""

    words: frozenset[str]
    globs: frozenset[str]
    holed: frozenset[str]


class Named(NamedTuple):
    """What a command may name as files. `patterns` have a `*` wherever a glob or an expansion stands. One that `moves`
    may be in any directory when it names them."""

    words: frozenset[str]
    patterns: frozenset[str]
    moves: bool


def deny_words(command: str) -> frozenset[str]:
    """Every word that the command, or a command in its text, may run or name; paths also by their last part."""
    found = _words(command[:LONGEST])
    found.update([word.rstrip("/").rpartition("/")[2] for word in found if "/" in word])
    return frozenset(found - {""})


def _words(text: str) -> set[str]:
    found: set[str] = set()
    for variant in dict.fromkeys(_variants(text)):
        found.update(variant.translate(_SEPARATORS).split())
    return found


def named_files(command: str) -> Named:
    """Every word that may be the name of a file; of a command longer than LONGEST, those of its beginning."""
    text = command[:LONGEST]
    words = _words(text)
    loose = text if not words.isdisjoint(_SHELLS) else _QUOTED.sub(" ", text)
    globs = {found for found in _UNQUOTED.findall(loose) if not _WILD.isdisjoint(found)}
    holed = {word for word in _holed_words(text) if word.strip("*/.")}
    tildes = {f"*/{word.partition('/')[2]}" for word in words if word[0] == "~" and word.strip("~/")}
    attached = [word[1:] for word in words if word[0] == "@"] + [word[2:] for word in words if word[0] == "-"]
    words.update(filter(None, attached))
    moves = not words.isdisjoint(_MOVING) or any(word.startswith(_MOVING_FLAGS) for word in words)
    return Named(frozenset(words), frozenset(globs | holed | tildes), moves)


def may_name(command: str, word: str) -> bool:
    """Whether a deny on `word` meets the command: literally, or through what may turn out to be it."""
    if len(command) > LONGEST:
        return True
    words, globs, holed = (_spelled_shortly if len(command) <= _SHORT else _spelled_at_length)(command)
    return (
        word in words
        or any(len(pattern) > _LONGEST_PATTERN or fnmatchcase(word, pattern) for pattern in globs)
        or any(_may_become(pattern, word) for pattern in holed)
    )


def _spelled(command: str) -> _Spelling:
    text = command[:LONGEST]
    globs = {found.rpartition("/")[2] for found in _UNQUOTED.findall(text) if not _WILD.isdisjoint(found)}
    return _Spelling(deny_words(text), frozenset(globs), frozenset(_holed(text)))


# A rule asks for one program after the other, and several rules for the same commands.
_spelled_shortly = lru_cache(maxsize=512)(_spelled)
_spelled_at_length = lru_cache(maxsize=2)(_spelled)


def _holed(text: str) -> set[str]:
    return {word.rpartition("/")[2] for word in _holed_words(text)}


def _holed_words(text: str) -> list[str]:
    """The words with a `*` for every expansion, pattern or pair of braces in them."""
    text = _ANSI.sub(lambda quoted: _decoded(quoted.group(1)), text)
    for _ in range(_DEEPEST):
        text, inside = _INNERMOST.subn("*", text)
        if not inside:
            break
    text = _ANYTHING.sub("*", text)
    if "*" not in text:
        return []
    text = _MANY_STARS.sub("*", _QUOTES.sub("", text))
    return [word for word in _BETWEEN.split(text) if "*" in word]


def _may_become(pattern: str, word: str) -> bool:
    """Whether the word fits, and half of it at least is written out: a lone variable may be any word."""
    written = len(pattern) - pattern.count("*")
    return 2 * written >= len(word) >= written and fnmatchcase(word, pattern)


def _variants(text: str) -> list[str]:
    """The text as written, with quoting folded away, with escapes decoded, with variables put in."""
    folded = _ANSI.sub(lambda quoted: _decoded(quoted.group(1)), text)
    decoded = _ESCAPED.sub(_character, folded)
    plain = _EMPTY_QUOTES.sub("", decoded)
    assigned = {name: value.strip("'\"") for name, value in _ASSIGNED.findall(plain) if len(value) <= _LONGEST_VALUE}
    filled = re.sub(r"\$\{?(\w+)\}?", lambda name: assigned.get(name.group(1), ""), plain)
    bare = _EXPANSION.sub("", _PARAMETER.sub(r"\1", plain))
    unescaped = plain.replace("\\", "")
    unquoted = _QUOTES.sub("", decoded)
    return [text, folded, plain, filled, bare, unescaped, unquoted, text[::-1]]


def _decoded(body: str) -> str:
    try:
        return restore(ansi(body.encode("utf-8", "replace").decode("latin-1")))
    except Unreadable:
        return body


def _character(found: re.Match[str]) -> str:
    for index, base in ((1, 16), (2, 8), (3, 16)):
        if digits := found.group(index):
            return chr(int(digits, base))
    return ""
