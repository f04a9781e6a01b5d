"""Replaces the servers in a client's file by ours, and back.

A text is returned only if it says exactly what is intended, which is verified on the text itself: what was removed or
restored, our entry, and everything else unchanged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.adopt.client_files import Adoptable, ClientFile, why_not_started
from toolreeve.adopt.clients import KeyPath
from toolreeve.adopt.comments import toml_lines
from toolreeve.adopt.json_edit import Swap, apply_swaps, member_texts
from toolreeve.adopt.json_style import NewMember
from toolreeve.adopt.reversal import ServersTaken
from toolreeve.adopt.toml_edit import with_tables_back, without_tables
from toolreeve.adopt.yaml_edit import with_entries_back, without_entries
from toolreeve.config.jsonc import BOM, json_document, parse_jsonc, plain
from toolreeve.config.mcp_servers.reader import is_ourselves
from toolreeve.core.documents import parse_toml, parse_yaml
from toolreeve.core.errors import ConfigError

OURS = "toolreeve"
Comments = Mapping[tuple[KeyPath, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remainder:
    """A client's file without its servers. `comments` are those of the servers, as TOML lines."""

    text: str
    comments: Comments
    reversal: ServersTaken


def take_servers(found: ClientFile, command: Sequence[str]) -> Remainder:
    """The text with our entry and without the adoptable servers. Raises ConfigError if that is not possible with
    everything else unchanged."""
    removed = _keys_by_section(found.adoptable)
    home = found.client.sections[0]
    entry = None if home in found.ours else _entry(found, home, command)
    if entry is not None and any(kept.section == home and kept.key == OURS for kept in found.kept):
        raise ConfigError(f"has another server named {OURS!r} that cannot be adopted", source=found.place.path)
    why = why_not_started(found.client, found.value, OURS)
    if why:
        raise ConfigError(
            f"would not start {OURS!r}: {why}", source=found.place.path, fix="change that and run this again"
        )
    reversal = ServersTaken(
        format=found.client.format,
        servers=tuple(removed.items()),
        entry=None if entry is None else home,
    )
    try:
        text, comments = _replace_servers(found, removed, home, entry)
    except ConfigError as problem:
        raise ConfigError(problem.problem, source=found.place.path, fix=problem.fix) from None
    lines = {where: toml_lines(texts) for where, texts in comments.items() if texts}
    return Remainder(text=text, comments=lines, reversal=reversal)


def _keys_by_section(adoptable: Sequence[Adoptable]) -> dict[KeyPath, tuple[str, ...]]:
    keys: dict[KeyPath, tuple[str, ...]] = {}
    for each in adoptable:
        keys[each.section] = (*keys.get(each.section, ()), each.key)
    return keys


def _entry(found: ClientFile, section: KeyPath, command: Sequence[str]) -> dict[str, Any]:
    entry = {**found.client.entry, "command": command[0], "args": list(command[1:])}
    if found.client.format == "yaml":
        entry = {**found.client.entry, "cmd": command[0], "args": list(command[1:])}
    if found.client.command_list:
        entry = {**found.client.entry, "command": list(command)}
    siblings = _at(found.value, section)
    siblings_have_source = any("source" in each for each in siblings.values() if isinstance(each, Mapping))
    if not siblings_have_source:
        entry.pop("source", None)
    return entry


def _replace_servers(
    found: ClientFile, removed: Mapping[KeyPath, tuple[str, ...]], home: KeyPath, entry: Mapping[str, Any] | None
) -> tuple[str, Comments]:
    if found.client.format == "toml":
        text, removed_comments = without_tables(found.text, home[0], removed.get(home, ()), entry)
        return text, {(home, name): texts for name, texts in removed_comments.items()}
    if found.client.format == "yaml":
        ours = None if entry is None else (OURS, entry)
        return without_entries(found.text, home[0], removed.get(home, ()), ours), {}
    new = () if entry is None else (NewMember(key=OURS, value=entry),)
    swaps = [
        Swap(section=section, removed=removed.get(section, ()), new=new if section == home else ())
        for section in {home: None, **removed}
    ]
    changed, comments = apply_swaps(found.text, swaps)
    expected: Mapping[str, Any] = found.value
    for swap in swaps:
        inner = {key: value for key, value in _at(found.value, swap.section).items() if key not in swap.removed}
        if swap.new and entry is not None:
            inner[OURS] = entry
        expected = _put(expected, swap.section, inner)
    _require(changed, expected)
    return changed, comments


