"""Which words could a command be said to contain? For denies: too many rather than too few.

Quotes, escapes and plain concatenation are folded away, text inside strings is read again as commands, globs are
matched by name. Works on anything, also on what cannot be parsed.
"""

import re
from fnmatch import fnmatchcase

from toolreeve.policy.shell.scan import ansi

_SEPARATORS = re.compile(r"[\s;&|<>(){}\[\]`$\"'=,:!]+")
_ANSI = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|0?([0-7]{3})|u([0-9a-fA-F]{4}))")
_EMPTY_QUOTES = re.compile(r"''|\"\"|\\\n|\\(?=[A-Za-z0-9_./-])|(?<=[A-Za-z0-9_./-])[\"'](?=[A-Za-z0-9_./-])")
_PARAMETER = re.compile(r"\$\{[A-Za-z_]\w*:?[-+=?]([^}]*)\}")
_EXPANSION = re.compile(r"\$\{?[A-Za-z_@*#?]\w*\}?")
_ASSIGNED = re.compile(r"(?:^|[\s;&|(])([A-Za-z_]\w*)=([^\s;&|()]*)")
_MOST_CHARS = 64 * 1024


def deny_words(command: str) -> frozenset[str]:
    """Every word that the command, or a command in its text, may run or name; paths also by their last part."""
    text = command[:_MOST_CHARS]
    found: set[str] = set()
    for variant in _variants(text):
        for word in _SEPARATORS.split(variant):
            if word:
                found.add(word)
                found.add(word.rstrip("/").rpartition("/")[2] or word)
    return frozenset(found)


def may_name(command: str, word: str) -> bool:
    """Whether a deny on `word` meets the command: literally, or through a glob that may match it."""
    words = deny_words(command)
    if word in words:
        return True
    wild = re.findall(r"[^\s;&|<>()`\"']*[*?\[][^\s;&|<>()`\"']*", command)
    return any(fnmatchcase(word, pattern.rpartition("/")[2]) for pattern in wild)


def _variants(text: str) -> list[str]:
    """The text as written, with quoting folded away, with escapes decoded, with variables put in."""
    folded = _ANSI.sub(lambda quoted: _decoded(quoted.group(1)), text)
    decoded = _ESCAPED.sub(_character, folded)
    plain = _EMPTY_QUOTES.sub("", decoded)
    assigned = {name: value.strip("'\"") for name, value in _ASSIGNED.findall(plain)}
    filled = re.sub(r"\$\{?(\w+)\}?", lambda name: assigned.get(name.group(1), ""), plain)
    bare = _EXPANSION.sub("", _PARAMETER.sub(r"\1", plain))
    unescaped = plain.replace("\\", "")
    return [text, folded, plain, filled, bare, unescaped, text[::-1]]


def _decoded(body: str) -> str:
    try:
        return ansi(body)
    except Exception:
        return body


def _character(found: re.Match[str]) -> str:
    for index, base in ((1, 16), (2, 8), (3, 16)):
        if digits := found.group(index):
            return chr(int(digits, base))
    return ""
