"""Does a cloud command only read? Its words are groups of nouns, then a verb that says so, then names and flags."""

import re

from toolreeve.core.effects import Effect, EffectKind
from toolreeve.policy.shell.arguments import NotKnown
from toolreeve.policy.shell.roles import apply
from toolreeve.policy.shell.site import Site
from toolreeve.policy.shell.specs import Program
from toolreeve.policy.shell.words import Word, shown

_NAME = re.compile(r"[a-z][a-z0-9-]*")


def verbs(spec: Program, words: list[Word], site: Site) -> tuple[str, ...] | None:
    names, flags = _sort(spec, words, site)
    path = " ".join(names)
    if re.search(spec.data["refused"], path):
        raise NotKnown(f"`{spec.name} {path}` shows secrets or changes something")
    if not _asks(names, flags):
        _check_verb(spec, names)
    site.findings.effects.append(Effect(EffectKind.NET, spec.net))
    return None


def _asks(names: list[str], flags: set[str]) -> bool:
    """Help and version need no verb; nothing that looks like a value may stand before them."""
    plain = all(_NAME.fullmatch(name) for name in names)
    asked = {"--help", "-h"} & flags or names[-1:] == ["help"] or ("--version" in flags and not names)
    return plain and bool(asked)


def _check_verb(spec: Program, names: list[str]) -> None:
    reading, changing = re.compile(spec.data["reading"]), re.compile(spec.data["changing"])
    for name in names[: spec.data["nouns"]]:
        if reading.fullmatch(name):
            return
        if not _NAME.fullmatch(name) or changing.fullmatch(name):
            break
    raise NotKnown(f"`{spec.name} {' '.join(names)}` is not known to only read")


def _sort(spec: Program, words: list[Word], site: Site) -> tuple[list[str], set[str]]:
    """Names come before the values of flags; a listed flag takes one value, any other as many words as follow."""
    names: list[str] = []
    flags: set[str] = set()
    current, taken = "", 0
    for word in words:
        if isinstance(word, str) and word.startswith("-"):
            current, taken = _flag(spec, word, site), 0
            flags.add(word.partition("=")[0])
            continue
        if not current:
            names.append(shown(word))
        taken += 1
        if (
            taken > 1
            and current.startswith("--")
            and not current.endswith("s")
            and names[1:2]
            and names[1].startswith("get-")
        ):
            raise NotKnown(f"`{shown(word)}` after {current} may be a file to write")
        apply("cloud", word, site)
        if spec.flags.get(current) == "text":
            current = ""
    return names, flags


def _flag(spec: Program, word: str, site: Site) -> str:
    """The flag whose values follow, or nothing when it takes none or has it already."""
    name, equals, value = word.partition("=")
    if name in spec.refused or not re.fullmatch(r"--?[A-Za-z][A-Za-z0-9-]*", name):
        raise NotKnown(f"the flag {name}")
    if equals:
        apply("cloud", value, site)
        return ""
    return "" if spec.flags.get(name) == "" else name
