"""Small handlers: programs whose operands differ by their form."""

import re

from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind, Reach
from toolreeve.policy.shell.interpret.expansion import Word, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import NOTHING, Printed
from toolreeve.policy.shell.programs.arguments import NotKnown, read
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import apply_flags, apply_spec, conclude, printed_name

_STAMP = re.compile(r"\+%[FTYmdHMSsjuVN](?:%[FTYmdHMSsjuVN]|[-_.:])*")
_PATCHED = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+)$", re.MULTILINE)
_LISTING = frozenset("show list ls lst get sh li l monitor".split())

_MAY_BE_SECRETS = re.compile(r"\Asecrets?(?:$|[./])|[…*?\\[]")
_SHOWN_BRIEFLY = frozenset("a addr address r ro route n neigh neighbor neighbour".split())
"""Objects for which `s` is short for `show`; for a link it would be `set`."""


def date(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """A `+format` prints; any other operand would set the clock."""
    arguments = read(spec, words)
    for operand in arguments.operands:
        if not isinstance(operand, str) or not operand.startswith("+"):
            raise NotKnown(f"`date {shown(operand)}` may set the clock")
    apply_flags(spec, arguments, site)
    return printed_name(site) if len(arguments.operands) == 1 and _STAMP.fullmatch(str(arguments.operands[0])) else None


def computes(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Whatever its arguments, it only prints a result."""
    return None


def dd(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    for word in words:
        if not isinstance(word, str):
            raise NotKnown(f"`dd {shown(word)}`")
        key, _, value = word.partition("=")
        match key:
            case "if":
                apply_role("read", value, site)
            case "of":
                apply_role("write", value, site)
            case "bs" | "ibs" | "obs" | "cbs" | "count" | "skip" | "seek" | "status" | "conv" | "iflag" | "oflag":
                pass
            case _:
                raise NotKnown(f"`dd {word}`")
    return None


def apply_patch(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Changes the files that the patch's headers name; the patch is its argument, or a heredoc of the command."""
    if not all(isinstance(word, str) for word in words) or len(words) > 1:
        raise NotKnown("a patch decided only when it runs")
    headers = _PATCHED.findall(str(words[0]) if words else site.findings.source)
    if not headers:
        raise NotKnown("a patch that is not shown")
    for task, path in headers:
        site.touch(EffectKind.DELETE if task == "Delete File" else EffectKind.WRITE, path.strip())
    return None


def remove(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    arguments = read(spec, words)
    tree = arguments.has("-r", "-R", "--recursive")
    if not arguments.operands:
        raise NotKnown("rm without a path")
    for operand in arguments.operands:
        site.touch(EffectKind.DELETE, operand, Reach.BELOW if tree else Reach.EXACT)
    if arguments.has("--no-preserve-root"):
        site.findings.alarm(DangerLevel.CRITICAL, "asks to delete the root directory")
    return conclude(spec, arguments, site)


def ip(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """`ip object` and `ip object show …` read; any other verb changes the network."""
    arguments = read(spec, words)
    texts = [word if isinstance(word, str) else "…" for word in arguments.operands]
    if not texts:
        return None
    if texts[0] not in spec.data["objects"].split():
        raise NotKnown(f"`ip {texts[0]}`")
    brief = texts[1:2] == ["s"] and texts[0] in _SHOWN_BRIEFLY
    if len(texts) > 1 and not brief and texts[1] not in _LISTING and texts[1] not in spec.data["verbs"].split():
        raise NotKnown(f"`ip {texts[0]} {texts[1]}`")
    if {"exec", "add", "del", "delete", "set", "flush", "replace", "change", "append", "file"}.intersection(texts[1:]):
        raise NotKnown(f"`ip {' '.join(texts)}`")
    return None


def kubectl_get(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Secrets are listed, not shown: an output format would print them."""
    arguments = read(spec, words)
    texts = [shown(word).lower() for word in arguments.operands]
    kinds = [kind for text in texts for kind in text.split(",")]
    secret = any(map(_MAY_BE_SECRETS.search, kinds)) or arguments.has("-f", "--filename", "-k")
    formats = [value for flag, value in arguments.flags if flag in ("-o", "--output")]
    if any(not isinstance(value, str) for value in (*formats, *arguments.operands)) and secret:
        raise NotKnown("kubectl get with words decided only when it runs")
    if secret and (arguments.has("--template") or any(value not in ("name", "wide") for value in formats)):
        raise NotKnown("prints the values of secrets")
    for value in formats:
        if isinstance(value, str) and "-file" in value:
            raise NotKnown("a template in a file")
    return conclude(spec, arguments, site)


def one_task(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Of several tasks the last one counts: it is known only with one."""
    arguments = read(spec, words)
    names = spec.data["verbs"].split()
    tasks = {flag.lstrip("-")[0] for flag, _ in arguments.flags if flag in names}
    if len(tasks) > 1:
        raise NotKnown(f"`{spec.name}` with several tasks")
    return apply_spec(spec, words, site)


def second_verb(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    place: Word = words[0] if len(words) > 1 else ""
    verb: Word = words[1] if len(words) > 1 else ""
    if ".." in shown(place) or not isinstance(verb, str) or not re.fullmatch(spec.data["verbs"], verb):
        raise NotKnown(f"`{spec.name} … {shown(verb)}`")
    return None


def unfed(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """Sends its standard input, so there must be none."""
    if site.piped != NOTHING:
        raise NotKnown(f"`{spec.name}` sends what is piped into it")
    return apply_spec(spec, words, site)


def dashed_verb(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    """The first word is the verb, with a dash."""
    verb = words[0] if words else ""
    if not isinstance(verb, str) or not re.fullmatch(spec.data["verbs"], verb):
        raise NotKnown(f"`{spec.name} {shown(verb)}`")
    if any(word != verb and isinstance(word, str) and word.startswith("-") for word in words):
        raise NotKnown(f"several verbs of `{spec.name}`")
    return None
