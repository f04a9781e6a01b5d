"""Handler of cloud CLIs: nouns, a reading verb, names and flags.

The known flags are those of the whole program and those of the group that the first noun names.
"""

import re
from typing import NamedTuple

from toolreeve.core.effects import Effect, EffectKind
from toolreeve.policy.shell.interpret.expansion import Dynamic, Glob, Word, may_be_flag, shown
from toolreeve.policy.shell.interpret.findings import CommandSite
from toolreeve.policy.shell.interpret.printed_paths import Printed
from toolreeve.policy.shell.programs.arguments import NotKnown
from toolreeve.policy.shell.programs.roles import apply_role
from toolreeve.policy.shell.programs.spec import Program
from toolreeve.policy.shell.programs.spec_check import housekeeping

_NAME = re.compile(r"[a-z][a-z0-9-]*")


class _Sorted(NamedTuple):
    """`names` stand before the first flag of the group, `places` after it."""

    names: list[str]
    places: list[str]
    flags: set[str]


def verbs(spec: Program, words: list[Word], site: CommandSite) -> Printed:
    found = _sort(spec, words, site)
    path = " ".join(found.names + found.places)
    if re.search(spec.data["refused"], path):
        raise NotKnown(f"`{spec.name} {path}` shows secrets or changes something")
    if not _asks(found):
        _check_verb(spec, found.names)
    if len(found.names) + len(found.places) > spec.data["nouns"] and not _takes_names(spec, path):
        raise NotKnown(f"`{(found.places or found.names)[-1]}`, which may be a file to write")
    housekeeping(spec, site)
    site.findings.effects.append(Effect(EffectKind.NET, spec.net))
    return None


def _takes_names(spec: Program, path: str) -> bool:
    return "places" not in spec.data or re.fullmatch(spec.data["places"], path) is not None


def _asks(found: _Sorted) -> bool:
    """Whether it asks for help or the version, which need no verb; nothing like a value may precede them."""
    names = found.names
    plain = all(_NAME.fullmatch(name) for name in names)
    asked = {"--help", "-h"} & found.flags or names[-1:] == ["help"] or ("--version" in found.flags and not names)
    return plain and bool(asked)


def _check_verb(spec: Program, names: list[str]) -> None:
    reading = re.compile(spec.data["reading"])
    changing = re.compile(spec.data["changing"])
    for name in names[: spec.data["nouns"]]:
        if reading.fullmatch(name):
            return
        if not _NAME.fullmatch(name) or changing.fullmatch(name):
            break
    raise NotKnown(f"`{spec.name} {' '.join(names)}` is not known to only read")


def _sort(spec: Program, words: list[Word], site: CommandSite) -> _Sorted:
    found = _Sorted([], [], set())
    table = spec
    pending = words[::-1]
    while pending:
        word = pending.pop()
        if isinstance(word, str) and word.startswith("-"):
            found.flags.add(_take(table, word, pending, site))
            continue
        if may_be_flag(word):
            raise NotKnown(f"`{shown(word)}` may expand to a flag")
        if table is spec:
            table = spec.sub(shown(word)) or spec
        known_everywhere = found.flags <= spec.flags.keys()
        target = found.names if known_everywhere else found.places
        target.append(shown(word))
        apply_role("cloud", word, site)
    return found


def _take(table: Program, word: str, pending: list[Word], site: CommandSite) -> str:
    """Take the flag's values from the pending words; answers its name."""
    name, equals, value = word.partition("=")
    role = table.flags.get(name)
    if role is None or name in table.refused or (equals and not role):
        raise NotKnown(f"the flag {name}")
    if equals:
        apply_role(_meaning(role), value, site)
    elif role:
        _take_values(name, role, pending, site)
    return name


def _take_values(name: str, role: str, pending: list[Word], site: CommandSite) -> None:
    """One value, or as many words as follow where the flag takes many."""
    taken = 0
    while pending and (role == "many" or not taken):
        value = pending[-1]
        if isinstance(value, str) and value.startswith("-") and taken:
            break
        if isinstance(value, Glob) or (isinstance(value, Dynamic) and not value.single):
            raise NotKnown(f"the value of {name} may be several words")
        if role == "many" and isinstance(value, Dynamic) and taken and may_be_flag(value):
            raise NotKnown(f"`{shown(value)}` may expand to a flag")
        apply_role(_meaning(role), pending.pop(), site)
        taken += 1
    if not taken:
        raise NotKnown(f"{name} without its value")


def _meaning(role: str) -> str:
    """Any text may name a file to be read, by a prefix."""
    return "cloud" if role in ("text", "many") else role
