"""Handlers of programs that copy: which paths are overwritten.

A target that is a directory is not overwritten itself: what lies in it is.
"""

from typing import NamedTuple

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, text_of
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import QUIET
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_arguments, apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import conclude, roots_of

_INTO = ("-t", "--target-directory")
_AS = ("-T", "--no-target-directory")
_WHOLE_TREES = ("-r", "-R", "-a", "--recursive", "--archive")
_KEEPS_OLD = ("-b", "--backup", "-S", "--suffix")
_DIRECTORIES = frozenset((".", ".."))
_WILD = "*?["


class _Landing(NamedTuple):
    """`certain`: the target is certainly a directory. `trees`: directories may be copied."""

    certain: bool
    trees: bool
    keeps_old: bool


def place(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`cp`, `mv`, `ln`, `install`: the last operand, or the value of `-t`, is a file or a directory to fill."""
    arguments = read(spec, words)
    apply_arguments(spec, arguments, site)
    sources, targets = _ends(arguments)
    if arguments.has("-d", "--directory") and spec.name == "install":
        sources = []
    trees = spec.name in ("mv", "git mv") or arguments.has(*_WHOLE_TREES, "--parents")
    for target in targets:
        last = target.rstrip("/").rpartition("/")[2] if isinstance(target, str) else ""
        certain = not arguments.has(*_AS) and (arguments.has(*_INTO) or last in _DIRECTORIES)
        _land(sources, target, _Landing(certain, trees, arguments.has(*_KEEPS_OLD)), site)
    return conclude(spec, arguments, site)


def _ends(arguments: Arguments) -> tuple[list[Word], list[Word]]:
    """The sources and the targets; a lone operand is copied to the current directory."""
    named = [value for flag, value in arguments.flags if flag in _INTO and value is not None]
    if len(named) > 1:
        raise NotKnown("several target directories")
    if named:
        return arguments.operands, named
    if len(arguments.operands) == 1 and isinstance(arguments.operands[0], str):
        return arguments.operands, ["."]
    return arguments.operands[:-1] or arguments.operands, arguments.operands[-1:]


def _land(sources: list[Word], target: Word, landing: _Landing, site: CommandSite) -> None:
    if isinstance(target, str) and target in QUIET:
        return
    if not isinstance(target, str) or any(char in target for char in _WILD):
        site.touch(EffectKind.WRITE, target, Reach.BELOW)
        return
    if landing.trees and not landing.certain:
        site.touch(EffectKind.WRITE, target, Reach.BELOW)
    if landing.keeps_old:
        site.touch(EffectKind.WRITE, Glob(f"{target.rstrip('/')}*"))
    for source in sources:
        _land_one(source, target, landing, site)


def _land_one(source: Word, target: str, landing: _Landing, site: CommandSite) -> None:
    """In the target directory it keeps the last part of its name; if that is not known, it may have any name."""
    last = text_of(source).rstrip("/").rpartition("/")[2]
    if last in ("", *_DIRECTORIES) or "**" in last:
        site.touch(EffectKind.WRITE, target, Reach.BELOW)
        return
    inside = f"{target.rstrip('/') or ''}/{last}"
    if landing.trees and isinstance(source, str):
        site.touch(EffectKind.WRITE, inside, Reach.BELOW)
    elif landing.trees:
        site.touch(EffectKind.WRITE, target, Reach.BELOW)
    else:
        wild = isinstance(source, Glob) or any(char in last for char in _WILD)
        site.touch(EffectKind.WRITE, Glob(inside) if wild else inside)
    if landing.keeps_old:
        site.touch(EffectKind.WRITE, Glob(f"{inside}*"))


def split(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Writes files with a common prefix."""
    arguments = read(spec, words)
    files = arguments.operands[:1]
    prefixes = arguments.operands[1:]
    if len(prefixes) > 1 or any(isinstance(prefix, (Glob, Dynamic)) for prefix in prefixes):
        raise NotKnown("output files whose names are decided only when it runs")
    for file in files:
        apply_role("read", file, site)
    for prefix in prefixes or ["x"]:
        site.touch(EffectKind.WRITE, Glob(f"{prefix}*"))
    return conclude(spec, arguments, site)


def mirror(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`rsync`: everything below the target may be overwritten, and extra files may be deleted."""
    arguments = read(spec, words)
    apply_arguments(spec, arguments, site)
    if any(flag.startswith("--delete") for flag, _ in arguments.flags):
        _delete_below(arguments.operands[-1:], site)
    if arguments.has("--remove-source-files"):
        _delete_below(arguments.operands[:-1], site)
    return conclude(spec, arguments, site)


def _delete_below(words: list[Word], site: CommandSite) -> None:
    """Some of what lies there, not the directory itself."""
    site.touch(EffectKind.DELETE, Dynamic(each=True, below=roots_of(words, site)))


def unpack(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`unzip`: writes below the target, unless it only lists or prints. It expands patterns itself."""
    arguments = read(spec, words)
    if any(isinstance(word, str) and not set(_WILD).isdisjoint(word) for word in arguments.operands[:1]):
        raise NotKnown(f"a pattern that `{spec.name}` expands itself")
    apply_arguments(spec, arguments, site)
    if arguments.has("-p", "-c"):
        for member in arguments.operands[1:]:
            apply_role("read", member, site)
    if not arguments.has(*spec.calm, "-d"):
        apply_role("tree", ".", site)
    return conclude(spec, arguments, site)


def clean(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`git clean`: deletes untracked files, below the named paths if there are any."""
    arguments = read(spec, words)
    _delete_below(arguments.operands or ["."], site)
    return conclude(spec, arguments, site)
