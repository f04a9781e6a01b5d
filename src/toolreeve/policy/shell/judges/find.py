"""What does `find` do with what it finds? Its expression says: list, run a command on each, delete, write a list."""

import re

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.arguments import NotKnown
from toolreeve.policy.shell.judging import printed
from toolreeve.policy.shell.judging import roots as named
from toolreeve.policy.shell.printing import Apart, Printed
from toolreeve.policy.shell.site import Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Glob, Open, Word, may_be_flag, shown

_TESTS = frozenset(
    "-print -print0 -ls -prune -quit -depth -d -mount -xdev -x -X -E -s -f -empty -readable -writable -executable "
    "-nouser -nogroup -true -false -not -a -and -o -or -daystart -noleaf -follow -warn -nowarn -ignore_readdir_race "
    "-noignore_readdir_race -help --help -version --version ( ) ! ,".split()
)
_VALUED = frozenset(
    "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -type -xtype -size -mtime -atime "
    "-ctime -mmin -amin -cmin -Bmin -Btime -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -fstype "
    "-printf -used -regextype -context -flags".split()
)
_COMPARED = re.compile(r"-(?:a|c|)newer|-newer[aBcm][aBcmt]|-samefile")
_RUNS = frozenset(("-exec", "-execdir"))
_LISTS = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_OTHER_OUTPUT = _RUNS.union(_LISTS, ("-ls",))
_PATH = re.compile(r"%([pfP])(\\n|\\0|\n)")
_ENDS = {"-print": Apart.LINES, "-print0": Apart.NULS, "\\n": Apart.LINES, "\n": Apart.LINES, "\\0": Apart.NULS}
_BEFORE = re.compile(r"-[HLPEXdsx]+|-O\d|-D")


def judge(spec: Program, words: list[Word], site: Site) -> Printed:
    start = _options(words)
    roots, at = _roots(words, start)
    for root in roots or ["."]:
        site.touch(EffectKind.READ, root, Reach.NAMES)
    below = named(roots or ["."], site)
    while at < len(words):
        at = _primary(words, at, below, site)
    return _printed(words, roots, site)


def _printed(words: list[Word], roots: list[Word], site: Site) -> Printed:
    """The paths that it finds, where it prints those and nothing else, and ends all of them alike."""
    if any(word in _OTHER_OUTPUT for word in words):
        return None
    formats = [_following(words, at) for at, word in enumerate(words) if word == "-printf"]
    forms = [_PATH.fullmatch(shown(form)) for form in formats]
    ends = {_ENDS[word] for word in words if word in ("-print", "-print0")}
    ends.update(_ENDS[form[2]] for form in forms if form)
    if not all(forms) or len(ends) > 1:
        return None
    found = printed(roots, site, nuls=Apart.NULS in ends)
    whole = all(form[1] == "p" for form in forms if form)
    return found._replace(flagless=whole) if found else None


def _options(words: list[Word]) -> int:
    at = 0
    while at < len(words) and isinstance(words[at], str) and _BEFORE.fullmatch(str(words[at])):
        at += 2 if words[at] == "-D" else 1
    return at


def _roots(words: list[Word], at: int) -> tuple[list[Word], int]:
    roots: list[Word] = []
    while at < len(words):
        word = words[at]
        if isinstance(word, str) and (word[:1] in ("-", ",") or word in ("(", ")", "!")):
            break
        if not isinstance(word, str) and may_be_flag(word):
            raise NotKnown(f"`{shown(word)}` may turn out to be part of the expression")
        roots.append(word)
        at += 1
    return roots, at


def _primary(words: list[Word], at: int, below: tuple[str, ...] | None, site: Site) -> int:
    word = words[at]
    if not isinstance(word, str):
        raise NotKnown(f"`{shown(word)}` in the expression of find")
    if word in _TESTS:
        return at + 1
    if word in _VALUED:
        return _valued(words, at)
    if _COMPARED.fullmatch(word):
        site.touch(EffectKind.READ, _following(words, at), Reach.NAMES)
        return at + 2
    if word in _RUNS:
        return _run(words, at, below, site)
    if word == "-delete":
        narrowed = any(isinstance(other, str) and other in _VALUED for other in words)
        everything = Reach.EXACT if narrowed else Reach.BELOW
        site.touch(EffectKind.DELETE, Open(each=True, below=below), everything)
        return at + 1
    if word in _LISTS:
        site.touch(EffectKind.WRITE, _following(words, at))
        return at + 1 + _LISTS[word]
    if word == "-files0-from":
        raise NotKnown("the flag -files0-from")
    raise NotKnown(f"`{word}` in the expression of find")


def _valued(words: list[Word], at: int) -> int:
    value = _following(words, at)
    if isinstance(value, Open) and not value.single:
        raise NotKnown(f"the value of {shown(words[at])} may be several words")
    if isinstance(value, Glob) and "/" not in value.text and words[at] not in ("-name", "-iname", "-path"):
        raise NotKnown(f"an unquoted pattern after {shown(words[at])}")
    # An unquoted `-name *.c` is replaced by the names it matches: more than one is an error of find, and none of them
    # may begin like an expression.
    if isinstance(value, Glob) and len(words) > at + 2 and value.text.startswith("-"):
        raise NotKnown(f"`{shown(value)}` may turn out to be part of the expression")
    return at + 2


def _following(words: list[Word], at: int) -> Word:
    if at + 1 >= len(words):
        raise NotKnown(f"{shown(words[at])} without its value")
    return words[at + 1]


def _run(words: list[Word], at: int, below: tuple[str, ...] | None, site: Site) -> int:
    end = next((index for index in range(at + 1, len(words)) if _ends(words, index)), None)
    if end is None:
        raise NotKnown(f"{shown(words[at])} without its end")
    found = Open(single=words[end] == ";", each=words[end] == "+", below=below, flagless=True)
    command = [_filled(word, found) for word in words[at + 1 : end]]
    if not command:
        raise NotKnown(f"{shown(words[at])} without a command")
    site.run(command, site.scope.copy(), None)
    return end + 1


def _ends(words: list[Word], index: int) -> bool:
    return words[index] == ";" or (words[index] == "+" and words[index - 1] == "{}")


def _filled(word: Word, found: Open) -> Word:
    if word == "{}":
        return found
    if isinstance(word, str) and "{}" in word:
        prefix = word.partition("{}")[0]
        return Open(prefix=prefix, single=True, flagless=bool(prefix) and prefix[0] != "-")
    return word
