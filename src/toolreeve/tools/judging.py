"""May this program be started with these arguments, by this role? `judge` is the one question; None means yes.

Pure. It says no by default: a name that is not listed, an option that is not understood where it matters. It keeps
agents to known programs and tells them why; what a program can reach when it runs is the sandbox's business, not ours.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from toolreeve.core.call import Role
from toolreeve.core.commands import SHIPPED, CommandRules
from toolreeve.tools import arguments
from toolreeve.tools.arguments import Refused
from toolreeve.tools.peculiar import PECULIAR, STREAM
from toolreeve.tools.programs import BLOCKED, ROLES, SHELLS, known_to

_RANKS = {role: rank for rank, role in enumerate(ROLES)}
_SYSTEM = frozenset(("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"))
_PROJECT = re.compile(r"(?:\./)?(?:[\w.-]+/)*(?:\.?venv/bin|node_modules/\.bin)")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_MOST_NESTED = 4


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a command may not run, for whoever wrote it."""

    reason: str


def judge(argv: tuple[str, ...], role: Role, rules: CommandRules = SHIPPED, *, depth: int = 0) -> Refusal | None:
    if depth > _MOST_NESTED:
        return Refusal("it wraps a command in too many others")
    name = _name(argv[0])
    if name is None:
        return Refusal(f"{argv[0]!r} is not a program of the system; name the interpreter: `python3 script.py`")
    if problem := _unlisted(name, argv, role, rules):
        return Refusal(problem)
    words = argv[1:]
    special = PECULIAR.get(name)
    for reason in (_refused(name, words, role), special(words) if special else None):
        if reason:
            return Refusal(f"{name}: {reason}")
    return _inside(name, words, role, rules, depth)


def _name(program: str) -> str | None:
    """The name a program goes by, wherever it is called from; None for a file of the caller's own."""
    folder, _, name = program.rpartition("/")
    if not folder and "/" not in program:
        return program
    return name if folder in _SYSTEM or (_PROJECT.fullmatch(folder) and ".." not in folder) else None


def _unlisted(name: str, argv: tuple[str, ...], role: Role, rules: CommandRules) -> str | None:
    for entry in rules.block:
        first, *rest = entry.split() or [""]
        if name == first and all(word in argv[1:] for word in rest):
            return f"`{entry}` is blocked by the configuration (commands.blocklist)"
    if name in SHELLS:
        return f"{name!r} is blocked: {BLOCKED[name]}"
    if rules.allow:
        if name not in rules.allow:
            return f"{name!r} is not on the configured list of allowed programs (commands.allowlist)"
        least = known_to(name) or Role.OPERATOR
    elif name in BLOCKED:
        return f"{name!r} is blocked: {BLOCKED[name]}"
    elif (found := known_to(name)) is None:
        return f"{name!r} is not an allowed program; `commands.allowlist` sets which are"
    else:
        least = found
    if _RANKS[role] < _RANKS[least]:
        return f"{name!r} needs the role {least.value}, this call has the role {role.value}"
    return None


def _refused(name: str, words: tuple[str, ...], role: Role) -> str | None:
    if problem := _by_rules(arguments.RULES.get(name, ()), words, role):
        return problem
    if (interpreter := arguments.INTERPRETERS.get(name)) is not None:
        return _script(interpreter, words)
    if (subcommands := arguments.SUBCOMMANDS.get(name)) is not None:
        return _subcommand(subcommands, words, role)
    return None


def _by_rules(rules: tuple[Refused, ...], words: tuple[str, ...], role: Role) -> str | None:
    for rule in rules:
        if rule.below is not None and _RANKS[role] >= _RANKS[rule.below]:
            continue
        for word in words:
            if _fits(rule, word):
                return f"{word!r} is refused: {rule.reason}"
    return None


def _fits(rule: Refused, word: str) -> bool:
    name = word.partition("=")[0]
    if name in rule.words or (rule.starts and word.startswith(rule.starts)):
        return True
    if name.startswith("--"):
        return len(name) > 2 and any(flag.startswith(name) for flag in rule.flags)
    return word.startswith("-") and any(letter in word[1:] for letter in rule.letters)


