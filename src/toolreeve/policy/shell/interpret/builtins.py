"""Shell builtins: commands that change the shell itself."""

import re
from collections.abc import Callable, Mapping

from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.conditionals import check_words
from toolreeve.policy.shell.interpret.environment import ALL_VARIABLES, may_assign
from toolreeve.policy.shell.interpret.expansion import Dynamic, Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import resolve
from toolreeve.policy.shell.programs.arguments import NotKnown, RunsCode

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ACTIVATES = re.compile(r"(?:[\w.-]+/)*[\w.-]*env[\w.-]*/bin/activate")
_QUIET_OPTIONS = frozenset("errexit nounset xtrace pipefail noglob verbose noclobber emacs vi".split())
_QUIET_SHOPTS = frozenset(
    "globstar nullglob nocasematch cdspell dirspell checkwinsize checkhash execfail gnu_errfmt histappend histreedit "
    "histverify cmdhist lithist hostcomplete huponexit mailwarn progcomp promptvars no_empty_cmd_completion autocd "
    "checkjobs direxpand complete_fullquote force_fignore login_shell".split()
)
_OFF_ANYWAY = frozenset("dotglob nocaseglob failglob lastpipe extdebug cdable_vars".split())
"""Options that must not be turned on; a script's shell starts without them."""


def _cd(words: list[Word], site: CommandSite) -> None:
    targets = [word for word in words if word not in ("-P", "-L", "--")]
    if len(targets) > 1 or targets[:1] == ["-"]:
        raise NotKnown("`cd` to a directory that is not named")
    target = targets[0] if targets else site.scope.home
    if not isinstance(target, str) or target.startswith("-"):
        raise NotKnown(f"`cd` to `{shown(target)}`, which is decided only when it runs")
    site.touch(EffectKind.READ, target, Reach.NAMES)
    site.scope.directories = tuple(dict.fromkeys(resolve(target, here) for here in site.scope.directories))


def _read(words: list[Word], site: CommandSite) -> None:
    """`read` names variables; a name with a subscript would be evaluated."""
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not isinstance(word, str):
            raise NotKnown("`read` into a variable that is not named")
        if word.startswith("-"):
            if not re.fullmatch(r"-[rse]*(?:[dntNpui].*)?", word):
                raise NotKnown(f"the flag {word} of `read`")
            index += bool(re.fullmatch(r"-[rse]*[dntNpui]", word))
        elif not _NAME.fullmatch(word) or not may_assign(word):
            raise NotKnown(f"`read` into {word}")
        else:
            site.scope.variables[word] = Dynamic()
    site.scope.variables["REPLY"] = Dynamic()


def _set(words: list[Word], site: CommandSite) -> None:
    if not words:
        raise NotKnown(ALL_VARIABLES)
    previous = ""
    for word in words:
        if not isinstance(word, str):
            raise NotKnown(f"`set {shown(word)}`")
        names_option = previous.endswith("o") and word in _QUIET_OPTIONS
        if not names_option and not re.fullmatch(r"[-+][euxvfCo]+", word):
            raise NotKnown(f"`set {shown(word)}`")
        previous = word


def _shopt(words: list[Word], site: CommandSite) -> None:
    changes = any(word in ("-s", "-u") for word in words)
    allowed = _QUIET_SHOPTS if "-s" in words else _QUIET_SHOPTS | _OFF_ANYWAY
    for word in words:
        if word in ("-s", "-u", "-p", "-q", "-o"):
            continue
        if not isinstance(word, str) or (changes and word not in allowed):
            raise NotKnown(f"`shopt {shown(word)}`")
    if changes and "-o" in words:
        raise NotKnown("`shopt -o`")


def _unset(words: list[Word], site: CommandSite) -> None:
    for word in words:
        if word != "-v" and not (isinstance(word, str) and _NAME.fullmatch(word) and may_assign(word)):
            raise NotKnown(f"`unset {shown(word)}`")
        site.scope.variables.pop(shown(word), None)


def _test(words: list[Word], site: CommandSite) -> None:
    check_words(words)


def _nothing(words: list[Word], site: CommandSite) -> None:
    """Commands without effect, whatever their words."""


def _number(words: list[Word], site: CommandSite) -> None:
    """At most a number: an expression would be evaluated."""
    for word in words:
        if not isinstance(word, str) or not re.fullmatch(r"%?\d+", word):
            raise NotKnown(f"`{shown(word)}` where a number is expected")


def _shift(words: list[Word], site: CommandSite) -> None:
    """`$2` becomes `$1`: no positional parameter is known any more."""
    _number(words, site)
    site.scope.forget(name for name in tuple(site.scope.variables) if not name.isidentifier())


def _source(words: list[Word], site: CommandSite) -> None:
    """The script that activates an environment of Python puts the environment's programs first, and does no more."""
    if len(words) == 1 and isinstance(words[0], str) and _ACTIVATES.fullmatch(words[0]):
        site.touch(EffectKind.READ, words[0])
        raise RunsCode(f"runs {words[0]}, code of the workspace")
    raise NotKnown("`source` runs a file in this shell")


def _refused(why: str) -> Callable[[list[Word], CommandSite], None]:
    def refuse(words: list[Word], site: CommandSite) -> None:
        raise NotKnown(why)

    return refuse


HARMLESS_BUILTINS = frozenset(
    "cd read set shopt unset test [ : true false exit return break continue wait shift".split()
)
"""Builtins that change nothing but the shell, whatever their words are."""

BUILTINS: Mapping[str, Callable[[list[Word], CommandSite], None]] = {
    "cd": _cd,
    "read": _read,
    "set": _set,
    "shopt": _shopt,
    "unset": _unset,
    "test": _test,
    "[": _test,
    ":": _nothing,
    "true": _nothing,
    "false": _nothing,
    "exit": _number,
    "return": _number,
    "break": _number,
    "continue": _number,
    "wait": _number,
    "shift": _shift,
    "logout": _number,
    "eval": _refused("`eval` runs text that is decided only when it runs"),
    "source": _source,
    ".": _source,
    "exec": _refused("`exec` replaces this shell with a program"),
    "trap": _refused("`trap` runs text later"),
    "let": _refused("`let` evaluates its words, and so may run commands"),
    "alias": _refused("`alias` changes what commands mean"),
    "coproc": _refused("`coproc` runs a command beside this shell"),
    "enable": _refused("`enable` changes the shell's own commands"),
    "declare": _refused("`declare` where its words are not plain"),
    "typeset": _refused("`typeset`"),
    "export": _refused("`export` where its words are not plain"),
}
