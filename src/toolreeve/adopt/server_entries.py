"""How do servers leave a client's file, and how do they come back? One entry of ours stands there in between.

A text is handed out only if it says exactly what was meant, which is checked on the text itself: what was taken or put
back, our entry, and everything else as it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.adopt.client_files import Adoptable, ClientFile, starts
from toolreeve.adopt.clients import KeyPath
from toolreeve.adopt.comments import toml_lines
from toolreeve.adopt.json_edit import Swap, swapped, written_parts
from toolreeve.adopt.json_layout import Fresh
from toolreeve.adopt.toml_edit import with_tables_back, without_tables
from toolreeve.adopt.undo_facts import Taken
from toolreeve.config.jsonc import BOM, json_document, parse_jsonc, plain
from toolreeve.config.mcp_servers.reader import is_ourselves
from toolreeve.core.documents import parse_toml
from toolreeve.core.errors import ConfigError

OURS = "toolreeve"
Comments = Mapping[tuple[KeyPath, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A client's file without its servers. `comments` are those that belonged to them, as lines of TOML."""

    text: str
    comments: Comments
    reversal: Taken


def take_servers(found: ClientFile, command: Sequence[str]) -> Left:
    """One entry of ours in the text, and none of the servers that can be taken over. Raises ConfigError where it cannot
    be changed so that everything else stays."""
    gone = _gone(found.adoptable)
    home = found.client.sections[0]
    entry = None if home in found.ours else _entry(found, home, command)
    if entry is not None and any(kept.section == home and kept.key == OURS for kept in found.kept):
        raise ConfigError(f"has another server called {OURS!r} that cannot be taken over", source=found.place.path)
    if why := starts(found.client, found.value, OURS):
        raise ConfigError(
            f"would not start {OURS!r}: {why}", source=found.place.path, fix="change that and run it again"
        )
    reversal = Taken(format=found.client.format, servers=tuple(gone.items()), entry=None if entry is None else home)
    try:
        text, comments = _without(found, gone, home, entry)
    except ConfigError as problem:
        raise ConfigError(problem.problem, source=found.place.path, fix=problem.fix) from None
    told = {where: toml_lines(texts) for where, texts in comments.items() if texts}
    return Left(text=text, comments=told, reversal=reversal)


def _gone(adoptable: Sequence[Adoptable]) -> dict[KeyPath, tuple[str, ...]]:
    gone: dict[KeyPath, tuple[str, ...]] = {}
    for each in adoptable:
        gone[each.section] = (*gone.get(each.section, ()), each.key)
    return gone


def _entry(found: ClientFile, section: KeyPath, command: Sequence[str]) -> dict[str, Any]:
    entry = {**found.client.entry, "command": command[0], "args": list(command[1:])}
    siblings = _at(found.value, section)
    named = any("source" in each for each in siblings.values() if isinstance(each, Mapping))
    return {key: value for key, value in entry.items() if key != "source" or named}


def _without(
    found: ClientFile, gone: Mapping[KeyPath, tuple[str, ...]], home: KeyPath, entry: Mapping[str, Any] | None
) -> tuple[str, Comments]:
    if found.client.format == "toml":
        text, told = without_tables(found.text, home[0], gone.get(home, ()), entry)
        return text, {(home, name): texts for name, texts in told.items()}
    new = () if entry is None else (Fresh(key=OURS, value=entry),)
    swaps = [
        Swap(section=section, out=gone.get(section, ()), new=new if section == home else ())
        for section in {home: None, **gone}
    ]
    changed, comments = swapped(found.text, swaps)
    wanted: Mapping[str, Any] = found.value
    for swap in swaps:
        left = {key: value for key, value in _at(found.value, swap.section).items() if key not in swap.out}
        wanted = _put(wanted, swap.section, {**left, **{each.key: dict(each.value) for each in new if swap.new}})
    _require(changed, wanted)
    return changed, comments


def put_servers_back(now: str, before: str, taken: Taken) -> tuple[str, list[str]]:
    """The text as it is now with the servers as they were before and without our entry; and the keys that somebody
    has given to others since, which stay as they are. Raises ConfigError where that cannot be done."""
    was, value = _value(before, taken), _value(now, taken)
    returns = [_return(was, value, taken, section, keys) for section, keys in _sections(taken).items()]
    changed = (_tables_back if taken.format == "toml" else _parts_back)(now, before, value, returns)
    return changed, [key for each in returns for key in each.theirs]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Return:
    """What happens in one section: `back` comes, ours goes if it is there, and `theirs` stays."""

    section: KeyPath
    back: Mapping[str, Any]
    theirs: tuple[str, ...]
    left: Mapping[str, Any]
    has_ours: bool


def _return(
    was: Mapping[str, Any], value: Mapping[str, Any], taken: Taken, section: KeyPath, keys: Sequence[str]
) -> _Return:
    old, there = _at(was, section), _at(value, section)
    entry = there.get(OURS)
    has_ours = section == taken.entry and isinstance(entry, Mapping) and is_ourselves(entry)
    left = {key: each for key, each in there.items() if not (has_ours and key == OURS)}
    back = {key: old[key] for key in keys if key in old and key not in left}
    theirs = tuple(key for key in keys if key in left and left[key] != old.get(key))
    return _Return(section=section, back=back, theirs=theirs, left=left, has_ours=has_ours)


def _tables_back(now: str, before: str, _value: Mapping[str, Any], returns: Sequence[_Return]) -> str:
    for each in returns:
        now = with_tables_back(now, before, each.section[0], list(each.back), gone=OURS if each.has_ours else None)
    return now


def _parts_back(now: str, before: str, value: Mapping[str, Any], returns: Sequence[_Return]) -> str:
    root = parse_jsonc(before, "")
    changing = [each for each in returns if each.back or each.has_ours]
    swaps = [
        Swap(
            section=each.section,
            out=(OURS,) if each.has_ours else (),
            new=tuple(written_parts(before, root, each.section, list(each.back))),
            comments_stay=True,
        )
        for each in changing
    ]
    changed, _ = swapped(now, swaps)
    for each in changing:
        value = _put(value, each.section, {**each.left, **each.back})
    _require(changed, value)
    return changed


def _value(text: str, taken: Taken) -> Mapping[str, Any]:
    document = (parse_toml if taken.format == "toml" else json_document)(text.removeprefix(BOM), "")
    value = document.value or {}
    if not isinstance(value, Mapping):
        raise ConfigError("does not hold an object", source="", line=1)
    for section in _sections(taken):
        if not isinstance(_at(value, section), Mapping):
            raise document.error("is not a table of servers", path=section)
    return value


def _sections(taken: Taken) -> dict[KeyPath, tuple[str, ...]]:
    """The keys that were taken, by section; ours may stand in one that none was taken from."""
    return {**({} if taken.entry is None else {taken.entry: ()}), **dict(taken.servers)}


def _require(changed: str, wanted: Mapping[str, Any]) -> None:
    try:
        fits = plain(parse_jsonc(changed, "")) == wanted
    except ConfigError:
        fits = False
    if not fits:
        raise ConfigError("is written in a way that cannot be changed safely", source="")


def _at(value: Mapping[str, Any], path: KeyPath) -> Any:
    found: Any = value
    for key in path:
        found = found.get(key, {}) if isinstance(found, Mapping) else None
    return found


def _put(value: Mapping[str, Any], path: KeyPath, inner: Any) -> Mapping[str, Any]:
    if not path:
        return inner  # type: ignore[no-any-return]
    return {**value, path[0]: _put(value.get(path[0], {}), path[1:], inner)}
