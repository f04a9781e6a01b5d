"""Handler of language interpreters: files and listed modules of the workspace.

Code as text or from standard input is never known.
"""

import re

from toolreeve.policy.shell.interpret.expansion import Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import NotKnown, RunsCode, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags


def python(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Words after `-m module` or a file are arguments of that module or file."""
    if any(isinstance(word, str) and re.match(r"-[A-Za-z]*c", word) for word in words[: _first_operand(words)]):
        raise NotKnown(f"`{spec.name} -c` runs code that is given as text")
    at = words.index("-m") if "-m" in words else len(words)
    arguments = read(spec, words[:at])
    apply_flags(spec, arguments, site)
    if arguments.operands:
        apply_role("script", arguments.operands[0], site)
        raise RunsCode(f"runs {shown(arguments.operands[0])}, code of the workspace")
    if at < len(words):
        return _module(spec, words[at + 1 :], site)
    if not arguments.has("-V", "--version", "-h", "--help"):
        raise NotKnown(f"`{spec.name}` would run code from its input; name a file")
    return None


def _first_operand(words: list[Word]) -> int:
    return next((at for at, word in enumerate(words) if not isinstance(word, str) or word[:1] != "-"), len(words))


def _module(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Modules are searched in the current directory first, so any of them may be the workspace's own."""
    name = words[0] if words else ""
    own = spec.sub(name) if isinstance(name, str) else None
    if own is not None:
        site.run_program(own, words[1:])
    elif name in spec.data["modules"].split():
        site.run(words, site.scope, site.piped)
    else:
        raise NotKnown(f"the module `{shown(name)}`")
    raise RunsCode(f"runs the module {shown(name)}, which may be code of the workspace")
