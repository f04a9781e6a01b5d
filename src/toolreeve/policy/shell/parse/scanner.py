"""Scanner of words: quotes, escapes, globs, tildes, braces and expansions.

The parser's tree is not trusted about the inside of a word: every `$` and backtick that is not quoted must be a node of
the tree that starts at the same position, else the word is `Unreadable`.
"""

import re
from collections.abc import Callable
from itertools import pairwise

from toolreeve.policy.shell.parse.syntax import Expansion, Part, RawWord, ShellScript, Template

PLAIN = re.compile(r"[A-Za-z0-9_./:=,@%+\-^\x80-\xff]+")
_COMMON = re.compile(r"""([^\\'"$`*?\[\]{}~!()<>|&;\s]+)|([*?\[])|'([^']*)'|\$([A-Za-z_][A-Za-z0-9_]*)""")
_COMMON_IN_QUOTES = re.compile(r'([^\\"$`]+)|\$([A-Za-z_][A-Za-z0-9_]*)')
_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_NUMBER = "(?:0|[1-9][0-9]{0,17})"
# An expansion that fails ends the line, and with it assignments that were relied on: those that may fail are excluded.
_PARAMETER = re.compile(
    r"\$\{(#(?=\w+(?:\[[@*0-9]+\])?\}|[@*#?]\}))?([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?])"
    rf"(\[(?:@|\*|{_NUMBER})\])?"
    rf"(?:(?:##?|%%?|//?|\^\^?|,,?|:?[-+])[^$`(){{}}'\"\\]*|:(?: ?| -){_NUMBER}(?: ?: ?{_NUMBER})?)?\}}"
)
_ARITHMETIC = re.compile(rf"\$\(\([ \t]*{_NUMBER}(?:[ \t]*(?:[-+*]|[/%](?=[ \t]*[1-9]))[ \t]*{_NUMBER})*[ \t]*\)\)")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=")
_HOME = re.compile(r"~((?:[A-Za-z_][A-Za-z0-9_-]*)?)(?=/|\Z)")
_VARIABLE = Expansion.VARIABLE  # looked up once: access to an enum member is slow
_WILD = {char: Part(Expansion.GLOB, char) for char in "*?["}
_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})|([A-Za-z])\.\.([A-Za-z])")
_RUNNING = frozenset((Expansion.SUBSTITUTION, Expansion.PROCESS, Expansion.ARITHMETIC))
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "E": "\x1b"}
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)
_MOST_WORDS = 256
_MOST_CHARS = 16_384


class Unreadable(Exception):
    """The word is outside the grammar; the message says why."""


Inner = Callable[[int, str], tuple[int, ShellScript | None]]
"""Given the start and the kind of an expansion, answers its end and, for a command, its script."""


