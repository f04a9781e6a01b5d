"""Handlers of text tools whose arguments depend on each other.

A flag may already have given the pattern; values may come in pairs.
"""

import re

from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.policy.shell.interpret.environment import ALL_VARIABLES
from toolreeve.policy.shell.interpret.expansion import Dynamic, Word, may_be_flag, several, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.paths import resolve
from toolreeve.policy.shell.interpret.printed_paths import Printed, PrintedPaths, Separator
from toolreeve.policy.shell.interpret.scope import ShellScope
from toolreeve.policy.shell.programs.arguments import Arguments, NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.secret_search import globs_of, targeted_secrets, with_secrets
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags, apply_spec, conclude, housekeeping, listed_paths

_AMBIENT = re.compile(r"""(?<![.\w"$])(?:env|import|include|modulemeta)\b(?!\s*:)|\$\s*ENV\b""")
"""What makes a jq program read more than its input, except as the name of a field."""
_ELSEWHERE = re.compile(r"load|env|system|eval|import|include", re.IGNORECASE)
_ASSIGNS = re.compile(r"%[^A-Za-z%]*[hlLqjzt]*n")
_PAIRS = frozenset(("--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"))
_READ_AGAIN = re.compile(r"""["'\\*?\[]""")
"""Characters that a shell or xargs interprets when it reads the text again."""
_ODD_BLANK = re.compile(r"[^\S \t\n]")
"""Blanks to Python, but not to a shell."""
_PLAIN = re.compile(r"[\w./+,@%=:-]+")
_EXECUTES = frozenset(("-x", "--exec", "-X", "--exec-batch"))


