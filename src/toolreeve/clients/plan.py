"""What would adopting change? A list of files as they are and as they would be; nothing is written here.

A file is changed only if every other thing it says stays the same, which is checked on the new text itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.clients.json_edit import without_servers
from toolreeve.clients.known import Client, KeyPath, Place
from toolreeve.clients.naming import Names, Settled
from toolreeve.clients.sections import Adoptable, ClientFile, read_client_file
from toolreeve.clients.toml_edit import with_tables, without_tables
from toolreeve.config.jsonc import parse_jsonc, plain
from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError
from toolreeve.remote.configured.dialects import plain as in_our_words
from toolreeve.remote.configured.reading import entries, sections
from toolreeve.remote.configured.titles import server_name

SECTION = "mcp_servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file, before and after; `before` is None where there was none."""

    path: Path
    before: str | None = field(repr=False)
    after: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What becomes of one client's file, for a person. `lost` tells by server what did not come along, `kept` why one
    stays where it is. `workspace` is the folder that a client without one is given to work in."""

    client: str
    path: Path
    adopted: tuple[tuple[str, Settled], ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    workspace: Path | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`added` are the servers that are new to the user's file, `servers` all that we took over of the user's own files:
    those of a workspace may not be started before somebody trusts it."""

    rows: tuple[Row, ...]
    changes: tuple[Change, ...]
    added: Mapping[str, Mapping[str, Any]]
    servers: Mapping[str, Mapping[str, Any]]


def new_plan(
    places: Iterator[tuple[Client, Place]],
    *,
    own: Document,
    own_text: str | None,
    command: Sequence[str],
    shared: bool,
    workspace: Path | None = None,
) -> Plan:
    """`own` is the user's toolreeve.toml, `command` starts us; `shared` takes the workspace's own files as well.
    `workspace` is for clients that start us nowhere in particular; None where the user's file says it for all."""
    names = Names(_known(own))
    rows: list[Row] = []
    changes: list[Change] = []
    personal: list[str] = []
    for client, place in places:
        try:
            found = read_client_file(client, place)
            if found is None:
                continue
            given = None if client.has_folder or found.ours else workspace
            row = _row(found, names, given, taken=shared or not place.shared)
            rows.append(row)
            if not place.shared:
                personal += [settled.name for _, settled in row.adopted]
            if row.adopted and (change := _change(found, [*command, *_in(row.workspace)])):
                changes.append(change)
        except ConfigError as problem:
            rows.append(Row(client=client.title, path=place.path, problem=_told(problem)))
    if names.added:
        after = with_tables(own_text or "", SECTION, names.added)
        changes.insert(0, Change(path=Path(own.source), before=own_text, after=after))
    taken = {name: names.entries[name] for name in personal}
    return Plan(rows=tuple(rows), changes=tuple(changes), added=names.added, servers=taken)


def _known(own: Document) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    for path, section in sections(own.value):
        for entry in entries(section, path):
            with suppress(ValueError):
                raw = entry.raw if isinstance(entry.raw, Mapping) else {}
                known[server_name(str(entry.name))] = in_our_words(raw, own=True).entry
    return known


def _told(problem: ConfigError) -> str:
    line = "" if problem.line is None else f"line {problem.line}: "
    return f"{line}{problem.problem}"


def _in(workspace: Path | None) -> tuple[str, ...]:
    return () if workspace is None else ("--workspace", str(workspace))


def _row(found: ClientFile, names: Names, workspace: Path | None, *, taken: bool) -> Row:
    title, path = found.client.title, found.place.path
    kept = tuple((each.key, each.why) for each in found.kept)
    if not taken:
        others = tuple((each.key, "it came with the workspace; --project adopts it") for each in found.adoptable)
        return Row(client=title, path=path, kept=(*others, *kept))
    adopted = tuple((each.key, names.settle(each.key, each.entry, found.client.name)) for each in found.adoptable)
    lost = tuple(_lost(found.adoptable))
    return Row(client=title, path=path, adopted=adopted, lost=lost, kept=kept, workspace=workspace if adopted else None)


def _lost(adopted: Sequence[Adoptable]) -> Iterator[tuple[str, str]]:
    for each in adopted:
        if each.lost:
            yield each.key, f"{', '.join(each.lost)} means nothing here and did not come along"
        for word in each.unasked:
            yield each.key, f"{word} allows nothing here: only the policy does"


def _change(found: ClientFile, command: Sequence[str]) -> Change | None:
    """One entry of ours in the file, and none of the servers that were taken over."""
    home = found.client.sections[0]
    text = found.text
    for section, gone in _gone(found.adoptable).items():
        entry = None if found.ours or section != home else _entry(found, section, command)
        text = _without(found, text, section, gone, entry)
    if not found.ours and home not in _gone(found.adoptable):
        text = _without(found, text, home, (), _entry(found, home, command))
    return None if text == found.text else Change(path=found.place.path, before=found.text, after=text)


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
    found: ClientFile, text: str, section: KeyPath, gone: Sequence[str], entry: Mapping[str, Any] | None
) -> str:
    try:
        if found.client.format == "toml":
            return without_tables(text, section[0], gone, entry)
        before, changed = plain(parse_jsonc(text, "")), without_servers(text, section, gone, entry)
    except ConfigError as problem:
        raise ConfigError(problem.problem, source=found.place.path, fix=problem.fix) from None
    servers = {key: value for key, value in _at(before or {}, section).items() if key not in gone}
    wanted = _put(before or {}, section, servers if entry is None else {**servers, "toolreeve": dict(entry)})
    if plain(parse_jsonc(changed, "")) != wanted:
        raise ConfigError("is written in a way that cannot be changed safely", source=found.place.path)
    return changed


def _at(value: Mapping[str, Any], path: KeyPath) -> Mapping[str, Any]:
    for key in path:
        value = value.get(key, {})
    return value


def _put(value: Mapping[str, Any], path: KeyPath, inner: Any) -> Mapping[str, Any]:
    if not path:
        return inner  # type: ignore[no-any-return]
    return {**value, path[0]: _put(value.get(path[0], {}), path[1:], inner)}
