"""What does a shell run that is itself given as text? `bash -c 'text'` is analysed as a script of its own."""

import re

from toolreeve.policy.shell.arguments import NotKnown, read
from toolreeve.policy.shell.judging import settle_flags
from toolreeve.policy.shell.site import Printed, Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Word

_SAME_IN_ALL = re.compile(r"[\w./-][\w\s./:,@%+'-]*")


def shell(spec: Program, words: list[Word], site: Site) -> Printed:
    """Only `-c` with fixed text; a script file, standard input or an interactive shell may do anything."""
    arguments = read(spec, words)
    settle_flags(spec, arguments, site)
    if arguments.has("--version", "--help") and not arguments.operands:
        return None
    if not arguments.has("-c") or not arguments.operands:
        raise NotKnown(f"`{spec.name}` runs commands that are not shown")
    text = arguments.operands[0]
    if not isinstance(text, str):
        raise NotKnown(f"`{spec.name} -c` with text decided only when it runs")
    if spec.name in ("zsh", "ksh") and not _SAME_IN_ALL.fullmatch(text):
        raise NotKnown(f"text that {spec.name} may read otherwise than bash")
    scope = site.scope.copy()
    scope.variables = {}
    for index, value in enumerate(arguments.operands[1:10]):
        scope.variables[str(index)] = value
    if len(arguments.operands) > 2:
        scope.variables["@"] = scope.variables["*"] = arguments.operands[2]
    return site.run_text(text, scope)


def watch(spec: Program, words: list[Word], site: Site) -> Printed:
    """Joins its words with blanks and gives the text to a shell, again and again."""
    arguments = read(spec, words)
    if not arguments.operands:
        raise NotKnown("`watch` without a command")
    if arguments.has("-x", "--exec"):
        return site.run(arguments.operands, site.scope, None)
    texts = [word for word in arguments.operands if isinstance(word, str)]
    if len(texts) != len(arguments.operands):
        raise NotKnown("`watch` with words decided only when it runs")
    return site.run_text(" ".join(texts), site.scope.copy())
