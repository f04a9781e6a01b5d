"""Handlers of shells and of programs that pass text to one.

`bash -c 'text'` is analysed as a script of its own.
"""

import re

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.policy.shell.interpret.expansion import Dynamic, Word, several
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags

_SAME_IN_ALL = re.compile(r"[\w./-][\w\s./:,@%+'-]*")
_OF_BASH = re.compile(
    r"""\$['"\[]|(?<!\$)\{(?!\s|\}(?:[\s'"\\;+]|\Z))|&>|>&(?![\d-])|[<>=]\(|\[\[|<<<|\|&|;;?&|[=:]~|(?:^|[\s/=])\.[*?\[]|\d\d[<>]"""
)
"""Forms that a POSIX shell reads differently."""


def shell(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Only `-c` with fixed text; a script file, standard input or an interactive shell may do anything."""
    if not all(isinstance(word, str) for word in words):
        _warn(site)
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    if not arguments.has("-c") or not arguments.operands:
        _warn(site)
        raise NotKnown(f"`{spec.name}` runs its input or a file (write the commands themselves)")
    text = arguments.operands[0]
    if not isinstance(text, str):
        raise NotKnown(f"`{spec.name} -c` with text decided only when it runs")
    _check_dialect(spec.name, text, posix=arguments.has("--posix", "-o") or spec.name in ("sh", "dash"))
    scope = site.scope.copy()
    scope.variables = {**dict.fromkeys(scope.variables, Dynamic()), **_positional(arguments.operands[1:])}
    return site.run_text(text, scope)


def _warn(site: CommandSite) -> None:
    """The shell may run what was fetched before."""
    hosts = [effect.target for effect in site.findings.effects if effect.kind is EffectKind.NET]
    if hosts:
        site.findings.alarm(DangerLevel.CRITICAL, f"may run what {hosts[-1]} sends")


def _check_dialect(name: str, text: str, *, posix: bool) -> None:
    if (name in ("zsh", "ksh") and not _SAME_IN_ALL.fullmatch(text)) or (posix and _OF_BASH.search(text)):
        raise NotKnown(f"text that {name} may read differently from bash")


def _positional(words: list[Word]) -> dict[str, Word]:
    """`$0`, `$1` and so on, as far as their positions are certain."""
    found: dict[str, Word] = {}
    for index, word in enumerate(words[:10]):
        certain = not several(word)
        if certain or (isinstance(word, Dynamic) and word.each and index == len(words) - 1):
            found[str(index)] = word
        if not certain:
            break
    if len(words) == 2 and "1" in found:
        found["@"] = found["*"] = found["1"]
    return found


def flock(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Creates the file that it locks, then runs a command, or a text after `-c`."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    lock, *command = arguments.operands or [""]
    if not isinstance(lock, str) or not command:
        raise NotKnown("`flock` without a fixed name and a command")
    apply_role("write", lock, site)
    if command[0] not in ("-c", "--command"):
        return site.run(command, site.scope.copy(), site.piped)
    if len(command) != 2 or not isinstance(command[1], str):
        raise NotKnown("`flock -c` without one fixed text")
    _check_dialect("sh", command[1], posix=True)
    scope = site.scope.copy()
    scope.variables = dict.fromkeys(scope.variables, Dynamic())
    return site.run_text(command[1], scope)


def grave(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Dangerous whatever its arguments."""
    site.findings.alarm(DangerLevel(spec.data["danger"]), spec.data["reason"])
    return None


def elsewhere(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Runs a command in a container or on another machine, with programs that are not known."""
    raise NotKnown(f"`{spec.name}` runs in a container, whose programs are not known")


def watch(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Joins its words with blanks and passes the text to a shell repeatedly."""
    arguments = read(spec, words)
    if not arguments.operands:
        raise NotKnown("`watch` without a command")
    if arguments.has("-x", "--exec"):
        return site.run(arguments.operands, site.scope, None)
    texts = [word for word in arguments.operands if isinstance(word, str)]
    if len(texts) != len(arguments.operands):
        raise NotKnown("`watch` with words decided only when it runs")
    text = " ".join(texts)
    _check_dialect("sh", text, posix=True)
    scope = site.scope.copy()
    scope.variables = {}
    return site.run_text(text, scope)
