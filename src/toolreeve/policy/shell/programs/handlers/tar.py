"""Handler of `tar`: list, create or extract an archive.

Its first word may be a bundle of letters without a dash.
"""

import re

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Dynamic, Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import resolve
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import housekeeping

_BUNDLE = re.compile(r"[A-Za-z]+")
_EXTRACTS = ("-x", "--extract", "--get")
_TASKS = (
    ("-t", "--list"),
    _EXTRACTS,
    ("-c", "--create"),
    ("-r", "--append"),
    ("-u", "--update"),
    ("-d", "--diff", "--compare"),
)


def handle(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, _dashed(words))
    _check_task(arguments)
    housekeeping(spec, site)
    archives = [value for flag, value in arguments.flags if flag in ("-f", "--file") and value is not None]
    for archive in archives:
        if not isinstance(archive, str) or ":" in archive:
            raise NotKnown("an archive that may be on another machine")
    for flag, value in arguments.flags:
        if value is not None and flag not in ("-f", "--file", "-C", "--directory"):
            apply_role(spec.flags[flag], value, site)
    if arguments.has("-t", "--list"):
        for archive in archives:
            apply_role("read", archive, site)
    elif arguments.has(*_EXTRACTS):
        to_output = arguments.has("-O", "--to-stdout")
        _extract(arguments.flags, archives, site, to_output=to_output)
        if to_output:
            _read_members(arguments.operands, site)
    elif arguments.has("-c", "--create", "-r", "--append", "-u", "--update"):
        for archive in archives:
            apply_role("output", archive, site)
        _pack(arguments, site)
    else:
        raise NotKnown("tar without a task")
    if arguments.has("--remove-files"):
        for operand in arguments.operands:
            apply_role("deltree", operand, site)
    return None


def _dashed(words: list[Word]) -> list[Word]:
    """`tar xzf a.tgz` means `tar -xzf a.tgz`, if only the last letter takes a value."""
    first = words[0] if words else ""
    if not isinstance(first, str):
        raise NotKnown(f"`{shown(first)}` may expand to a bundle of letters")
    if not _BUNDLE.fullmatch(first):
        return words
    if any(letter in "fCbTXIFgKNVLHs" for letter in first[:-1]):
        raise NotKnown(f"the bundle `{first}`")
    return ["-" + first, *words[1:]]


def _check_task(arguments: Arguments) -> None:
    """There must be one task, which the archive's content cannot widen."""
    if sum(arguments.has(*names) for names in _TASKS) > 1:
        raise NotKnown("tar with several tasks")
    if arguments.has("-d", "--diff", "--compare"):
        raise NotKnown("tar compares with whatever files the archive names")
    if arguments.has("-P", "--absolute-names") and arguments.has(*_EXTRACTS) and not arguments.has("-O", "--to-stdout"):
        raise NotKnown("tar unpacks to wherever the archive says")


def _pack(arguments: Arguments, site: CommandSite) -> None:
    """Names are relative to the last `-C` before them: they are resolved in every directory named."""
    scope = site.scope.copy()
    for flag, value in arguments.flags:
        if flag in ("-C", "--directory"):
            if not isinstance(value, str):
                raise NotKnown("tar in a directory decided only when it runs")
            scope.add_directories(tuple(resolve(value, place) for place in scope.directories))
    for operand in arguments.operands:
        if isinstance(operand, str) and operand.startswith("@"):
            raise NotKnown(f"`{operand}`, which may be an archive to take from")
        apply_role("deep", operand, site.at(scope))


def _read_members(members: list[Word], site: CommandSite) -> None:
    """A member with the name of a secret may well be one."""
    for member in members:
        if isinstance(member, Dynamic):
            raise NotKnown(f"prints `{shown(member)}`, a name decided only when it runs")
        apply_role("read", member, site)


def _extract(flags: list[tuple[str, Word | None]], archives: list[Word], site: CommandSite, *, to_output: bool) -> None:
    for archive in archives:
        apply_role("read", archive, site)
    if to_output:
        return
    targets = [value for flag, value in flags if flag in ("-C", "--directory") and value is not None]
    for target in targets or ["."]:
        site.touch(EffectKind.WRITE, target, Reach.BELOW)
