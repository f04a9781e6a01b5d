"""Plans an adoption: each file before and after. Writes nothing.

A file is changed only if everything else in it stays the same, which is verified on the new text itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolreeve.adopt.client_files import Adoptable, ClientFile, read_client_file
from toolreeve.adopt.clients import ConfigLocation, KnownClient
from toolreeve.adopt.replace_file import require_writable
from toolreeve.adopt.reversal import BlocksAdded, Reversal
from toolreeve.adopt.server_entries import Remainder, take_servers
from toolreeve.adopt.server_names import AssignedName, ServerNames
from toolreeve.adopt.toml_edit import with_tables
from toolreeve.adopt.trust import SETTINGS
from toolreeve.config.mcp_servers.dialects import plain as in_our_words
from toolreeve.config.mcp_servers.names import server_name
from toolreeve.config.mcp_servers.reader import entries, sections
from toolreeve.config.mcp_servers.secret_values import find_entry_secrets
from toolreeve.core.documents import Document
from toolreeve.core.errors import ConfigError

SECTION = "mcp_servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """One file, before and after; `before` is None for a new file. `reversal` undoes the change in a file that was
    edited since."""

    path: Path
    before: str | None = field(repr=False)
    after: str = field(repr=False)
    reversal: Reversal | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result for one client's file, to be shown. `lost` tells by server what is not carried over, `kept` why one
    stays. `workspace` is the folder assigned to a client that has none."""

    client: str
    path: Path
    adopted: tuple[tuple[str, AssignedName], ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    workspace: Path | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionPlan:
    """`added` are the servers that are new in the user's file, `servers` all adopted from the user's own files: those
    of a workspace must not be started before it is trusted. `secrets` must not be shown. With `own_servers`, each
    client sees only those that came from it."""

    rows: tuple[Row, ...]
    changes: tuple[FileChange, ...]
    added: Mapping[str, Mapping[str, Any]]
    servers: Mapping[str, Mapping[str, Any]]
    secrets: frozenset[str] = field(repr=False)
    own_servers: bool = False


def new_plan(
    places: Iterator[tuple[KnownClient, ConfigLocation]],
    *,
    own: Document,
    own_text: str | None,
    command: Sequence[str],
    shared: bool,
    workspace: Path | None = None,
    trust: Mapping[str, str] | None = None,
    own_servers: bool = False,
) -> AdoptionPlan:
    """`own` is the user's toolreeve.toml, `command` starts us; `shared` includes the workspace's files. `workspace` is
    for clients without a folder; None if the user's file sets one for all. `trust` is chosen by new server. With
    `own_servers`, each client sees only the adopted servers that came from it."""
    drafts = [_draft(client, place, command, workspace, shared=shared) for client, place in places]
    names = ServerNames(_known(own))
    comments: dict[str, list[Sequence[str]]] = {}
    rows: list[Row] = []
    changes: list[FileChange] = []
    personal: list[str] = []
    secrets: set[str] = set()
    views: list[tuple[_ClientDraft, Row]] = []
    for draft in drafts:
        if isinstance(draft, Row):
            rows.append(draft)
        elif draft is not None:
            row = _row(draft, names, comments)
            rows.append(row)
            views.append((draft, row))
            secrets |= _secrets(draft.found)
            if not draft.found.place.shared:
                personal += [assigned.name for _, assigned in row.adopted]
    everything = {assigned.name for _, row in views for _, assigned in row.adopted}
    for draft, row in views:
        foreign = everything - {assigned.name for _, assigned in row.adopted} if own_servers else set()
        changes.append(draft.excluding(sorted(foreign)))
    for name, choice in (trust or {}).items():
        names.added[name] = {**names.added[name], **SETTINGS[choice]}
    own_change = _own_change(own, own_text, names, comments)
    if own_change is not None:
        changes.insert(0, own_change)
    return AdoptionPlan(
        rows=tuple(rows),
        changes=tuple(changes),
        added=names.added,
        servers={name: names.entries[name] for name in personal},
        secrets=frozenset(secrets),
        own_servers=own_servers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClientDraft:
    """A client's file with adoptable servers, and its text without them."""

    found: ClientFile
    remainder: Remainder
    workspace: Path | None
    command: Sequence[str]

    def excluding(self, servers: Sequence[str]) -> FileChange:
        """The change of the file, with an entry that does not show these servers."""
        remainder = self.remainder
        if servers:
            excluded = ",".join(f"-{name}" for name in servers)
            remainder = take_servers(self.found, [*self.command, f"--tools={excluded}"])
        return FileChange(
            path=self.found.place.path, before=self.found.text, after=remainder.text, reversal=remainder.reversal
        )


def _draft(
    client: KnownClient, place: ConfigLocation, command: Sequence[str], workspace: Path | None, *, shared: bool
) -> Row | _ClientDraft | None:
    """None if there is no file, a row if it stays unchanged. Whether a file can be changed is known before any of its
    servers gets a name: a server that cannot be removed there is not added here."""
    try:
        found = read_client_file(client, place)
        if found is None:
            return None
        if not found.adoptable or (place.shared and not shared):
            return _unchanged_row(found)
        require_writable(place.path)
        if client.has_folder or found.ours:
            workspace = None
        if workspace is not None:
            command = [*command, "--workspace", str(workspace)]
        remainder = take_servers(found, command)
        return _ClientDraft(found=found, remainder=remainder, workspace=workspace, command=command)
    except ConfigError as problem:
        return Row(client=client.title, path=place.path, problem=_describe(problem))


def _secrets(found: ClientFile) -> set[str]:
    return {secret for each in found.adoptable for secret in find_entry_secrets(each.entry)}


def _own_change(
    own: Document, text: str | None, names: ServerNames, comments: Mapping[str, Sequence[Sequence[str]]]
) -> FileChange | None:
    extended = with_tables(text or "", SECTION, names.added, comments)
    if not extended.blocks:
        return None
    reversal = BlocksAdded(blocks=extended.blocks)
    return FileChange(path=Path(own.source), before=text, after=extended.text, reversal=reversal)


def _known(own: Document) -> dict[str, Mapping[str, Any]]:
    known: dict[str, Mapping[str, Any]] = {}
    for path, section in sections(own.value):
        for entry in entries(section, path):
            with suppress(ValueError):
                raw = entry.raw if isinstance(entry.raw, Mapping) else {}
                known[server_name(str(entry.name))] = in_our_words(raw, own=True).entry
    return known


def _describe(problem: ConfigError) -> str:
    line = "" if problem.line is None else f"line {problem.line}: "
    what = f"{problem.key} {problem.problem}".strip()
    return f"{line}{what}" + (f"; {problem.fix}" if problem.fix else "")


def _unchanged_row(found: ClientFile) -> Row:
    others = tuple((each.key, "it came with the workspace; --project adopts it") for each in found.adoptable)
    return Row(client=found.client.title, path=found.place.path, kept=(*others, *_kept(found)))


def _row(draft: _ClientDraft, names: ServerNames, comments: dict[str, list[Sequence[str]]]) -> Row:
    """Names the servers of a file and collects their comments."""
    found = draft.found
    adopted = []
    for each in found.adoptable:
        assigned = names.assign(each.key, each.entry, found.client.name)
        adopted.append((each.key, assigned))
        lines = draft.remainder.comments.get((each.section, each.key))
        if lines:
            comments.setdefault(assigned.name, []).append(lines)
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
            yield each.key, f"it was configured for {each.section[1]} only, and is now available in every folder"
        if each.lost:
            yield each.key, f"{', '.join(each.lost)} has no meaning here and is not carried over"
        for word in each.unasked:
            yield each.key, f"{word} has no effect here: the policy decides what needs approval"
