"""Handlers of git commands that print file content.

They print the files that they name, or everything committed if they name none. A revision and a path look alike, so
only words after `--`, or that begin like a path, narrow it down.
"""

import re
from enum import Enum, auto

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, shown, stem_of
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import is_under, resolve
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags, conclude

_IN_REVISION = re.compile(r"(?P<revision>(?:[^:{]|\{[^}]*\})*):(?:[0-3]:)?(?P<path>[^/!^(].*)", re.DOTALL)
"""`rev:path`, `:path` and `:0:path`; but not `:/text`, which looks for a commit, nor `:(magic)path`."""
_LIKE_A_PATH = re.compile(r"\.{0,2}/|\.\.?\Z")
_RANGE = re.compile(r"[^/]\.\.|\A\.\.[^/]")
_OBJECT = re.compile(r"(?:\A|-g)[0-9a-f]{4,64}(?:\Z|\^)|\^\{", re.IGNORECASE)
"""An object id may be that of a file, whose content is printed whatever the flags say about commits."""
_EXCLUDED = re.compile(r":/?[!^]|:\([^)]*exclude")
_MOST_COLONS = 8
_WILD = re.compile(r"[*?\[]")


class _Named(Enum):
    """What an operand is: a path limits all that is printed, a file in a revision only itself."""

    REVISION = auto()
    BLOB = auto()
    PATH = auto()


def contents(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`contents` names the flags that make it print content, if it does not always; `listing` those that prevent it."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    paths = _after_dashes(words, arguments)
    revisions = arguments.operands[: len(arguments.operands) - len(paths)]
    if _prints_content(spec, arguments):
        _read_tree(revisions, paths, _ranges(arguments), site)
    else:
        for word in (*revisions, *paths):
            _list(word, site)
    return conclude(spec, arguments, site)


def grep(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """The pattern comes first, unless a flag gives it."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    paths = _after_dashes(words, arguments)
    revisions = arguments.operands[: len(arguments.operands) - len(paths)]
    _read_tree(revisions if arguments.has("-e", "-f") else revisions[1:], paths, [], site)
    return conclude(spec, arguments, site)


def blame(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Prints one file, named before or after a revision."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    for word in arguments.operands:
        _named(word, site)
    return conclude(spec, arguments, site)


def reset(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Only some ways to move a branch change the files as well."""
    arguments = read(spec, words)
    if arguments.has("--hard", "--merge", "--keep"):
        apply_role("tree", ".", site)
    return conclude(spec, arguments, site)


def _after_dashes(words: list[Word], arguments: Arguments) -> list[Word]:
    count = len(words) - words.index("--") - 1 if "--" in words else 0
    return arguments.operands[-count:] if count else []


def _prints_content(spec: Program, arguments: Arguments) -> bool:
    wanted = spec.data.get("contents", "").split()
    if arguments.has(*wanted):
        return True
    always = "listing" in spec.data or not wanted
    return always and not arguments.has(*spec.data.get("listing", "").split())


def _ranges(arguments: Arguments) -> list[str]:
    """The file in `-L 1,5:file` and `-L :function:file`; since it is not certain which colon precedes it, all count."""
    given = [value for flag, value in arguments.flags if flag == "-L"]
    values = [value for value in given if isinstance(value, str)]
    if len(values) < len(given):
        raise NotKnown("prints lines of a file decided only when it runs")
    if any(value.count(":") > _MOST_COLONS for value in values):
        raise NotKnown("a range of lines that cannot be read")
    found = [value[at + 1 :] for value in values for at, char in enumerate(value) if char == ":"]
    return [file for file in found if file]


def _read_tree(revisions: list[Word], paths: list[Word], ranges: list[str], site: CommandSite) -> None:
    found = {_named(word, site) for word in revisions}
    if any(isinstance(word, str) and _OBJECT.search(word) for word in revisions):
        _read_everything(site)
    bounds = [_path(word, site) for word in (*paths, *ranges)]
    limited_by_operand = _Named.PATH in found or found == {_Named.BLOB}
    if not (all(bounds) if bounds else limited_by_operand):
        _read_everything(site)


def _named(word: Word, site: CommandSite) -> _Named:
    """Reads what a revision names, or a path that may pass for one."""
    if isinstance(word, Dynamic):
        _check_number(word)
        return _Named.REVISION
    if isinstance(word, Glob):
        _path(word, site)
        return _Named.PATH
    if inside := _IN_REVISION.fullmatch(word):
        _blob(inside["path"], site)
        return _Named.BLOB
    like_a_path = _LIKE_A_PATH.match(word) is not None
    if like_a_path or not _RANGE.search(word):
        _path(word, site)
    return _Named.PATH if like_a_path else _Named.REVISION


def _check_number(word: Dynamic) -> None:
    """`HEAD~$n` is certainly a revision only if `$n` is a number."""
    if not word.solid:
        raise NotKnown(f"prints `{shown(word)}`, which may be any file of the repository")


def _path(word: Word, site: CommandSite) -> bool:
    """A pathspec: git expands patterns in it, whose `*` crosses directories; one with magic may be anything."""
    if isinstance(word, str) and (word.startswith(":") or _WILD.search(word)):
        if word.startswith(":"):
            _read_everything(site)
            word = "" if _EXCLUDED.match(word) else word.rpartition(")")[2].lstrip(":/")
        if word:
            site.touch(EffectKind.READ, Glob(word))
            site.touch(EffectKind.READ, stem_of(word), Reach.BELOW)
        return True
    if isinstance(word, Glob):
        site.touch(EffectKind.READ, word)
    if isinstance(word, Dynamic) and word.trees is None:
        _read_everything(site)
        return False
    site.touch(EffectKind.READ, word, Reach.BELOW)
    return True


def _blob(path: str, site: CommandSite) -> None:
    """A path in a revision is relative to the repository's root, unless it begins with a dot."""
    site.touch(EffectKind.READ, path, Reach.BELOW)
    site.findings.effects.append(Effect(EffectKind.READ, resolve(path, site.scope.root), Reach.BELOW))


def _list(word: Word, site: CommandSite) -> None:
    """For a commit only names are printed; but a file is printed all the same."""
    if isinstance(word, Dynamic):
        _check_number(word)
    if not isinstance(word, str):
        return
    if inside := _IN_REVISION.fullmatch(word):
        _blob(inside["path"], site)
    elif _OBJECT.search(word):
        _read_everything(site)
    elif not word.startswith(":") and not _RANGE.search(word):
        site.touch(EffectKind.READ, word, Reach.NAMES)


def _read_everything(site: CommandSite) -> None:
    """The repository may begin above the current directory: at the workspace's root, as far as is known."""
    scope = site.scope
    tops = [scope.root if is_under(place, scope.root) else place for place in scope.directories]
    site.findings.effects.extend(Effect(EffectKind.READ, top, Reach.BELOW) for top in dict.fromkeys(tops))