def anything(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """It only prints its arguments."""
    return _names_only(words, site)


def _names_only(words: list[Word], site: CommandSite) -> Printed:
    """The paths that fixed words name when they are printed into a pipe."""
    if not all(isinstance(word, str) and not word.startswith("-") and not _READ_AGAIN.search(word) for word in words):
        return None
    text = " ".join(map(str, words))
    if _ODD_BLANK.search(text):
        return None
    paths = text.split()
    below = dict.fromkeys(resolve(path, here) for path in (*paths, text) if path for here in site.scope.directories)
    return PrintedPaths(tuple(below), Separator.WORDS, not any(path.startswith("-") for path in paths))


def here(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Prints the current directory."""
    apply_spec(spec, words, site)
    places = site.scope.directories
    return PrintedPaths(
        places, Separator.WORDS if all(map(_PLAIN.fullmatch, places)) else Separator.LINES, flagless=True
    )


def printf(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """With `%n` it assigns the variable that an argument names."""
    if not words or (may_be_flag(words[0]) and words[0] != "--"):
        raise NotKnown("printf with a flag")
    form, *values = words[words[0] == "--" :] or [""]
    if values and (not isinstance(form, str) or _ASSIGNS.search(form)):
        raise NotKnown("printf with a format that may assign variables")
    return None


def grep(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    apply_flags(spec, arguments, site)
    given = arguments.has("-e", "--regexp", "-f", "--file")
    files = arguments.operands if given else _after_first(arguments.operands)
    tree = arguments.has("-r", "-R", "--recursive", "--dereference-recursive")
    for file in files:
        apply_role("deep" if tree else "read", file, site)
    if tree and all(map(several, files)):
        apply_role("deep", ".", site)
    housekeeping(spec, site)
    if arguments.has(*spec.rewrites):
        return None
    if arguments.has("-l", "-L", "--files-with-matches", "--files-without-match"):
        return listed_paths(files, site, nuls=arguments.has("-Z", "--null"))
    if files or tree or not site.piped:
        return None
    return site.piped.through(spec.filters, nuls=arguments.has(*spec.nuls))


def _after_first(operands: list[Word]) -> list[Word]:
    """The operands after a pattern; one that expands to several words is a pattern and files."""
    return operands if operands and several(operands[0]) else operands[1:]


def jq(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`--arg name value` and the like take two words; words after `--args` are values, unless they are the program."""
    plain = _without_pairs(words, site)
    arguments = read(spec, plain)
    apply_flags(spec, arguments, site)
    operands = arguments.operands
    if arguments.has("--args", "--jsonargs"):
        at = next(index for index, word in enumerate(plain) if word in ("--args", "--jsonargs"))
        operands = operands[: max(1, len(read(spec, plain[:at]).operands))]
    for file in _after_first(operands):
        apply_role("read", file, site)
    if arguments.has("-f", "--from-file"):
        raise NotKnown("a jq program in a file, which may read others")
    if operands and (not isinstance(operands[0], str) or "#" in operands[0] or _AMBIENT.search(operands[0])):
        raise NotKnown("a jq program that may read the environment or other files")
    return None


def _without_pairs(words: list[Word], site: CommandSite) -> list[Word]:
    plain: list[Word] = []
    at = 0
    end = words.index("--") if "--" in words else len(words)
    while at < end:
        word = words[at]
        if isinstance(word, str) and word in _PAIRS:
            values = words[at + 1 : at + 3]
            if len(values) < 2 or any(map(several, values)):
                raise NotKnown(f"{word} without two values that are one word each")
            if word not in ("--arg", "--argjson"):
                site.touch(EffectKind.READ, values[1])
            at += 3
            continue
        plain.append(word)
        at += 1
    return plain + words[at:]


def yq(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """A reading subcommand may precede the expression, which may itself read files."""
    if words and words[0] in ("eval", "e", "eval-all", "ea"):
        words = words[1:]
    arguments = read(spec, words)
    expression = arguments.operands[0] if arguments.operands else ""
    if not isinstance(expression, str) or _ELSEWHERE.search(expression):
        raise NotKnown("a yq expression that reads elsewhere")
    if _PLAIN.fullmatch(expression):
        # If there is a file of that name, it is read instead.
        apply_role("read", expression, site)
    return apply_spec(spec, words, site)


def fd(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    at = next((index for index, word in enumerate(words) if isinstance(word, str) and word in _EXECUTES), len(words))
    arguments = read(spec, words[:at])
    apply_flags(spec, arguments, site)
    named = [value for flag, value in arguments.flags if flag == "--search-path" and value is not None]
    roots = [*_after_first(arguments.operands), *named]
    for root in roots or ["."]:
        site.touch(EffectKind.READ, root, Reach.NAMES)
    found = None if arguments.has("--base-directory") else listed_paths(roots, site, nuls=arguments.has(*spec.nuls))
    found = found and found._replace(below=with_secrets(found.below, targeted_secrets(_searched_names(arguments))))
    if at < len(words):
        if arguments.has("--base-directory"):
            raise NotKnown("fd that runs a command in another directory")
        one = words[at] in ("-x", "--exec")
        _run_each(words[at + 1 :], Dynamic(single=one, each=not one, below=found and found.below), site.scope, site)
    if arguments.has("-l", "--list-details"):
        site.findings.effects.append(Effect(EffectKind.EXEC, "ls"))
    return None if at < len(words) or arguments.has(*spec.rewrites) else found


def _searched_names(arguments: Arguments) -> list[str]:
    """The names that fd searches for: by a regular expression, a glob or an extension."""
    ends = [f"*.{shown(value)}" for flag, value in arguments.flags if flag in ("-e", "--extension") and value]
    wanted = [word for word in arguments.operands[:1] if isinstance(word, str)]
    if arguments.has("-g", "--glob"):
        return ends + wanted
    return ends + [glob for word in wanted for glob in globs_of(word, anchored=False)]


def _run_each(command: list[Word], found: Dynamic, scope: ShellScope, site: CommandSite) -> None:
    if not command or any(word == ";" for word in command[:-1]):
        raise NotKnown("fd without a plain command to run")
    if not all(isinstance(word, str) for word in command):
        raise NotKnown("fd with a command that may end early")
    # Without its extension, the name `...x` is `..`.
    cut = found._replace(below=None)
    places = {"{}": found, "{/}": found, "{//}": found, "{.}": cut, "{/.}": cut}
    filled = [places.get(shown(word), word) for word in command if word != ";"]
    if any(isinstance(word, str) and "{" in word for word in filled):
        raise NotKnown("fd with a placeholder inside a word")
    given = any(isinstance(word, Dynamic) for word in filled)
    site.run(filled if given else [*filled, found], scope.copy(), None)


def variables(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Prints variables by name, or all of them; the same names are secret as in an expansion."""
    arguments = read(spec, words)
    if not arguments.operands:
        raise NotKnown(ALL_VARIABLES)
    for operand in arguments.operands:
        site.scope.value(shown(operand))
    return conclude(spec, arguments, site)


def fzf(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Options may also begin with a plus sign."""
    return apply_spec(spec, [word for word in words if word not in ("+x", "+i", "+s", "+m")], site)