def restore_servers(now: str, before: str, taken: ServersTaken) -> tuple[str, list[str]]:
    """The current text with the former servers and without our entry; and the keys that were reassigned since, which
    stay as they are. Raises ConfigError if that is not possible."""
    old = _parse(before, taken)
    value = _parse(now, taken)
    restores = [_restore(old, value, taken, section, keys) for section, keys in _sections(taken).items()]
    if taken.format == "toml":
        changed = _restore_tables(now, before, restores)
    elif taken.format == "yaml":
        changed = now
        for each in restores:
            gone = OURS if each.has_ours else None
            changed = with_entries_back(changed, before, each.section[0], list(each.back), gone=gone)
    else:
        changed = _restore_members(now, before, value, restores)
    return changed, [key for each in restores for key in each.reassigned]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Restore:
    """The change of one section: `back` is inserted, our entry is removed if present, and `reassigned` stays."""

    section: KeyPath
    back: Mapping[str, Any]
    reassigned: tuple[str, ...]
    others: Mapping[str, Any]
    has_ours: bool


def _restore(
    old: Mapping[str, Any], value: Mapping[str, Any], taken: ServersTaken, section: KeyPath, keys: Sequence[str]
) -> _Restore:
    former = _at(old, section)
    others = dict(_at(value, section))
    entry = others.get(OURS)
    has_ours = (
        section == taken.entry and isinstance(entry, Mapping) and is_ourselves({"command": entry.get("cmd"), **entry})
    )
    if has_ours:
        del others[OURS]
    back = {key: former[key] for key in keys if key in former and key not in others}
    reassigned = tuple(key for key in keys if key in others and others[key] != former.get(key))
    return _Restore(section=section, back=back, reassigned=reassigned, others=others, has_ours=has_ours)


def _restore_tables(now: str, before: str, restores: Sequence[_Restore]) -> str:
    for each in restores:
        now = with_tables_back(now, before, each.section[0], list(each.back), gone=OURS if each.has_ours else None)
    return now


def _restore_members(now: str, before: str, value: Mapping[str, Any], restores: Sequence[_Restore]) -> str:
    root = parse_jsonc(before, "")
    changing = [each for each in restores if each.back or each.has_ours]
    swaps = [
        Swap(
            section=each.section,
            removed=(OURS,) if each.has_ours else (),
            new=tuple(member_texts(before, root, each.section, list(each.back))),
            keep_comments=True,
        )
        for each in changing
    ]
    changed, _ = apply_swaps(now, swaps)
    for each in changing:
        value = _put(value, each.section, {**each.others, **each.back})
    _require(changed, value)
    return changed


def _parse(text: str, taken: ServersTaken) -> Mapping[str, Any]:
    parse = {"toml": parse_toml, "yaml": parse_yaml, "json": json_document}[taken.format]
    document = parse(text.removeprefix(BOM), "")
    value = document.value or {}
    if not isinstance(value, Mapping):
        raise ConfigError("is not a JSON object", source="", line=1)
    for section in _sections(taken):
        if not isinstance(_at(value, section), Mapping):
            raise document.error("is not a table of servers", path=section)
    return value


def _sections(taken: ServersTaken) -> dict[KeyPath, tuple[str, ...]]:
    """The removed keys by section; ours may be in a section that none was removed from."""
    sections: dict[KeyPath, tuple[str, ...]] = {} if taken.entry is None else {taken.entry: ()}
    return sections | dict(taken.servers)


def _require(changed: str, expected: Mapping[str, Any]) -> None:
    try:
        is_expected = plain(parse_jsonc(changed, "")) == expected
    except ConfigError:
        is_expected = False
    if not is_expected:
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
