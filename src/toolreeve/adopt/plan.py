"""What would adopting change? A list of files as they are and as they would be; nothing is written here.

A file is changed only if every other thing it says stays the same, which is checked on the new text itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.adopt.client_files import Adoptable, ClientFile, read_client_file
from toolreeve.adopt.clients import ConfigLocation, KnownClient
from toolreeve.adopt.replace_file import require_writable
from toolreeve.adopt.server_entries import Left, take_servers
from toolreeve.adopt.server_names import Names, ServerNames
from toolreeve.adopt.toml_edit import with_tables
from toolreeve.adopt.undo_facts import Added, Reversal
from toolreeve.config.mcp_servers.dialects import plain as in_our_words
from toolreeve.config.mcp_servers.names import server_name
from toolreeve.config.mcp_servers.reader import entries, sections
from toolreeve.config.mcp_servers.secret_values import find_entry_secrets
from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError

SECTION = "mcp_servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file, before and after; `before` is None where there was none. `reversal` takes it back out of a file that
    somebody changed since."""

    path: Path
    before: str | None = field(repr=False)
    after: str = field(repr=False)
    reversal: Reversal | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What becomes of one client's file, for a person. `lost` tells by server what did not come along, `kept` why one
    stays where it is. `workspace` is the folder that a client without one is given to work in."""

    client: str
    path: Path
    adopted: tuple[tuple[str, ServerNames], ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    workspace: Path | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionPlan:
    """`added` are the servers that are new to the user's file, `servers` all that we took over of the user's own files:
    those of a workspace may not be started before somebody trusts it. `secrets` are what must not be shown of them."""

    rows: tuple[Row, ...]
    changes: tuple[FileChange, ...]
    added: Mapping[str, Mapping[str, Any]]
    servers: Mapping[str, Mapping[str, Any]]
    secrets: frozenset[str] = field(repr=False)


def new_plan(
    places: Iterator[tuple[KnownClient, ConfigLocation]],
    *,
    own: Document,
    own_text: str | None,
    command: Sequence[str],
    shared: bool,
    workspace: Path | None = None,
) -> AdoptionPlan:
    """`own` is the user's toolreeve.toml, `command` starts us; `shared` takes the workspace's own files as well.
    `workspace` is for clients that start us nowhere in particular; None where the user's file says it for all."""
    drafts = [_draft(client, place, command, workspace, shared=shared) for client, place in places]
    names = Names(_known(own))
    comments: dict[str, list[Sequence[str]]] = {}
    rows: list[Row] = []
    changes: list[FileChange] = []
    personal: list[str] = []
    for draft in drafts:
        if isinstance(draft, Row):
            rows.append(draft)
        elif draft is not None:
            rows.append(_row(draft, names, comments))
            changes.append(draft.change)
            personal += [] if draft.found.place.shared else [settled.name for _, settled in rows[-1].adopted]
    if own_change := _own_change(own, own_text, names, comments):
        changes.insert(0, own_change)
    taken = {name: names.entries[name] for name in personal}
    secrets = frozenset(secret for draft in drafts if isinstance(draft, _Draft) for secret in _secrets(draft.found))
    return AdoptionPlan(rows=tuple(rows), changes=tuple(changes), added=names.added, servers=taken, secrets=secrets)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A client's file that servers can be taken out of, and the text without them."""

    found: ClientFile
    left: Left
    workspace: Path | None

    @property
    def change(self) -> FileChange:
        path, before = self.found.place.path, self.found.text
        return FileChange(path=path, before=before, after=self.left.text, reversal=self.left.reversal)


def _draft(
    client: KnownClient, place: ConfigLocation, command: Sequence[str], workspace: Path | None, *, shared: bool
) -> Row | _Draft | None:
    """None where there is no file, a row where it stays as it is. That a file can be changed is known before any of its
    servers is given a name: what cannot leave there does not come here."""
    try:
        found = read_client_file(client, place)
        if found is None:
            return None
        if not found.adoptable or (place.shared and not shared):
            return _row_left(found)
        require_writable(place.path)
        given = None if client.has_folder or found.ours else workspace
        return _Draft(found=found, left=take_servers(found, [*command, *_in(given)]), workspace=given)
    except ConfigError as problem:
        return Row(client=client.title, path=place.path, problem=_told(problem))


def _secrets(found: ClientFile) -> Iterator[str]:
    for each in found.adoptable:
        yield from find_entry_secrets(each.entry)


def _own_change(
    own: Document, text: str | None, names: Names, comments: Mapping[str, Sequence[Sequence[str]]]
) -> FileChange | None:
    extended = with_tables(text or "", SECTION, names.added, comments)
    if not extended.blocks:
        return None
    added = Added(blocks=extended.blocks)
    return FileChange(path=Path(own.source), before=text, after=extended.text, reversal=added)


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
    what = f"{problem.key} {problem.problem}".strip()
    return f"{line}{what}" + (f"; {problem.fix}" if problem.fix else "")


def _in(workspace: Path | None) -> tuple[str, ...]:
    return () if workspace is None else ("--workspace", str(workspace))


def _row_left(found: ClientFile) -> Row:
    others = tuple((each.key, "it came with the workspace; --project adopts it") for each in found.adoptable)
    return Row(client=found.client.title, path=found.place.path, kept=(*others, *_kept(found)))


def _row(draft: _Draft, names: Names, comments: dict[str, list[Sequence[str]]]) -> Row:
    """What becomes of a file whose servers are given their names here, and whose comments go with them."""
    found, adopted = draft.found, []
    for each in found.adoptable:
        settled = names.settle(each.key, each.entry, found.client.name)
        adopted.append((each.key, settled))
        if said := draft.left.comments.get((each.section, each.key)):
            comments.setdefault(settled.name, []).append(said)
    return Row(
        client=found.client.title,
        path=found.place.path,
        adopted=tuple(adopted),
        lost=tuple(_lost(found.adoptable)),
        kept=_kept(found),
        workspace=draft.workspace,
    )


def _kept(found: ClientFile) -> tuple[tuple[str, str], ...]:
    return tuple((each.key, each.why) for each in found.kept)


def _lost(adopted: Sequence[Adoptable]) -> Iterator[tuple[str, str]]:
    for each in adopted:
        if each.section[0] == "projects":
            yield each.key, f"it was for {each.section[1]} alone, and is for every folder here"
        if each.lost:
            yield each.key, f"{', '.join(each.lost)} means nothing here and did not come along"
        for word in each.unasked:
            yield each.key, f"{word} allows nothing here: only the policy does"
