"""Findings about commands, collected by handlers during interpretation."""

import re
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach, reads
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, shown, stem_of
from toolreeve.policy.shell.interpret.paths import QUIET, is_under, resolve, resolve_all
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.programs.arguments import NotKnown
from toolreeve.policy.shell.programs.spec import Program

# Looked up once: access to an enum member is slow.
_READ = EffectKind.READ
_EXACT = Reach.EXACT
_UNREAD = QUIET | {"", "-"}
_ODD = re.compile(r"\.\.|://")
_CLIMBING = re.compile(r"(?:\.\./)+|\.\.\Z")
_UP = re.compile(r"(?:\A|/)\.\.(?:/|\Z)")
_MAY_BE_UP = re.compile(r"(?:\A|/)\.\.?[*?\[][^/]*\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class ProgramRunner(Protocol):
    """Interprets commands inside commands."""

    def run(self, words: list[Word], scope: ShellScope, piped: Printed) -> Printed: ...

    def run_text(self, text: str, scope: ShellScope) -> Printed: ...

    def run_program(self, spec: Program, words: list[Word], site: "CommandSite") -> Printed: ...


class CommandPart(NamedTuple):
    """One simple command: what it runs, and `why` it is not known, if so.

    `program` is the name of its specification, `by` the program that wraps it, `depth` the number of wrappers. `code`:
    it is not known only because it runs code of the workspace. `reads`: the program only reads, whatever its words are.
    """

    argv: tuple[str, ...]
    why: str
    program: str = ""
    by: str = ""
    code: bool = False
    depth: int = 0
    reads: bool = False

    @property
    def known(self) -> bool:
        return not self.why


Alarm = tuple[DangerLevel, str]
"""The danger of something that no effect expresses, and what it is."""


class Findings:
    """What the whole command does, collected while it is interpreted. `source` is the command with its heredocs."""

    __slots__ = ("alarms", "background", "effects", "kept", "parts", "source")

    def __init__(self, source: str = "") -> None:
        self.source = source
        self.effects: list[Effect] = []
        self.parts: list[CommandPart] = []
        self.alarms: list[Alarm] = []
        self.kept: set[Effect] = set()
        self.background = False

    def alarm(self, danger: DangerLevel, reason: str) -> None:
        self.alarms.append((danger, reason))


class CommandSite:
    """Where one command runs: its scope, what is piped into it, and ways to run commands inside it."""

    __slots__ = ("findings", "piped", "runner", "scope")

    def __init__(self, findings: Findings, scope: ShellScope, piped: Printed, runner: "ProgramRunner") -> None:
        self.findings = findings
        self.scope = scope
        self.piped = piped
        self.runner = runner

    def at(self, scope: ShellScope) -> "CommandSite":
        """The same command, seen from another scope."""
        return CommandSite(self.findings, scope, self.piped, self.runner)

    def run(self, words: list[Word], scope: ShellScope, piped: Printed) -> Printed:
        return self.runner.run(words, scope, piped)

    def run_text(self, text: str, scope: ShellScope) -> Printed:
        return self.runner.run_text(text, scope)

    def run_program(self, spec: Program, words: list[Word]) -> Printed:
        """By the program's own handler if it has one, else by its specification."""
        return self.runner.run_program(spec, words, self)

    def touch(self, kind: EffectKind, word: Word, reach: Reach = _EXACT) -> None:
        """Record an effect on the path that `word` names; a dynamic path must at least have known bounds."""
        effects = self.findings.effects
        match word:
            case str():
                if word and (word not in QUIET or kind is EffectKind.DELETE):
                    for directory in self.scope.directories:
                        if ".." in word:
                            self._check_parents(word, directory)
                        effects.append(Effect(kind, resolve(word, directory), reach))
                    if "://" in word and kind is _READ:
                        self.contact_host(EffectKind.NET, word)  # to some programs, it is no file
            case Glob(text):
                self._touch_glob(kind, text, reach)
            case Dynamic() if (places := word.trees if reach is Reach.BELOW else word.places) is not None and (
                places or kind is _READ
            ):
                effects.extend(_dynamic_effect(kind, place, reach) for place in places)
            case Dynamic() if reach is not Reach.NAMES:
                raise NotKnown(f"{_DOING[kind]} `{shown(word)}`, {word.why or 'a path decided only when it runs'}")

    def read_all(self, words: list[Word]) -> None:
        """Record reads of all the files named, of which there may be hundreds; `-` is standard input."""
        plain = [word for word in words if type(word) is str and word not in _UNREAD and not _ODD.search(word)]
        for directory in self.scope.directories:
            self.findings.effects.extend(reads(resolve_all(plain, directory)))
        if len(plain) == len(words):
            return
        for word in words:
            if type(word) is not str or _ODD.search(word):
                self.touch(_READ, word)

    def _check_parents(self, path: str, directory: str) -> None:
        """`..` undoes the name before it only in the workspace: elsewhere the system has links."""
        climbed = _CLIMBING.match(path)
        known = climbed is None or directory == self.scope.start or is_under(directory, self.scope.root)
        down = _UP.search(path, climbed.end() if climbed else 0)
        if known and down is not None:
            before = resolve(path[: down.start()] or "/", directory)
            known = before == "/" or is_under(before, self.scope.root)
        if not known:
            raise NotKnown(f"`{path}`, whose `..` may follow a link elsewhere")

    def _touch_glob(self, kind: EffectKind, text: str, reach: Reach) -> None:
        if reach is Reach.BELOW and _MAY_BE_UP.search(text):
            raise NotKnown(f"everything below `{text}`, which may be `..`")
        for directory in self.scope.directories:
            if ".." in text:
                self._check_parents(text, directory)
            pattern = resolve(text, directory)
            if reach is _EXACT:
                self.findings.effects.append(Effect(kind, pattern, Reach.MATCHING))
            else:
                self.findings.effects.append(Effect(kind, stem_of(pattern), reach))

    def keep(self, path: str) -> None:
        """Record a write to a program's own cache, log or temporary file, which does no harm."""
        home = self.scope.home
        for directory in self.scope.directories:
            target = resolve(home + path[1:] if path.startswith("~/") else path, directory)
            effect = Effect(EffectKind.WRITE, target, Reach.BELOW)
            self.findings.kept.add(effect)
            self.findings.effects.append(effect)

    def contact_host(self, kind: EffectKind, address: Word) -> None:
        """Record an effect on the host of a URL or a bare host name."""
        if not isinstance(address, str):
            raise NotKnown(f"contacts `{shown(address)}`, an address decided only when it runs")
        self.findings.effects.append(Effect(kind, host_of(address)))


def _dynamic_effect(kind: EffectKind, root: str, reach: Reach) -> Effect:
    """An effect on one or several paths below `root` that are decided only when it runs."""
    if kind is EffectKind.READ:
        return Effect(kind, root, reach if reach is Reach.NAMES else Reach.BELOW)
    return Effect(kind, root, reach) if reach is Reach.BELOW else Effect(kind, f"{root.rstrip('/')}/**", Reach.MATCHING)


_DOING = {
    EffectKind.READ: "reads",
    EffectKind.WRITE: "writes",
    EffectKind.DELETE: "deletes",
    EffectKind.EXEC: "runs",
    EffectKind.NET: "contacts",
    EffectKind.SEND: "sends to",
    EffectKind.SPEND: "spends",
}


def host_of(address: str) -> str:
    """The host in a URL, `host:port`, `user@host` or a bare name. A scheme that reads files is not a host."""
    scheme = _SCHEME.match(address)
    if scheme and scheme.group().lower() not in ("http://", "https://", "ssh://", "git://", "ftp://", "ftps://"):
        raise NotKnown(f"the address scheme {scheme.group()}")
    try:
        host = urlsplit(address if scheme else f"//{address}").hostname
    except ValueError:
        host = None
    if not host or re.search(r"[^A-Za-z0-9.:_-]", host):
        raise NotKnown(f"the address `{address}`")
    return host
