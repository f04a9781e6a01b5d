"""Which words will a program be given? A template, expanded by what is known of the variables and the directory.

A word is a `str` when its text is certain, a `Glob` when it is a pattern over file names, and `Open` when only the run
decides it. An `Open` word may be anything: also a flag, unless it says that it cannot be.
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

_GLOB, _VARIABLE, _BRACES = Expansion.GLOB, Expansion.VARIABLE, Expansion.BRACES  # looked up once: to name them is dear
_GLOB_CHARS = re.compile(r"[*?\[]")
_ODD_CLASS = re.compile(r"\[(?!!?[\w.,~+-]+\]|[*?\[]\])[^/]*\]")
"""`[^a]`, `[[:alpha:]]` and the like, which other matchers read otherwise: taken for anything at all."""
_LEADS_UP = re.compile(r"[*?\[].*/\.\.(?:/|\Z)|(?:\A|/)\.\.?[*?\[][^/]*/", re.DOTALL)
"""`*/..`, and `.*/x`, of which some shells make `../x`."""
_SPLITS = re.compile(r"[\s*?\[\\]")


class Glob(NamedTuple):
    """`single`: one of the names that the pattern matches."""

    text: str
    single: bool = False


class Dynamic(NamedTuple):
    """`single`: it is one word; `each`: it is any number of them, and what is said here holds for every one.

    `below`: the directories under which it names a path, where that is known. `flagless`: it does not begin with a
    dash. `solid`: it has no blanks and is no pattern. `strays`: it, or a piece of it, may be `..`. `why`: what makes it
    open, for people.
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
        """The directories under which everything lies that it turns out to name, `..` aside."""
        return self.below if self.single or self.each else None

    @property
    def trees(self) -> tuple[str, ...] | None:
        """The same of what lies below that."""
        return None if self.strays else self.places


Word = str | Glob | Dynamic


Substitute = Callable[[ShellScript], Printed]
"""Judges the inner command; answers which paths it prints."""
_IN_PIECES = "and names with blanks fall apart here (quote it)"
_TORN = "and names with blanks fall apart here (use find -exec, or -print0 | xargs -0)"


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
    """Several pieces side by side make one word: text as far as it is known."""
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
    # A number is always there; anything else may turn out to be nothing, and the word begin with what follows it.
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
    """Bash splits what it puts in at blanks, unless it is quoted, and leaves out every NUL."""
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
    """What nothing quotes is split at its blanks and read as a pattern, whatever stood where it was assigned."""
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
    """Where the pieces lie of a name that has blanks: beside what the pattern matches, or where the shell is."""
    wild = _GLOB_CHARS.search(pattern)
    # Of `x /etc/shadow`, which a pattern over directories may match, one piece leads elsewhere.
    if wild is None or "/" in pattern[wild.start() :] or "**" in pattern:
        return None
    stem = stem_of(pattern)
    return tuple(dict.fromkeys((*(resolve(stem, here) for here in scope.directories), *scope.directories)))


def stem_of(pattern: str) -> str:
    """The directory below which everything lies that the pattern matches."""
    wild = _GLOB_CHARS.search(pattern)
    stem = (pattern[: wild.start()] if wild else pattern).rpartition("/")[0]
    return stem or ("/" if pattern[:1] == "/" else ".")


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
    """Whether it may turn out to be more words than one, or none."""
    return not isinstance(word, str) and not word.single
