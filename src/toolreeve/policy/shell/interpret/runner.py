"""Runner of simple commands: dispatch to builtins, handlers and specifications.

A command that repeats in an unchanged scope is interpreted once.
"""

import re
from abc import ABC, abstractmethod

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.shell.interpret.builtins import BUILTINS, HARMLESS_BUILTINS
from toolreeve.policy.shell.interpret.expansion import Word, shown, shown_all
from toolreeve.policy.shell.interpret.findings import CommandPart, CommandSite, Findings
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.parse.scanner import Unreadable
from toolreeve.policy.shell.programs.arguments import NotKnown, RunsCode
from toolreeve.policy.shell.programs.handlers import HANDLERS
from toolreeve.policy.shell.programs.spec import Program, program
from toolreeve.policy.shell.programs.spec_check import apply_spec, housekeeping

MOST_COMMANDS = 400
_MOST_WRAPPED = 16
# Looked up once: access to an enum member is slow.
_EXEC = EffectKind.EXEC
_READ = EffectKind.READ
_NAMES = Reach.NAMES
_OUTGOING = frozenset((EffectKind.NET, EffectKind.SEND))
_SYSTEM = re.compile(r"/(?:usr/(?:local/)?)?s?bin/([A-Za-z0-9_.+\[-]+)")
_PROJECT = re.compile(r"(?:\./)?(?:(?!\.\./)[\w.-]+/)*?(?:\.?venv/bin|node_modules/\.bin)/([A-Za-z0-9_.+-]+)")


class CommandRunner(ABC):
    """`_by` is the program whose command is being interpreted; `_seen` caches results in a scope without variables."""

    __slots__ = ("_by", "_depth", "_seen", "findings")

    def __init__(self, source: str = "") -> None:
        self.findings = Findings(source)
        self._by = ""
        self._depth = 0
        self._seen: dict[tuple[object, ...], tuple[Printed, list[CommandPart]]] = {}

    def run(self, words: list[Word], scope: ShellScope, piped: Printed) -> Printed:
        """Interpret one command by its words; also the command of a wrapper."""
        parts = self.findings.parts
        if len(parts) > MOST_COMMANDS:
            raise Unreadable("too many commands")
        if self._depth > _MOST_WRAPPED:
            raise Unreadable("a command wrapped in too many others")
        if self._by or scope.variables:
            return self._run(words, scope, piped)
        place = len(parts)
        key = (tuple(words), scope.directories, piped)
        if (seen := self._seen.get(key)) is not None:
            parts.extend(seen[1])
            return seen[0]
        printed = self._run(words, scope, piped)
        if scope.directories is key[1] and not scope.variables:
            self._seen[key] = printed, parts[place:]
        return printed

    def _run(self, words: list[Word], scope: ShellScope, piped: Printed) -> Printed:
        argv = shown_all(words)
        name = _program(words[0])
        by = self._by
        parts = self.findings.parts
        place = len(parts)
        parts.append(CommandPart(argv, "", name, by, False, self._depth))  # noqa: FBT003 - keywords would cost twice as much
        self.findings.effects.append(Effect(_EXEC, " ".join(argv)))
        self._by = name
        self._depth += 1
        known = len(self.findings.effects)
        try:
            printed = self._dispatch(name, words, scope, piped)
            if len(parts) == place + 1:  # else it wraps other commands, which were checked themselves
                _check_sent(words, self.findings.effects, known)
            return printed
        except (NotKnown, Unreadable) as problem:
            code = isinstance(problem, RunsCode)
            reads = not code and any(type(word) is not str for word in words) and only_reads(name)
            parts[place] = parts[place]._replace(why=str(problem), code=code, reads=reads)
            return None
        finally:
            self._by = by
            self._depth -= 1

    def _dispatch(self, name: str, words: list[Word], scope: ShellScope, piped: Printed) -> Printed:
        if not name:
            raise NotKnown(_nameless(words[0]))
        site = CommandSite(self.findings, scope, piped, self)
        if (builtin := BUILTINS.get(name)) is not None and words[0] == name:
            return builtin(words[1:], site)
        spec = program(name)
        if spec is None:
            raise NotKnown(f"no specification of `{name}`")
        printed = self.run_program(spec, words[1:], site)
        if words[0] != name and not _SYSTEM.fullmatch(shown(words[0])):
            raise RunsCode(f"runs `{shown(words[0])}`, which lies in the workspace")
        return printed

    def run_program(self, spec: Program, words: list[Word], site: CommandSite) -> Printed:
        if len(words) == 1 and words[0] in spec.tells:
            housekeeping(spec, site)
            return None
        printed = HANDLERS[spec.handler](spec, words, site) if spec.handler else apply_spec(spec, words, site)
        if spec.code:
            raise RunsCode(spec.code)
        return printed

    @abstractmethod
    def run_text(self, text: str, scope: ShellScope) -> Printed:
        """Interpret a command given as text."""


def _check_sent(words: list[Word], effects: list[Effect], start: int) -> None:
    """Whatever a program that contacts another machine is given may be sent there: its words must be fixed, and the
    content of every file that it reads counts as sent. `start` is where the effects of the command begin."""
    hosts = [effect.target for effect in effects[start:] if effect.kind in _OUTGOING]
    if not hosts:
        return
    for word in words:
        if type(word) is not str:
            raise NotKnown(f"sends `{shown(word)}`, decided only when it runs, to another machine")
    if any(effect.kind is _READ and effect.reach is not _NAMES for effect in effects[start:]):
        effects.append(Effect(EffectKind.SEND, hosts[0]))


def only_reads(name: str) -> bool:
    """Whether the program only reads, whatever its words are: then only its words are unknown."""
    if name in BUILTINS:
        return name in HARMLESS_BUILTINS
    spec = program(name)
    return spec is not None and spec.reads


def _program(name: Word) -> str:
    """The name of the program's specification, whatever its directory; empty for a file of the workspace."""
    if type(name) is not str:
        return ""
    if "/" not in name:
        return name
    found = _SYSTEM.fullmatch(name) or _PROJECT.fullmatch(name)
    return found[1] if found else ""


def _nameless(name: Word) -> str:
    if type(name) is not str:
        return "which program runs is decided only when it runs"
    return f"`{name}` is not a program of the system" if name else "a program without a name"
