"""Does `tar` list, make or unpack an archive? Its first word may be a bundle of letters without a dash."""

import re

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.arguments import NotKnown, read
from toolreeve.policy.shell.printing import Printed
from toolreeve.policy.shell.roles import apply
from toolreeve.policy.shell.site import Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Open, Word, shown

_BUNDLE = re.compile(r"[A-Za-z]+")


def judge(spec: Program, words: list[Word], site: Site) -> Printed:
    arguments = read(spec, _dashed(words))
    if arguments.has("--version", "--help"):
        return None
    archives = [value for flag, value in arguments.flags if flag in ("-f", "--file") and value is not None]
    for archive in archives:
        if isinstance(archive, str) and ":" in archive:
            raise NotKnown("an archive on another machine")
    for flag, value in arguments.flags:
        if value is not None and flag not in ("-f", "--file", "-C", "--directory"):
            apply(spec.flags[flag], value, site)
    if arguments.has("-t", "--list", "-d", "--diff", "--compare"):
        for archive in archives:
            apply("read", archive, site)
    elif arguments.has("-x", "--extract", "--get"):
        _extract(arguments.flags, archives, site, to_output=arguments.has("-O", "--to-stdout"))
        _name_members(arguments.operands, site)
    elif arguments.has("-c", "--create", "-r", "--append", "-u", "--update"):
        for archive in archives:
            apply("write", archive, site)
        for operand in arguments.operands:
            apply("deep", operand, site)
    else:
        raise NotKnown("tar without a task")
    if arguments.has("--remove-files"):
        for operand in arguments.operands:
            apply("deltree", operand, site)
    return None


def _dashed(words: list[Word]) -> list[Word]:
    """`tar xzf a.tgz` means `tar -xzf a.tgz`, as long as only the last letter takes a value."""
    first = words[0] if words else ""
    if not isinstance(first, str) or not _BUNDLE.fullmatch(first):
        return words
    if any(letter in "fCbTXIFgKNVL" for letter in first[:-1]):
        raise NotKnown(f"the bundle `{first}`")
    return ["-" + first, *words[1:]]


def _name_members(members: list[Word], site: Site) -> None:
    """What is called like a secret may well be one, also in an archive."""
    for member in members:
        if isinstance(member, Open):
            raise NotKnown(f"unpacks `{shown(member)}`, a name decided only when it runs")
        apply("read", member, site)


def _extract(flags: list[tuple[str, Word | None]], archives: list[Word], site: Site, *, to_output: bool) -> None:
    for archive in archives:
        apply("read", archive, site)
    if to_output:
        return
    targets = [value for flag, value in flags if flag in ("-C", "--directory") and value is not None]
    for target in targets or ["."]:
        site.touch(EffectKind.WRITE, target, Reach.BELOW)
