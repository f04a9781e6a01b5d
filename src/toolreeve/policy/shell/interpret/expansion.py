"""Expansion of words, as far as variables and directories are known.

A word is a `str` if its text is certain, a `Glob` if it is a pattern over file names, and `Dynamic` if only the run
decides it. A `Dynamic` word may be anything, even a flag, unless its fields exclude that.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from toolreeve.policy.shell.interpret.paths import resolve
from toolreeve.policy.shell.interpret.printed_paths import Printed, Separator
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.parse.syntax import Expansion, Part, RawWord, ShellScript, Template

if TYPE_CHECKING:
    from toolreeve.policy.shell.interpret.scope import ShellScope

# Looked up once: access to an enum member is slow.
_GLOB = Expansion.GLOB
_VARIABLE = Expansion.VARIABLE
_BRACES = Expansion.BRACES
_GLOB_CHARS = re.compile(r"[*?\[]")
_ODD_CLASS = re.compile(r"\[(?!!?[\w.,~+-]+\]|[*?\[]\])[^/]*\]")
"""`[^a]`, `[[:alpha:]]` and the like, which matchers read differently: treated as `*`."""
_LEADS_UP = re.compile(r"[*?\[].*/\.\.(?:/|\Z)|(?:\A|/)\.\.?[*?\[][^/]*/", re.DOTALL)
"""`*/..`, and `.*/x`, of which some shells make `../x`."""
_SPLITS = re.compile(r"[\s*?\[\\]")


class Glob(NamedTuple):
    """`single`: one of the names that the pattern matches."""

    text: str
    single: bool = False


class Dynamic(NamedTuple):
    """`single`: it is one word; `each`: it is any number of words, and the other fields hold for every one.

    `below`: the directories under which it names a path, if known. `flagless`: it does not begin with a dash. `solid`:
    it has no blanks and is no pattern. `strays`: it, or a piece of it, may be `..`. `why`: what makes it dynamic, for
    people.
    """

    prefix: str = ""
    single: bool = False
    below: tuple[str, ...] | None = None
    flagless: bool = False
    solid: bool = False
    each: bool = False
    strays: bool = False
    why: str = ""

    @property
    def places(self) -> tuple[str, ...] | None:
        """The directories that contain everything it may name, `..` aside."""
        return self.below if self.single or self.each else None

    @property
    def trees(self) -> tuple[str, ...] | None:
        """The directories that contain everything below what it may name."""
        return None if self.strays else self.places


Word = str | Glob | Dynamic


Substitute = Callable[[ShellScript], Printed]
"""Interprets the inner command; answers which paths it prints."""
_IN_PIECES = "and names with blanks are split here (quote it)"
_TORN = "and names with blanks are split here (use find -exec, or -print0 | xargs -0)"


def expand(words: tuple[RawWord, ...], scope: "ShellScope", substitute: Substitute) -> list[Word]:
    found: list[Word] = []
    for word in words:
        if type(word) is str:
            found.append(word)
        else:
            found.extend(_expand(word, scope, substitute))  # type: ignore[arg-type]
    return found


def _expand(template: Template, scope: "ShellScope", substitute: Substitute) -> list[Word]:
    first = template.parts[0]
    if first.kind is _BRACES:
        return expand(first.words, scope, substitute)
    pieces = [part.text if part.kind is None else _piece(part, scope, substitute) for part in template.parts]
    if len(pieces) == 1:
        return [pieces[0]]
    return [_join(pieces)]


def _join(pieces: list[Word]) -> Word:
    """Joins adjacent pieces into one word: text as far as it is known."""
    kinds = set(map(type, pieces))
    if Dynamic not in kinds:
        if Glob not in kinds:
            return "".join(pieces)  # type: ignore[arg-type]
        text = "".join([piece.text if isinstance(piece, Glob) else _literal(str(piece)) for piece in pieces])
        if _LEADS_UP.search(text):
            return Dynamic(why="a pattern that leads up again")
        single = all(piece.single for piece in pieces if isinstance(piece, Glob))
        return Glob(_ODD_CLASS.sub("*", text) if "[" in text else text, single)
    prefix = ""
    solid = [piece for piece in pieces if piece != ""]
    for piece in solid:
        if not isinstance(piece, str):
            break
        prefix += piece
    single = all(piece.single for piece in solid if isinstance(piece, Dynamic)) and not any(
        isinstance(piece, Glob) for piece in solid
    )
    if len(solid) == 1 and isinstance(solid[0], Dynamic):
        return solid[0]
    # A number is never empty; anything else may be, and then the word begins with what follows.
    number = isinstance(solid[0], Dynamic) and solid[0].solid and solid[0].single and solid[0].flagless
    return Dynamic(prefix=prefix, single=single, flagless=number or (prefix != "" and prefix[0] != "-"))


def _literal(text: str) -> str:
    return _GLOB_CHARS.sub(lambda found: f"[{found.group()}]", text)


def _piece(part: Part, scope: "ShellScope", substitute: Substitute) -> Word:
    kind = part.kind
    if kind is _GLOB:
        return Glob(part.text)
    if kind is _VARIABLE:
        value = scope.value(part.text)
        return value if part.quoted and part.text == "@" else _variable(value, scope, quoted=part.quoted)
    match kind:
        case Expansion.TILDE:
            if part.text not in ("", "root"):
                raise Unreadable("another user's home, which may be anywhere")
            return "/root" if part.text else scope.home
        case Expansion.PARAMETER:
            if part.text:
                scope.value(part.text)
            return Dynamic(single=part.quoted and part.text != "@")
        case Expansion.ARITHMETIC:
            return Dynamic(single=True, solid=True)
        case Expansion.SUBSTITUTION if part.script is not None:
            return _substituted(substitute(part.script), quoted=part.quoted)
        case Expansion.PROCESS if part.script is not None and part.text == "<":
            substitute(part.script)
            return "/dev/fd/63"
        case _:
            raise Unreadable("an expansion that is not plain")


def _substituted(printed: Printed, *, quoted: bool) -> Dynamic:
    """Bash splits substituted text at blanks, unless it is quoted, and drops every NUL."""
    if printed is None or printed.separator is Separator.NULS:
        return Dynamic(single=quoted)
    words = printed.separator is Separator.WORDS
    return Dynamic(
        single=quoted,
        each=words and not quoted,
        solid=words and not quoted,
        below=printed.below,
        flagless=printed.flagless,
        strays=not words,
        why=_TORN,
    )


def _variable(value: Word, scope: "ShellScope", *, quoted: bool) -> Word:
    """An unquoted value is split at blanks and read as a pattern, however it was assigned."""
    if isinstance(value, Dynamic):
        if quoted:
            return value._replace(single=True, each=False, solid=value.solid and not value.each)
        return value if value.solid else value._replace(single=False, each=False)
    if quoted:
        return value._replace(single=True) if isinstance(value, Glob) else value
    if isinstance(value, Glob):
        return Dynamic(each=True, below=_around(value.text, scope), strays=True, why=_IN_PIECES)
    if not value or _SPLITS.search(value):
        return Dynamic(flagless=not value.lstrip().startswith("-") and " -" not in value and bool(value))
    return value


def _around(pattern: str, scope: "ShellScope") -> tuple[str, ...] | None:
    """Where the pieces of a name with blanks lie: beside what the pattern matches, or in the current directory."""
    wild = _GLOB_CHARS.search(pattern)
    # A pattern over directories may match `x /etc/shadow`, of which one piece leads elsewhere.
    if wild is None or "/" in pattern[wild.start() :] or "**" in pattern:
        return None
    stem = stem_of(pattern)
    return tuple(dict.fromkeys((*(resolve(stem, here) for here in scope.directories), *scope.directories)))


def stem_of(pattern: str) -> str:
    """The directory that contains everything that the pattern matches."""
    wild = _GLOB_CHARS.search(pattern)
    stem = (pattern[: wild.start()] if wild else pattern).rpartition("/")[0]
    return stem or ("/" if pattern[:1] == "/" else ".")


def text_of(word: Word) -> str:
    """The text of a fixed word or a pattern; empty if it is dynamic."""
    if isinstance(word, str):
        return word
    return word.text if isinstance(word, Glob) else ""


def shown(word: Word) -> str:
    match word:
        case str():
            return word
        case Glob(text):
            return text
        case Dynamic(prefix):
            return f"{prefix}…"


def shown_all(words: list[Word]) -> tuple[str, ...]:
    return tuple([word if type(word) is str else shown(word) for word in words])


def may_be_flag(word: Word) -> bool:
    match word:
        case str():
            return word.startswith("-")
        case Glob(text):
            return text[:1] in "*?[-"
        case Dynamic():
            return not (word.flagless and (word.single or word.each))


def several(word: Word) -> bool:
    """Whether it may expand to several words, or to none."""
    return not isinstance(word, str) and not word.single
