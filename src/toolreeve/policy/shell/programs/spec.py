"""Program specifications: flags, operands, and what is done with them.

They are written as the YAML files in `programs/`, one a family, and compiled into one JSON file that loads in a few
milliseconds. A flag that is not listed is not known: there are no abbreviations and no guesses.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pkgutil import get_data
from typing import Any

from toolreeve.core import json
from toolreeve.core.errors import ToolreeveError

ROLES = frozenset(
    "text many read list deep script write delete deltree url host upload revision cloud move bind database replace "
    "parents tree server connection remote publish image release project aim output".split()
)
"""The roles of values; `roles` has the effect of each."""

FIELDS = ROLES | frozenset(
    "absent also asks calm changing code contents danger default does everywhere filters flags harmless help judge "
    "keeps listing matches maybe modes modules names net never not_matches nouns nuls number obeys objects operands "
    "places prefixes prints reading reason refused requires rewrites runs sends single skip statement stops sub "
    "supposed tells unlike verbs".split()
)
_FOLLOWING = frozenset("danger does keeps modes requires runs sends unlike".split())
"""Fields about the command as a whole, besides its flags and operands."""
_FLAG_ROLES = {"flags": "", "maybe": "text"}
"""Roles of the values of flags that are listed under another field than a role."""
_READING = frozenset("text many read list deep aim".split())
_CHANGING = frozenset("code danger does net requires sends sub".split())
_DESCRIBING = frozenset(("--help", "--version"))
_MOST_SUBS = 256
_SHORTS = re.compile(r"-[A-Za-z0-9?#@%]+")


class Program:
    """The specification of one program or subcommand."""

    __slots__ = (
        "absent",
        "calm",
        "code",
        "dashed",
        "data",
        "does",
        "everywhere",
        "filters",
        "flags",
        "follows",
        "handler",
        "harmless",
        "keeps",
        "maybe",
        "modes",
        "name",
        "names",
        "net",
        "nuls",
        "number",
        "obeys",
        "operands",
        "prefixes",
        "prints",
        "refused",
        "requires",
        "rewrites",
        "runs",
        "single",
        "stops",
        "subs",
        "supposed",
        "tells",
        "unlike",
    )

    def __init__(self, name: str, data: Mapping[str, Any], parent: "Program | None" = None) -> None:
        self.name = name
        self.data = data
        inherited = parent is not None and parent.everywhere
        self.everywhere: bool = data.get("everywhere", inherited)
        self.single: bool = bool(data.get("single", parent.single if parent is not None else False))
        self.flags: dict[str, str] = dict(parent.flags) if inherited and parent is not None else {}
        self.maybe: set[str] = set(parent.maybe) if inherited and parent is not None else set()
        self._read_flags(data)
        self.operands: tuple[str, ...] = tuple(data.get("operands", "").split())
        self.absent: tuple[str, ...] = tuple(data.get("absent", "").split())
        self.does: tuple[str, ...] = tuple(data.get("does", "").split())
        above = parent if inherited else None
        self.harmless: bool | str = data.get("harmless", False)
        self.supposed: tuple[str, ...] = tuple(self._names(data.get("supposed", "")))
        never = frozenset(self._names(data.get("never", "")))
        self.refused: frozenset[str] = never | above.refused if above else never
        self.net: str = data.get("net", above.net if above else "")
        self.names: bool = data.get("names", False)
        self.prefixes: tuple[str, ...] = tuple(data.get("prefixes", "").split())
        self.requires = frozenset(self._names(data.get("requires", "")))
        self.code: str = data.get("code", "")
        self.calm = frozenset(self._names(data.get("calm", "")))
        self.tells = frozenset(data.get("tells", "").split())
        if not self.code:
            self.tells |= _DESCRIBING & self.flags.keys()
        self.unlike = re.compile(data["unlike"]) if "unlike" in data else None
        self.number: bool = data.get("number", False)
        self.obeys: str = data.get("obeys", "")
        self.stops: bool = data.get("stops", "sub" in data)
        self.handler: str = data.get("judge", "")
        self.prints: str = data.get("prints", "")
        self.filters: str = data.get("filters", "")
        self.nuls: tuple[str, ...] = tuple(self._names(data.get("nuls", "")))
        self.rewrites: tuple[str, ...] = tuple(self._names(data.get("rewrites", "")))
        self.keeps: tuple[str, ...] = tuple(data.get("keeps", "").split())
        self.runs: tuple[str, ...] = tuple(data.get("runs", "").split())
        self.modes = {flag: mode for key, mode in data.get("modes", {}).items() for flag in self._names(key)}
        self.follows = bool(self.net) or not _FOLLOWING.isdisjoint(data)
        self.subs: dict[str, Program] = {}
        self.dashed = frozenset(name for key in data.get("sub", ()) for name in key.split() if name[0] == "-")

    @property
    def reads(self) -> bool:
        """Whether it only reads by its nature: not one of its operands is more than read, though a flag may be."""
        operands = {operand.rstrip("*?+") for operand in self.operands}
        plain = bool(self.harmless) or not self.handler
        return plain and bool(operands) and operands <= _READING and _CHANGING.isdisjoint(self.data)

    def refuses(self, word: str) -> bool:
        """Whether a word may make the program do something else than its name says: also one of a `never` flag that is
        abbreviated, or among others (`-kE`)."""
        name = word.partition("=")[0]
        if self.unlike is not None and self.unlike.search(word):
            return True
        if name[:2] == "--":
            return len(name) > 2 and any(flag.startswith(name) for flag in self.refused)
        if self.single:
            return name in self.refused
        return name[:1] == "-" and any(flag[1] in name for flag in self.refused if len(flag) == 2)

    def _read_flags(self, data: Mapping[str, Any]) -> None:
        for field, listed in data.items():
            if field in ("flags", "maybe") or field in ROLES:
                role = _FLAG_ROLES.get(field, field)
                names = self._names(listed)
                self.flags.update(dict.fromkeys(names, role))
                if field == "maybe":
                    self.maybe.update(names)

    def _names(self, listed: str) -> list[str]:
        names: list[str] = []
        for token in listed.split():
            if not self.single and _SHORTS.fullmatch(token):
                names.extend("-" + char for char in token[1:])
            else:
                names.append(token)
        return names

    def sub(self, name: str) -> "Program | None":
        """The subcommand by name, or else by pattern."""
        found = self.subs.get(name) or self._find_sub(name)
        if found is not None and len(self.subs) < _MOST_SUBS:
            self.subs[name] = found
        return found

    def _find_sub(self, name: str) -> "Program | None":
        patterns: list[tuple[str, Any]] = []
        for key, data in self.data.get("sub", {}).items():
            names = key.split()
            if name in names:
                return Program(f"{self.name} {names[0]}", data or {}, self)
            patterns.extend((pattern, data) for pattern in names if "*" in pattern)
        for pattern, data in patterns:
            if fnmatchcase(name, pattern):
                return Program(f"{self.name} {name}", data or {}, self)
        return None


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    compiled = get_data("toolreeve.policy.shell.programs", "compiled.json")
    if compiled is None:
        raise ToolreeveError("programs/compiled.json is missing from the installation: reinstall the package")
    table: Mapping[str, Mapping[str, Any]] = json.loads(compiled)
    return table


def program(name: str) -> Program | None:
    return _program(name) if name in _table() else None


@lru_cache(maxsize=1024)
def _program(name: str) -> Program:
    return Program(name, _table()[name])


def names() -> list[str]:
    return sorted(_table())
