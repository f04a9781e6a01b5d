"""Which code does an interpreter run? A file or a listed module of the workspace's; never text or standard input."""

import re

from toolreeve.policy.shell.arguments import NotKnown, RunsCode, read
from toolreeve.policy.shell.judging import settle_flags
from toolreeve.policy.shell.printing import Printed
from toolreeve.policy.shell.roles import apply
from toolreeve.policy.shell.site import Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Word, shown


def python(spec: Program, words: list[Word], site: Site) -> Printed:
    """What follows `-m module` or the name of a file is for that module or file."""
    if any(isinstance(word, str) and re.match(r"-[A-Za-z]*c", word) for word in words[: _first_operand(words)]):
        raise NotKnown(f"`{spec.name} -c` runs code that is given as text")
    at = words.index("-m") if "-m" in words else len(words)
    arguments = read(spec, words[:at])
    settle_flags(spec, arguments, site)
    if arguments.operands:
        apply("script", arguments.operands[0], site)
        raise RunsCode(f"runs {shown(arguments.operands[0])}, code of the workspace")
    if at < len(words):
        return _module(spec, words[at + 1 :], site)
    if not arguments.has("-V", "--version", "-h", "--help"):
        raise NotKnown(f"`{spec.name}` would run code from its input; name a file")
    return None


def _first_operand(words: list[Word]) -> int:
    return next((at for at, word in enumerate(words) if not isinstance(word, str) or word[:1] != "-"), len(words))


def _module(spec: Program, words: list[Word], site: Site) -> Printed:
    """Modules are looked for in the current directory first, so any of them may be the workspace's own."""
    name = words[0] if words else ""
    own = spec.sub(name) if isinstance(name, str) else None
    if own is not None:
        site.judge(own, words[1:])
    elif name in spec.data["modules"].split():
        site.run(words, site.scope, site.piped)
    else:
        raise NotKnown(f"the module `{shown(name)}`")
    raise RunsCode(f"runs the module {shown(name)}, which may be code of the workspace")
