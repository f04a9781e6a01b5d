"""Handler of `find`: list, run a command, delete, write a list."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, may_be_flag, shown, text_of
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed, Separator
from toolreeve.policy.shell.programs.arguments import NotKnown
from toolreeve.policy.shell.programs.secret_search import globs_of, targeted_secrets, with_secrets
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import listed_paths, roots_of

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
_CHOOSING = frozenset("-name -iname -path -ipath -wholename -iwholename -regex -iregex".split())
_RUNS = frozenset(("-exec", "-execdir"))
_LISTS = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
_OTHER_OUTPUT = _RUNS.union(_LISTS, "-ls -help --help -version --version -D".split())
_OPERATORS = ("(", ")", "!", ",")
_EXPRESSION = _TESTS.union(
    _VALUED,
    _RUNS,
    _LISTS,
    "-delete -ok -okdir -files0-from -newer -anewer -cnewer -samefile".split(),
    (f"-newer{this}{that}" for this in "abcm" for that in "abcmt"),
)
"""Every word that can continue an expression, in lower case."""
_NOWHERE = "/*"
"""Stands for the directory in which `-execdir` runs its command: no relative name resolves in it."""
_PATH = re.compile(r"%([pfP])(\\n|\\0|\n)")
_ENDS = {
    "-print": Separator.LINES,
    "-print0": Separator.NULS,
    "\\n": Separator.LINES,
    "\n": Separator.LINES,
    "\\0": Separator.NULS,
}
_ENDINGS = frozenset((";", "+"))
_OF_FILES = (EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE)
_BEFORE = re.compile(r"-[HLPEXdsx]+|-O\d|-D")


def handle(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    start = _options(words)
    roots, at = _roots(words, start)
    for root in roots or ["."]:
        site.touch(EffectKind.READ, root, Reach.NAMES)
    below = roots_of(roots or ["."], site)
    secrets = [] if _CHOOSING.isdisjoint(words) else targeted_secrets(_patterns(words))
    primaries: list[int] = []
    below = below if below is None else with_secrets(below, secrets)
    while at < len(words):
        primaries.append(at)
        at = _primary(words, at, below, site)
    if not _OTHER_OUTPUT.isdisjoint(words):
        return None
    found = _printed(words, primaries, roots, site)
    return found._replace(below=with_secrets(found.below, secrets)) if found else None


def _patterns(words: list[Word]) -> Iterator[str]:
    """The patterns that select files, not those that exclude them."""
    for at, word in enumerate(words[:-1]):
        if word in _CHOOSING and words[at - 1] not in ("!", "-not") and words[at + 2 : at + 3] != ["-prune"]:
            text = text_of(words[at + 1])
            yield from globs_of(text, anchored=True) if "regex" in shown(word) else [text]


def _printed(words: list[Word], primaries: list[int], roots: list[Word], site: CommandSite) -> Printed:
    """The paths that it finds, if it prints those and nothing else, all with the same separator."""
    forms = [_PATH.fullmatch(shown(_following(words, at))) for at in primaries if words[at] == "-printf"]
    ends = {_ENDS[shown(words[at])] for at in primaries if words[at] in ("-print", "-print0")}
    ends.update(_ENDS[form[2]] for form in forms if form)
    if not all(forms) or len(ends) > 1:
        return None
    whole = all(form[1] == "p" for form in forms if form)
    # The last part of a starting point may be `..`, which means another directory elsewhere.
    if not whole and any(not isinstance(root, str) or root.rstrip("/").endswith("..") for root in roots):
        return None
    found = listed_paths(roots, site, nuls=Separator.NULS in ends)
    return found._replace(flagless=whole) if found else None


def _options(words: list[Word]) -> int:
    at = 0
    while at < len(words) and isinstance(words[at], str) and _BEFORE.fullmatch(str(words[at])):
        if words[at] == "-D" and not isinstance(_following(words, at), str):
            raise NotKnown("the value of -D may be several words")
        at += 2 if words[at] == "-D" else 1
    return at


def _roots(words: list[Word], at: int) -> tuple[list[Word], int]:
    roots: list[Word] = []
    while at < len(words):
        word = words[at]
        if isinstance(word, str) and (word[:1] in ("-", ",") or word in _OPERATORS):
            break
        if not isinstance(word, str) and may_be_flag(word):
            raise NotKnown(f"`{shown(word)}` may expand to part of the expression")
        roots.append(word)
        at += 1
    return roots, at


def _primary(words: list[Word], at: int, below: tuple[str, ...] | None, site: CommandSite) -> int:
    word = words[at]
    if not isinstance(word, str):
        raise NotKnown(f"`{shown(word)}` in the expression of find")
    if word in _TESTS:
        return at + 1
    if word in _VALUED:
        _check_value(words, at)
        return at + 2
    if _COMPARED.fullmatch(word):
        _check_value(words, at)
        site.touch(EffectKind.READ, _following(words, at), Reach.NAMES)
        return at + 2
    if word in _RUNS:
        return _run(words, at, below, site)
    if word == "-delete":
        narrowed = any(isinstance(other, str) and other in _VALUED for other in words)
        everything = Reach.EXACT if narrowed else Reach.BELOW
        site.touch(EffectKind.DELETE, Dynamic(each=True, below=below), everything)
        return at + 1
    if word in _LISTS:
        site.touch(EffectKind.WRITE, _following(words, at))
        return at + 1 + _LISTS[word]
    if word == "-files0-from":
        raise NotKnown("the flag -files0-from")
    raise NotKnown(f"`{word}` in the expression of find")


def _check_value(words: list[Word], at: int) -> None:
    """An unquoted pattern expands to all matching names: an error of find, unless one of them is an expression."""
    value = _following(words, at)
    if isinstance(value, Dynamic) and not value.single:
        raise NotKnown(f"the value of {shown(words[at])} may be several words")
    if isinstance(value, Glob) and _may_be_any(value, _EXPRESSION):
        raise NotKnown(f"`{shown(value)}` may expand to part of the expression (quote it)")


def _may_be_any(pattern: Glob, words: frozenset[str]) -> bool:
    """Whether the pattern may match one of the words; a bracket counts as any character."""
    wide = re.sub(r"\[[^]]+\]", "?", pattern.text.lower())
    return any(fnmatchcase(word, wide) for word in words)


def _following(words: list[Word], at: int) -> Word:
    if at + 1 >= len(words):
        raise NotKnown(f"{shown(words[at])} without its value")
    return words[at + 1]


def _run(words: list[Word], at: int, below: tuple[str, ...] | None, site: CommandSite) -> int:
    end = next((index for index in range(at + 1, len(words)) if _ends(words, index)), None)
    if end is None:
        raise NotKnown(f"{shown(words[at])} without its end")
    for index in range(at + 1, end):
        _check_ends_nothing(words, index)
    found = Dynamic(single=words[end] == ";", each=words[end] == "+", below=below, flagless=True)
    command = [_filled(word, found) for word in words[at + 1 : end]]
    if not command:
        raise NotKnown(f"{shown(words[at])} without a command")
    if words[at] == "-execdir":
        _run_elsewhere(command, below or (), site)
    else:
        site.run(command, site.scope.copy(), None)
    return end + 1


def _check_ends_nothing(words: list[Word], index: int) -> None:
    """A word that expands to `;` ends the command, and what follows it would be an expression."""
    word = words[index]
    following = words[index + 1]
    if isinstance(word, Glob):
        if _may_be_any(word, _ENDINGS):
            raise NotKnown(f"`{shown(word)}` may end the command of find")
    elif isinstance(word, Dynamic) and (
        not word.single or not isinstance(following, str) or following[:1] == "-" or following in _OPERATORS
    ):
        raise NotKnown(f"`{shown(word)}` may end the command of find")


def _run_elsewhere(command: list[Word], below: tuple[str, ...], site: CommandSite) -> None:
    """In the directory of each file found: only that file itself is known."""
    scope = site.scope.copy()
    scope.directories = (_NOWHERE,)
    before = len(site.findings.effects)
    site.run(command, scope, None)
    certain = {(root, Reach.BELOW) for root in below} | {(f"{root.rstrip('/')}/**", Reach.MATCHING) for root in below}
    for kind, target, reach in site.findings.effects[before:]:
        if kind in _OF_FILES and reach is not Reach.NAMES and (target, reach) not in certain:
            raise NotKnown("-execdir with a command that touches more than the files found")
    if any(isinstance(word, str) and ".." in word for word in command):
        raise NotKnown("-execdir with a command that uses `..`")


def _ends(words: list[Word], index: int) -> bool:
    return words[index] == ";" or (words[index] == "+" and words[index - 1] == "{}")


def _filled(word: Word, found: Dynamic) -> Word:
    if word == "{}":
        return found
    if isinstance(word, Glob):
        # A name that it matches may contain `{}` itself.
        return Dynamic(why="a pattern, in which find may replace a part")
    if isinstance(word, str) and "{}" in word:
        prefix = word.partition("{}")[0]
        return Dynamic(prefix=prefix, single=True, flagless=bool(prefix) and prefix[0] != "-")
    return word