def _script(interpreter: arguments.Interpreter, words: tuple[str, ...]) -> str | None:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        if word == "-m" and interpreter.modules:
            module = words[at + 1] if at + 1 < len(words) else ""
            return None if module in interpreter.modules else f"`-m {module}` is refused: not a module for this"
        if word in interpreter.valued:
            at += 2
        elif word in interpreter.alone or (interpreter.starts and word.startswith(interpreter.starts)):
            at += 1
        else:
            return f"{word!r} is refused: code belongs into a file, where it can be seen"
    if at >= len(words):
        asks = arguments.ASKS_ABOUT_ITSELF | {"--test"}
        return None if asks.intersection(words) else "it would read code from its input; name a file"
    return "it would read code from its input; name a file" if STREAM.match(words[at]) else None


def _subcommand(subcommands: arguments.Subcommands, words: tuple[str, ...], role: Role) -> str | None:
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option = words[at].partition("=")[0]
        if option in subcommands.valued:
            at += 1 if "=" in words[at] else 2
        elif words[at] in subcommands.alone:
            at += 1
        else:
            return f"{words[at]!r} is refused before a subcommand"
    if at >= len(words):
        return None
    name = words[at]
    if name not in subcommands.looking and name not in subcommands.doing:
        return f"{name!r} is not an allowed subcommand"
    if name in subcommands.doing and role is Role.VIEWER:
        return f"{name!r} needs the role operator, this call has the role viewer"
    return _by_rules(subcommands.refused, words[at + 1 :], role)


def _inside(name: str, words: tuple[str, ...], role: Role, rules: CommandRules, depth: int) -> Refusal | None:
    """Judge the command that a wrapper runs."""
    wrapper = arguments.WRAPPERS.get(name)
    if wrapper is None or words[: len(wrapper.after)] != wrapper.after:
        return None
    rest = words[len(wrapper.after) :]
    if not wrapper.after and rest and rest[0] in ("--version", "--help"):
        return None
    at = _own_options(wrapper, rest)
    if at < 0:
        return Refusal(f"{name}: {rest[-at - 1]!r} is refused: it is not known what it would run")
    command = rest[at + wrapper.own :]
    if name == "env":
        return _environment(command, role, rules, depth)
    if name == "xargs":
        return _from_input(command or ("echo",), role, rules, depth)
    if not command:
        return Refusal(f"{name}: it names no command to run")
    return judge(command, role, rules, depth=depth + 1)


def _own_options(wrapper: arguments.Wrapper, words: tuple[str, ...]) -> int:
    """Where the wrapper's options end; -1 minus the place of one that is not known."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            return at + 1
        if words[at].partition("=")[0] in wrapper.valued:
            at += 1 if "=" in words[at] else 2
        elif words[at] in wrapper.alone:
            at += 1
        else:
            return -1 - at
    return at


def _environment(command: tuple[str, ...], role: Role, rules: CommandRules, depth: int) -> Refusal | None:
    at = 0
    while at < len(command) and (set_ := _ASSIGNMENT.match(command[at])):
        if set_[1] not in arguments.VARIABLES and not set_[1].startswith("LC_"):
            return Refusal(f"env: {set_[1]!r} may not be set: it could make programs run something else")
        at += 1
    return judge(command[at:], role, rules, depth=depth + 1) if command[at:] else None


def _from_input(command: tuple[str, ...], role: Role, rules: CommandRules, depth: int) -> Refusal | None:
    """Words that come from an input may be anything, options too: only for programs whose options are all harmless."""
    name = _name(command[0]) or ""
    ruled: tuple[Mapping[str, object], ...] = (
        arguments.RULES,
        arguments.SUBCOMMANDS,
        arguments.INTERPRETERS,
        arguments.WRAPPERS,
        PECULIAR,
    )
    if any(name in table for table in ruled):
        return Refusal(f"xargs: {name!r} is refused here: what comes from the input could be any of its options")
    return judge(command, role, rules, depth=depth + 1)
