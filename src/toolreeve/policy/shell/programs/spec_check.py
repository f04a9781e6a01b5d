"""Interpretation of a command by its specification alone, without a handler."""

import re
from typing import Any

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, shown, stem_of
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import resolve
from toolreeve.policy.shell.interpret.printed_paths import Printed, PrintedPaths, Separator
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.hosts import contact
from toolreeve.policy.shell.programs.roles import apply_arguments, apply_role
from toolreeve.policy.shell.programs.spec import Program

_PLAIN_NAME = re.compile(r"[a-z][a-z0-9-]*")


def apply_spec(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    if "sub" in spec.data:
        return _subcommand(spec, words, site)
    arguments = read(spec, words)
    apply_arguments(spec, arguments, site)
    return conclude(spec, arguments, site)


def conclude(spec: Program, arguments: Arguments, site: CommandSite) -> Printed:
    """Apply what the specification says of the command as a whole, and answer what it prints."""
    if spec.follows:
        _follow(spec, arguments, site)
    if spec.rewrites and arguments.has(*spec.rewrites):
        return None
    nuls = arguments.has(*spec.nuls)
    match _prints(spec, arguments):
        case "paths":
            return listed_paths(arguments.operands, site, nuls=nuls)
        case "name":
            return printed_name(site)
    if not spec.filters or site.piped is None or _names_files(spec, arguments):
        return None
    return site.piped.through(spec.filters, nuls=nuls)


def _prints(spec: Program, arguments: Arguments) -> str:
    """`paths` or `name` if it prints only those, possibly because of a flag."""
    if spec.prints or not spec.modes:
        return spec.prints
    for flag, _ in arguments.flags:
        mode = spec.modes.get(flag, {})
        if "prints" in mode:
            return str(mode["prints"])
    return ""


def printed_name(site: CommandSite) -> Printed:
    """Names or numbers, if any: as paths, they lie in the current directory."""
    return PrintedPaths(site.scope.directories, Separator.WORDS, flagless=True)


def _follow(spec: Program, arguments: Arguments, site: CommandSite) -> None:
    _conditions(spec, arguments)
    if not spec.calm or not any(flag in spec.calm for flag, _ in arguments.flags):
        for flag, _ in arguments.flags:
            if mode := spec.modes.get(flag):
                _alarm(mode, site)
                if "net" in mode:
                    site.findings.effects.append(Effect(EffectKind.NET, mode["net"]))
        _alarm(spec.data, site)
        _do(spec.does, site)
    housekeeping(spec, site)
    if spec.net:
        contact(spec, arguments, site)
    if sends := spec.data.get("sends"):
        site.findings.effects.append(Effect(EffectKind.SEND, sends))


def housekeeping(spec: Program, site: CommandSite) -> None:
    """Effects besides the task: files that the program keeps for itself, and helper programs."""
    for path in spec.keeps:
        site.keep(path)
    for name in spec.runs:
        site.findings.effects.append(Effect(EffectKind.EXEC, name))


def _conditions(spec: Program, arguments: Arguments) -> None:
    if spec.requires and not any(flag in spec.requires for flag, _ in arguments.flags):
        raise NotKnown(f"`{spec.name}` without one of {', '.join(sorted(spec.requires))}")
    if spec.unlike is not None:
        for word in arguments.operands:
            if not isinstance(word, str) or spec.unlike.search(word):
                raise NotKnown(f"the operand `{shown(word)}`")


def _names_files(spec: Program, arguments: Arguments) -> bool:
    """Whether a filter reads named files rather than the pipe."""
    return len(arguments.operands) - arguments.operands.count("-") > spec.operands.count("text")


def _alarm(data: Any, site: CommandSite) -> None:
    if level := data.get("danger"):
        site.findings.alarm(DangerLevel(level), data.get("reason", ""))


def _do(does: tuple[str, ...], site: CommandSite) -> None:
    for role, target in zip(does[::2], does[1::2], strict=True):
        apply_role(role, target, site)


def listed_paths(words: list[Word], site: CommandSite, *, nuls: bool) -> Printed:
    """The paths that a lister prints: below the named paths, and bare names in the current directory."""
    named = roots_of(words, site)
    if named is None:
        return None
    below = tuple(dict.fromkeys((*site.scope.directories, *named)))
    return PrintedPaths(below, Separator.NULS if nuls else Separator.LINES)


def roots_of(words: list[Word], site: CommandSite) -> tuple[str, ...] | None:
    """The directories that contain everything that the words name; None if not known."""
    found: dict[str, None] = {}
    for word in words:
        if isinstance(word, Dynamic):
            if word.trees is None:
                return None
            found.update(dict.fromkeys(word.trees))
        else:
            text = stem_of(word.text) if isinstance(word, Glob) else word
            found.update((resolve(text, directory), None) for directory in site.scope.directories)
    return tuple(found)


def _subcommand(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    if _asks_help(spec, words):
        housekeeping(spec, site)
        return None
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    housekeeping(spec, site)
    if not arguments.operands:
        if arguments.flags or spec.data.get("default"):
            return conclude(spec, arguments, site)
        raise NotKnown(f"`{spec.name}` without a subcommand")
    return subcommand(spec, arguments.operands, site)


def subcommand(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    name = words[0]
    inner = spec.sub(name) if isinstance(name, str) else None
    if inner is None:
        raise NotKnown(f"no specification of `{spec.name} {shown(name)}`")
    return site.run_program(inner, words[1:])


def apply_flags(spec: Program, arguments: Arguments, site: CommandSite) -> None:
    for flag, value in arguments.flags:
        if value is not None and (role := spec.flags.get(flag)):
            apply_role(role, value, site)


def _asks_help(spec: Program, words: list[Word]) -> bool:
    """Whether it is `tool sub command --help`, which only prints: of subcommands that are specified, and directly
    after one that could pass it on to another program."""
    if not spec.data.get("help") or not words or words[-1] not in ("--help", "-h") or len(words) > 4:
        return False
    found = spec
    for name in words[:-1]:
        if not isinstance(name, str) or not _PLAIN_NAME.fullmatch(name) or _passes_words_on(found):
            return False
        inner = found.sub(name) if "sub" in found.data else found
        if inner is None:
            return False
        found = inner
    return True


def _passes_words_on(spec: Program) -> bool:
    return bool(spec.code or spec.handler) or (spec.stops and "sub" not in spec.data)