def restore(text: str) -> str:
    """Decode text that has one character a byte."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def scan(text: str, offset: int, inner: Inner) -> RawWord:
    """The word in `text`, which starts at byte `offset` of the source."""
    braced = "{" in text and text != "{}"
    if braced and (found := _braces(text)) is not None:
        if any("=~" in word for word in (text, *found)):
            raise Unreadable("a tilde and braces in one word")
        words = tuple(restore(word) if PLAIN.fullmatch(word) else scan(word, offset, inner) for word in found)
        return Template((Part(Expansion.BRACES, text, words=words),), restore(text))
    parts = _Scanner(text, offset, inner).parts()
    if braced:
        _check_quoted_braces(text, parts)
    for part in parts:
        if part[0] is not None:
            plain = text.isascii() and "$'" not in text
            return Template(tuple(parts if plain else map(_restored, parts)), restore(text))
    return _exactly("".join([part[1] for part in parts]))


def _restored(part: Part) -> Part:
    return part._replace(text=_exactly(part.text)) if part.kind is None else part


def _exactly(text: str) -> str:
    """Text for a program must be UTF-8: other bytes would be shown as something else."""
    try:
        return text if text.isascii() else text.encode("latin-1").decode()
    except UnicodeError:
        raise Unreadable("bytes that are not UTF-8") from None


class _Scanner:
    __slots__ = ("_at", "_found", "_inner", "_offset", "_text")

    def __init__(self, text: str, offset: int, inner: Inner) -> None:
        self._text = text
        self._offset = offset
        self._inner = inner
        self._at = 0
        self._found: list[Part] = []

    def parts(self) -> list[Part]:
        text = self._text
        size = len(text)
        found = self._found
        while self._at < size:
            common = _COMMON.match(text, self._at)
            if common is None:
                self._special(text[self._at])
                continue
            run, wild, quoted, name = common.groups()
            if run:
                if run[0] == "#" and self._at:
                    raise Unreadable("a `#` after a quote")
                found.append(Part(None, run))
            elif wild:
                found.append(_WILD[wild])
            else:
                found.append(Part(_VARIABLE, name) if name else Part(None, quoted, True))  # noqa: FBT003
            self._at = common.end()
        return found

    def _literal(self, value: str, end: int, *, quoted: bool = False) -> None:
        self._found.append(Part(None, value, quoted))
        self._at = end

    def _special(self, char: str) -> None:
        match char:
            case "'":
                raise Unreadable("a quote is not closed")
            case '"':
                self._double()
            case "\\":
                self._escape()
            case "$" | "`":
                self._expansion(quoted=False)
            case "~":
                self._tilde()
            case "<" | ">":
                self._process()
            case "]" | "{" | "}" | "!":
                self._literal(char, self._at + 1)
            case _:
                raise Unreadable(f"{char!r} inside a word")

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if not following:
            raise Unreadable("a backslash ends the word")
        self._literal("" if following == "\n" else following, self._at + 2, quoted=True)

    def _double(self) -> None:
        self._at += 1
        self._literal("", self._at, quoted=True)
        text = self._text
        while self._at < len(text):
            if common := _COMMON_IN_QUOTES.match(text, self._at):
                run, name = common.groups()
                self._found.append(Part(None, run, True) if run else Part(_VARIABLE, name, True))  # noqa: FBT003
                self._at = common.end()
            elif text[self._at] == '"':
                self._at += 1
                return
            elif text[self._at] == "\\":
                self._escape_in_quotes()
            else:
                self._expansion(quoted=True)
        raise Unreadable("a quote is not closed")

    def _escape_in_quotes(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "\n":
            value = ""
        elif following in '$`"\\':
            value = following
        else:
            value = "\\" + following
        self._literal(value, self._at + 2, quoted=True)

    def _tilde(self) -> None:
        text, at = self._text, self._at
        if at and not _ASSIGNED.fullmatch(text, 0, at):
            if _ASSIGNED.match(text) and text[at - 1] == ":":
                raise Unreadable("a tilde inside a value")
            self._literal("~", at + 1)
            return
        user = _HOME.match(text, at)
        if user is None:
            raise Unreadable("a tilde that is not a home directory")
        self._found.append(Part(Expansion.TILDE, user.group(1)))
        self._at = user.end()

    def _process(self) -> None:
        if self._text[self._at + 1 : self._at + 2] != "(":
            raise Unreadable("a redirection inside a word")
        end, script = self._inner(self._offset + self._at, "process_substitution")
        self._found.append(Part(Expansion.PROCESS, self._text[self._at], script=script))
        self._at = end - self._offset

    def _expansion(self, *, quoted: bool) -> None:
        text, at = self._text, self._at
        following = text[at + 1 : at + 2]
        if text[at] == "$" and following == "'" and not quoted:
            self._ansi()
        elif text.startswith("$((", at):
            self._matched(_ARITHMETIC, Expansion.ARITHMETIC, "arithmetic", quoted=quoted)
        elif text[at] == "`" or following == "(":
            end, script = self._inner(self._offset + at, "command_substitution")
            self._found.append(Part(Expansion.SUBSTITUTION, "", quoted, script))
            self._at = end - self._offset
        elif following == "{":
            self._matched(_PARAMETER, Expansion.PARAMETER, "a parameter expansion", quoted=quoted)
        elif name := _NAME.match(text, at):
            self._found.append(Part(Expansion.VARIABLE, name.group(1), quoted))
            self._at = name.end()
        elif (following == '"' and not quoted) or following == "[":
            raise Unreadable("a `$` form that is not understood")
        else:
            self._literal("$", at + 1, quoted=quoted)

    def _matched(self, form: re.Pattern[str], kind: Expansion, what: str, *, quoted: bool) -> None:
        found = form.match(self._text, self._at)
        if found is None:
            raise Unreadable(f"{what} that is not plain")
        name = found.group(2) if kind is Expansion.PARAMETER else ""
        # Only a bare `${name}` has the variable's own value.
        if kind is Expansion.PARAMETER and found.group() == "${" + name + "}":
            kind = Expansion.VARIABLE
        several = kind is Expansion.PARAMETER and found.group(3) == "[@]"
        self._found.append(Part(kind, name, quoted and not several))
        self._at = found.end()

    def _ansi(self) -> None:
        end = self._at + 2
        while end < len(self._text) and self._text[end] != "'":
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            raise Unreadable("a quote is not closed")
        self._literal(ansi(self._text[self._at + 2 : end]), end + 1, quoted=True)


def ansi(body: str) -> str:
    """The text of `$'body'`, up to a NUL, where bash would cut it; one character a byte."""

    def one(found: re.Match[str]) -> str:
        if digits := found.group(1):
            return chr(int(digits, 16))
        if digits := found.group(4):
            return chr(int(digits, 8) & 0xFF)
        if digits := found.group(2) or found.group(3):
            if int(digits, 16) > 0x7F:
                raise Unreadable("a character whose encoding depends on the locale")
            return chr(int(digits, 16))
        if control := found.group(5):
            return chr(ord(control) & 0x1F)
        char = found.group(6)
        return _ESCAPES.get(char, char if char in "\\'\"?" else "\\" + char)

    return _ANSI.sub(one, body).split("\0")[0]


def _braces(text: str) -> list[str] | None:
    """The words of a brace expansion, or None where the braces are plain text."""
    start = -1
    depth = 0
    commas: list[int] = []
    for index, char in enumerate(text):
        if char in "'\"\\$`(":
            return None  # `_check_quoted_braces` decides, when the quotes have been read
        if char == "{":
            depth += 1
            if depth == 1:
                start = index
                commas = []
        elif char == "," and depth == 1:
            commas.append(index)
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                choices = _choices(text, start, commas, index)
                if choices is not None:
                    return _expand(text[:start], choices, text[index + 1 :])
                if "}" in text[index + 1 :] and ("," in text or ".." in text):
                    raise Unreadable("braces that bash may pair differently")
    if depth and ("," in text or ".." in text):
        raise Unreadable("an unclosed brace")
    return None


def _check_quoted_braces(text: str, parts: list[Part]) -> None:
    """Braces beside quotes must be plain text to bash, which looks for them before it reads quotes and expansions."""
    bare = "".join([part.text for part in parts if part.kind is None and not part.quoted])
    if any(part.kind in _RUNNING for part in parts):
        bare = text
    expands = "{" in bare and "}" in bare and ("," in bare or ".." in bare)
    filled = any(part.quoted and (part.kind is not None or "$" in part.text or "`" in part.text) for part in parts)
    if expands or ("{" in bare and filled):
        raise Unreadable("braces together with quotes")


def _choices(text: str, start: int, commas: list[int], end: int) -> list[str] | None:
    if commas:
        edges = [start, *commas, end]
        return [text[left + 1 : right] for left, right in pairwise(edges)]
    if found := _RANGE.fullmatch(text, start + 1, end):
        return _range(found)
    if ".." in text[start:end] or ("{" in text[start + 1 : end] and "," in text[start:end]):
        raise Unreadable("a brace range that is not plain")
    return None


def _range(found: re.Match[str]) -> list[str]:
    first, last, start, end = found.groups()
    if first is None and start.islower() != end.islower():
        raise Unreadable("a brace range over more than letters")
    if first is None:
        return [chr(code) for code in _between(ord(start), ord(end))]
    padded = any(number.lstrip("-").startswith("0") and number.lstrip("-") != "0" for number in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [str(number).zfill(width) for number in _between(int(first), int(last))]


def _between(first: int, last: int) -> range:
    if abs(last - first) > _MOST_WORDS:
        raise Unreadable("a brace range of too many words")
    return range(first, last + 1) if first <= last else range(first, last - 1, -1)


def _expand(before: str, choices: list[str], after: str) -> list[str]:
    words: list[str] = []
    for choice in choices:
        word = before + choice + after
        expanded = _braces(word) if "{" in word else None
        words.extend(expanded or [word])
        if len(words) > _MOST_WORDS or len(words) * len(word) > _MOST_CHARS:
            raise Unreadable("braces that make too many words")
    return [word for word in words if word]
