"""Which words will a program be given? A template, expanded by what is known of the variables and the directory.

A word is a `str` when its text is certain, a `Glob` when it is a pattern over file names, and `Open` when only the run
decides it. An `Open` word may be anything: also a flag, unless it says that it cannot be.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from toolreeve.policy.shell.paths import resolve
from toolreeve.policy.shell.scan import Unreadable
from toolreeve.policy.shell.syntax import Hole, Part, RawWord, Script, Template

if TYPE_CHECKING:
    from toolreeve.policy.shell.scope import Scope

_GLOB, _VARIABLE, _BRACES = Hole.GLOB, Hole.VARIABLE, Hole.BRACES  # looked up once: to name them is dear
_GLOB_CHARS = re.compile(r"[*?\[]")
_ODD_CLASS = re.compile(r"\[(?!!?[\w.,~+-]+\]|[*?\[]\])[^/]*\]")
"""`[^a]`, `[[:alpha:]]` and the like, which other matchers read otherwise: taken for anything at all."""
_SPLITS = re.compile(r"[\s*?\[\\]")


class Glob(NamedTuple):
    text: str


class Open(NamedTuple):
    """`below`: the directories under which it names a path, where that is known. `solid`: it never has blanks."""

    prefix: str = ""
    single: bool = False
    below: tuple[str, ...] | None = None
    flagless: bool = False
    solid: bool = False


Word = str | Glob | Open


Substitute = Callable[[Script], tuple[str, ...] | None]
"""Judges the inner command; answers under which directories the paths lie that it prints."""


def expand(words: tuple[RawWord, ...], scope: "Scope", substitute: Substitute) -> list[Word]:
    found: list[Word] = []
    for word in words:
        if type(word) is str:
            found.append(word)
        else:
            found.extend(_expand(word, scope, substitute))  # type: ignore[arg-type]
    return found


def _expand(template: Template, scope: "Scope", substitute: Substitute) -> list[Word]:
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
    if Open not in kinds:
        if Glob not in kinds:
            return "".join(pieces)  # type: ignore[arg-type]
        text = "".join([piece.text if isinstance(piece, Glob) else _literal(str(piece)) for piece in pieces])
        return Glob(_ODD_CLASS.sub("*", text) if "[" in text else text)
    prefix = ""
    solid = [piece for piece in pieces if piece != ""]
    for piece in solid:
        if not isinstance(piece, str):
            break
        prefix += piece
    single = all(piece.single for piece in solid if isinstance(piece, Open)) and not any(
        isinstance(piece, Glob) for piece in solid
    )
    if len(solid) == 1 and isinstance(solid[0], Open):
        return solid[0]
    first = solid[0]
    flagless = (bool(prefix) and prefix[0] != "-") or (isinstance(first, Open) and first.flagless)
    return Open(prefix=prefix, single=single, flagless=flagless)


def _literal(text: str) -> str:
    return _GLOB_CHARS.sub(lambda found: f"[{found.group()}]", text)


def _piece(part: Part, scope: "Scope", substitute: Substitute) -> Word:
    kind = part.kind
    if kind is _GLOB:
        return Glob(part.text)
    if kind is _VARIABLE:
        return _variable(scope.value(part.text), scope, quoted=part.quoted and part.text != "@")
    match kind:
        case Hole.TILDE:
            return scope.home if not part.text else "/root" if part.text == "root" else f"/home/{part.text}"
        case Hole.PARAMETER:
            if part.text:
                scope.value(part.text)
            return Open(single=part.quoted and part.text != "@")
        case Hole.ARITHMETIC:
            return Open(single=True, solid=True)
        case Hole.SUBSTITUTION if part.script is not None:
            below = substitute(part.script)
            return Open(single=part.quoted, below=below, flagless=below is not None and part.quoted)
        case Hole.PROCESS if part.script is not None and part.text == "<":
            substitute(part.script)
            return "/dev/fd/63"
        case _:
            raise Unreadable("an expansion that is not plain")


def _variable(value: Word, scope: "Scope", *, quoted: bool) -> Word:
    """What nothing quotes is split at its blanks and read as a pattern, whatever stood where it was assigned."""
    if isinstance(value, Open):
        return value._replace(single=quoted or value.solid)
    if quoted:
        return value
    if isinstance(value, Glob):
        return Open(below=_around(value.text, scope))
    if not value or _SPLITS.search(value):
        return Open(flagless=not value.lstrip().startswith("-") and " -" not in value and bool(value))
    return value


def _around(pattern: str, scope: "Scope") -> tuple[str, ...]:
    """Where the pieces lie of a name that has blanks: beside what the pattern matches, or where the shell is."""
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
        case Open(prefix):
            return f"{prefix}…"


def shown_all(words: list[Word]) -> tuple[str, ...]:
    return tuple([word if type(word) is str else shown(word) for word in words])


def may_be_flag(word: Word) -> bool:
    match word:
        case str():
            return word.startswith("-")
        case Glob(text):
            return text[:1] in "*?[-"
        case Open():
            return not (word.flagless and word.single)
