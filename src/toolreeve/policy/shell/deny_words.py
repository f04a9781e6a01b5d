"""Words that a command may contain, for deny rules.

Too many words rather than too few: quotes, escapes and plain concatenation are removed, text inside strings is read
again as commands, and globs, braces and expansions stand for anything. Works on any text, even if it cannot be parsed,
in linear time. A command too long to read counts as containing every word.
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
"""A longer value is matched where it is assigned; substituted at every use, it could exhaust memory."""
LONGEST = 64 * 1024
_SHORT = 1000


class _Spelling(NamedTuple):
    """`globs` are matched as bash would; `templates` have a `*` for every expansion."""

    words: frozenset[str]
    globs: frozenset[str]
    templates: frozenset[str]


class NamedFiles(NamedTuple):
    """What a command may name as files. `patterns` have a `*` for every glob or expansion. A command that `moves`
    may be in any directory when it names them."""

    words: frozenset[str]
    patterns: frozenset[str]
    moves: bool


def deny_words(command: str) -> frozenset[str]:
    """Every word that the command, or a command inside its text, may run or name; paths also by their last part."""
    found = _words(command[:LONGEST])
    found.update([word.rstrip("/").rpartition("/")[2] for word in found if "/" in word])
    return frozenset(found - {""})


def _words(text: str) -> set[str]:
    found: set[str] = set()
    for variant in dict.fromkeys(_variants(text)):
        found.update(variant.translate(_SEPARATORS).split())
    return found


def named_files(command: str) -> NamedFiles:
    """Every word that may name a file; of a command longer than LONGEST, only its beginning is read."""
    text = command[:LONGEST]
    words = _words(text)
    loose = text if not words.isdisjoint(_SHELLS) else _QUOTED.sub(" ", text)
    globs = {found for found in _UNQUOTED.findall(loose) if not _WILD.isdisjoint(found)}
    templates = {word for word in _template_words(text) if word.strip("*/.")}
    tildes = {f"*/{word.partition('/')[2]}" for word in words if word[0] == "~" and word.strip("~/")}
    attached = [word[1:] for word in words if word[0] == "@"] + [word[2:] for word in words if word[0] == "-"]
    words.update(filter(None, attached))
    moves = not words.isdisjoint(_MOVING) or any(word.startswith(_MOVING_FLAGS) for word in words)
    return NamedFiles(frozenset(words), frozenset(globs | templates | tildes), moves)


def may_name(command: str, word: str) -> bool:
    """Whether a deny on `word` matches the command: literally, or through an expansion that may produce it."""
    if len(command) > LONGEST:
        return True
    words, globs, templates = (_spell_short if len(command) <= _SHORT else _spell_long)(command)
    if word in words:
        return True
    if any(len(pattern) > _LONGEST_PATTERN or fnmatchcase(word, pattern) for pattern in globs):
        return True
    return any(_may_become(pattern, word) for pattern in templates)


def _spell(command: str) -> _Spelling:
    text = command[:LONGEST]
    globs = {found.rpartition("/")[2] for found in _UNQUOTED.findall(text) if not _WILD.isdisjoint(found)}
    return _Spelling(deny_words(text), frozenset(globs), frozenset(_last_parts(text)))


# Cached because rules ask about one program after the other, and several rules about the same command.
_spell_short = lru_cache(maxsize=512)(_spell)
_spell_long = lru_cache(maxsize=2)(_spell)


def _last_parts(text: str) -> set[str]:
    return {word.rpartition("/")[2] for word in _template_words(text)}


def _template_words(text: str) -> list[str]:
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
    """Whether the word matches and at least half of it is literal: a lone variable could be any word."""
    literal = len(pattern) - pattern.count("*")
    return 2 * literal >= len(word) >= literal and fnmatchcase(word, pattern)


def _variants(text: str) -> list[str]:
    """The text as written, without quotes, with escapes decoded, with variables substituted."""
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
