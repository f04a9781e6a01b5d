"""Journal of commits: what each swaps, and how far it is.

Kept outside the workspace, so that neither a command nor a repository that somebody made can forge one. A commit's
phase is the suffix of its file, so a change of phase is one rename, durable when `move` returns.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from toolreeve.core.atomic import sync_directory
from toolreeve.trial.tree import FileIdentity


class CommitPhase(StrEnum):
    """STAGING: nothing real is touched yet. APPLYING and UNDOING are finished or reverted at the next start."""

    STAGING = "staging"
    APPLYING = "applying"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"


_LATEST_FIRST = (
    CommitPhase.APPLYING,
    CommitPhase.DONE,
    CommitPhase.UNDOING,
    CommitPhase.UNDONE,
    CommitPhase.STAGING,
)
"""The note of the staging phase goes only after the journal stands: for a moment there are both."""


class Attributes(NamedTuple):
    """Permissions and modification time."""

    mode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSwap:
    """Exchanges what is at `path` with `name` in the stage; either may be nothing. `old` and `new` are what each was
    before. `tree` is the fingerprint of a whole directory that makes way. With `before` and `after`, it only sets
    attributes of what is there."""

    path: str
    name: str
    old: FileIdentity | None = None
    new: FileIdentity | None = None
    tree: str = ""
    before: Attributes | None = None
    after: Attributes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedPath:
    """One changed path with its fingerprints, and what it was when it was staged."""

    path: str
    before: str | None
    after: str | None
    new: FileIdentity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPlan:
    """`stage` is an absolute path; `size` is about how many bytes it holds once the commit is done."""

    id: str
    root: str
    stage: str
    size: int = 0
    swaps: tuple[PathSwap, ...] = ()
    paths: tuple[CommittedPath, ...] = ()


class CommitJournal:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def begin(self, plan: CommitPlan) -> None:
        """Note that a stage is about to be made. It need not survive a power failure: then only the stage is left."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path(plan.id, CommitPhase.STAGING).write_bytes(_encode(plan))

    def draft(self, plan: CommitPlan) -> None:
        """Write the journal of a staged commit; it counts when it is published."""
        self._draft(plan.id).write_bytes(_encode(plan))

    def publish(self, plan: CommitPlan, *, is_synced: bool) -> None:
        """From here on the commit will be finished. Within a file system nothing done later survives without this."""
        if not is_synced:
            with self._draft(plan.id).open("rb") as stream:
                os.fsync(stream.fileno())
        self._draft(plan.id).rename(self._path(plan.id, CommitPhase.APPLYING))
        self._path(plan.id, CommitPhase.STAGING).unlink()
        if not self.holds(plan):
            sync_directory(self.directory)

    def holds(self, plan: CommitPlan) -> bool:
        """Whether the stage lies beside the journal, and so on the tree's file system."""
        return plan.stage == str(self.directory / plan.id)

    def move(self, id_: str, phase: CommitPhase, to: CommitPhase) -> None:
        self._path(id_, phase).rename(self._path(id_, to))
        sync_directory(self.directory)

    def remove(self, id_: str) -> None:
        self._draft(id_).unlink(missing_ok=True)
        for phase in _LATEST_FIRST:
            self._path(id_, phase).unlink(missing_ok=True)

    def phases(self) -> dict[str, CommitPhase]:
        """All commits, in the order in which they were made."""
        if not self.directory.is_dir():
            return {}
        found: dict[str, CommitPhase] = {}
        for path in sorted(self.directory.iterdir()):
            suffix = path.suffix[1:]
            if suffix in _LATEST_FIRST and not (suffix == CommitPhase.STAGING and path.stem in found):
                found[path.stem] = CommitPhase(suffix)
        return found

    def phase(self, id_: str) -> CommitPhase | None:
        return next((phase for phase in _LATEST_FIRST if self._path(id_, phase).exists()), None)

    def read(self, id_: str) -> CommitPlan | None:
        """None if it is not kept."""
        lines = self._lines(id_)
        header = next(lines, None)
        if header is None:
            return None
        fields: dict[str, Any] = json.loads(header)
        body: dict[str, Any] = json.loads(next(lines))
        swaps = tuple(_swap(each) for each in body["swaps"])
        return CommitPlan(**fields, swaps=swaps, paths=tuple(_committed(each) for each in body["paths"]))

    def sizes(self) -> dict[str, int]:
        """The size of each kept commit."""
        return {id_: json.loads(next(self._lines(id_), b'{"size": 0}'))["size"] for id_ in self.phases()}

    def _lines(self, id_: str) -> Iterator[bytes]:
        for phase in _LATEST_FIRST:
            try:
                stream = self._path(id_, phase).open("rb")
            except FileNotFoundError:
                continue
            with stream:
                yield from stream
            return

    def _draft(self, id_: str) -> Path:
        return self.directory / f"{id_}.new"

    def _path(self, id_: str, phase: CommitPhase) -> Path:
        return self.directory / f"{id_}.{phase}"


def _encode(plan: CommitPlan) -> bytes:
    """Names are text with escapes: any bytes of a name survive."""
    header = {"id": plan.id, "root": plan.root, "stage": plan.stage, "size": plan.size}
    body = {"swaps": [asdict(each) for each in plan.swaps], "paths": [asdict(each) for each in plan.paths]}
    return f"{json.dumps(header)}\n{json.dumps(body)}\n".encode()


def _identity(fields: Sequence[int] | None) -> FileIdentity | None:
    return None if fields is None else FileIdentity(*fields)


def _attributes(fields: Sequence[int] | None) -> Attributes | None:
    return None if fields is None else Attributes(*fields)


def _swap(fields: dict[str, Any]) -> PathSwap:
    identities = {key: _identity(fields[key]) for key in ("old", "new")}
    attributes = {key: _attributes(fields[key]) for key in ("before", "after")}
    return PathSwap(path=fields["path"], name=fields["name"], tree=fields["tree"], **identities, **attributes)  # type: ignore[arg-type]


def _committed(fields: dict[str, Any]) -> CommittedPath:
    return CommittedPath(**{**fields, "new": _identity(fields["new"])})
