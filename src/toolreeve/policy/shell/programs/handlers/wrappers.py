"""Handlers of wrappers, which run the command in their arguments.

The inner command is interpreted as if it stood alone, with the words that the wrapper adds.
"""

import re

from toolreeve.policy.shell.interpret.environment import ALL_VARIABLES, may_export, names_code
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import NOTHING, Printed, Separator
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, RunsCode, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags, conclude

_WITHOUT_MARKER = frozenset(("-n", "--max-args", "-L", "-l", "--max-lines"))
_WHOLE: frozenset[Word | None] = frozenset(("\n", "\\n", "\\0"))
_IN_PIECES = "and names with blanks are split here (end them in NUL: find … -print0 | xargs -0)"
_SHELLS = frozenset("sh bash dash zsh ksh busybox env".split())
_UNMISSED: frozenset[Word | None] = frozenset("LANG LANGUAGE LC_ALL TERM DISPLAY CI DEBUG".split())
_AGREEING = frozenset((("-n", "1"), ("--max-args", "1")))


def wrapper(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Flags, then as many operands of its own as the specification names, then the command."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    own = len(spec.operands)
    conclude(spec, arguments._replace(operands=[]), site)
    for role, operand in zip(spec.operands, arguments.operands, strict=False):
        _check_one_word(operand)
        apply_role(role, operand, site)
    if len(arguments.operands) <= own:
        return _bare(spec, arguments)
    inner = site.scope.copy()
    printed = site.run(arguments.operands[own:], inner, site.piped)
    if spec.name == "time":
        site.scope.merge(inner)  # the shell's own keyword runs in the shell itself, where a `cd` lasts
    return printed


def _check_one_word(operand: Word) -> None:
    if isinstance(operand, Glob) or (isinstance(operand, Dynamic) and not operand.single):
        raise NotKnown(f"`{shown(operand)}`, which may be several words")


def _bare(spec: Program, arguments: Arguments) -> Printed:
    if spec.data.get("default"):
        return None
    raise NotKnown(f"`{spec.name}` without a command")


def env(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """What follows the text of `-S` is for the program that it names: it is known only as the first flag."""
    arguments = read(spec, words)
    split = arguments.has("-S", "--split-string")
    if split and (len(arguments.flags) > 1 or "--" in words):
        raise NotKnown("`env -S` together with other flags")
    apply_flags(spec, arguments, site)
    command = [*_split(arguments), *arguments.operands]
    loaded = ""
    while command and isinstance(command[0], str) and re.match(r"[A-Za-z_]\w*=", command[0]):
        name, _, value = command.pop(0).partition("=")  # type: ignore[union-attr]
        if names_code(name):
            loaded = name
        elif not may_export(name, value):
            raise NotKnown(f"sets {name}, which changes what programs do")
    if command and command[0] in _SHELLS and _bereft(arguments):
        raise NotKnown("a shell without HOME or PWD")
    if not command:
        raise NotKnown(ALL_VARIABLES)
    printed = site.run(command, site.scope.copy(), site.piped)
    if loaded:
        raise RunsCode(f"sets {loaded}, from which programs load code")
    return printed


def _bereft(arguments: Arguments) -> bool:
    """Whether variables are unset by which a shell finds its home or current directory."""
    unset = [value for flag, value in arguments.flags if flag in ("-u", "--unset")]
    return arguments.has("-i", "--ignore-environment") or any(name not in _UNMISSED for name in unset)


def _split(arguments: Arguments) -> list[Word]:
    """The words of `-S`, as long as its text has no quoting of its own."""
    words: list[Word] = []
    for flag, value in arguments.flags:
        if flag in ("-S", "--split-string"):
            if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9_ ./:=,@%+-]*", value) or value[:1] == "-":
                raise NotKnown("the text of `env -S`")
            words.extend(value.split())
    return words


def command(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`command -v name` describes, `command name` runs."""
    arguments = read(spec, words)
    if arguments.has("-v", "-V"):
        return None
    if not arguments.operands:
        raise NotKnown("`command` without a command")
    return site.run(arguments.operands, site.scope, site.piped)


def xargs(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Runs a command with words from its input, which may be anything that the input may be."""
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    if not arguments.operands and not arguments.has("-a", "--arg-file"):
        raise NotKnown("`xargs` without a command")
    inner = list(arguments.operands) or ["echo"]
    given = _given(arguments, site.piped)
    marker = _marker(arguments)
    if marker is None:
        inner.append(given)
    else:
        inner = [_replaced(word, marker, given) for word in inner]
    return site.run(inner, site.scope.copy(), None)


def _given(arguments: Arguments, piped: Printed) -> Dynamic:
    """Any number of words; they are known if xargs separates them as they were printed."""
    ends = {value for flag, value in arguments.flags if flag in ("-d", "--delimiter")}
    if arguments.has("-0", "--null"):
        ends.add("\\0")
    if piped is None or arguments.has("-a", "--arg-file") or len(ends) > 1 or not ends <= _WHOLE:
        return Dynamic()
    # With NUL as the end, the words of a line are one name, and its line end belongs to it.
    if piped == NOTHING or piped.separator is (Separator.NULS if "\\0" in ends else Separator.WORDS):
        return Dynamic(each=True, below=piped.below, flagless=piped.flagless)
    return Dynamic(why=_IN_PIECES)


def _marker(arguments: Arguments) -> str | None:
    """The placeholder for a word of the input; the last flag that sets it counts."""
    marker: str | None = None
    for flag, value in arguments.flags:
        if flag in ("-I", "-J"):
            marker = value if isinstance(value, str) else ""
        elif flag in ("-i", "--replace"):
            marker = value if isinstance(value, str) and value else "{}"
        elif marker is not None and flag in _WITHOUT_MARKER and (flag, value) not in _AGREEING:
            raise NotKnown(f"{flag} after a flag that it undoes")
        if marker == "":
            raise NotKnown(f"{flag} without a fixed text")
    return marker


def _replaced(word: Word, marker: str, given: Dynamic) -> Word:
    if word == marker:
        return given._replace(single=True, each=False)
    if isinstance(word, str) and marker in word:
        prefix = word.partition(marker)[0]
        return Dynamic(prefix=prefix, single=True, flagless=bool(prefix) and prefix[0] != "-")
    if not isinstance(word, str):
        # Its expansion may contain the marker.
        return Dynamic(why="in which xargs may replace a part")
    return word
