"""Files: the file capability of a tool, implemented by `guard/files/workspace.py`.

Paths are passed as the caller wrote them and returned resolved: absolute, links followed, inside an allowed root. Every
method raises ToolError for a path that may not be touched. Reads are synchronous and bounded by the caller; changes
are awaited, durable when they return, and noted for undo before they happen.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, Self

from toolreeve.core.call import ToolCall


class Kind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class Chunk(NamedTuple):
    """Bytes from one opening of a file whose whole size was `size`. A tuple, because every read creates one."""

    path: str
    size: int
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStat:
    path: str
    kind: Kind
    size: int
    mode: int
    modified: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One entry of a directory. A link inside an allowed root is shown as its target."""

    name: str
    is_dir: bool
    size: int
    is_link: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a directory, sorted by name. `total` counts all its entries, None if not all were read."""

    path: str
    entries: Sequence[Listed]
    total: int | None
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a walk may go. `seconds` is measured from its start."""

    entries: int = 200_000
    depth: int = 64
    seconds: float = 10.0


class Found(Protocol):
    """An entry of a walk, readable while it is the current one. `path` is relative to the start of the walk."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def is_dir(self) -> bool: ...
    @property
    def is_link(self) -> bool: ...
    @property
    def is_file(self) -> bool: ...
    @property
    def size(self) -> int: ...
    def open(self) -> "Reader | None": ...


class Walk(Protocol):
    """Breadth first, names sorted; links are listed, not followed. `cut` names the bound that ended it early."""

    @property
    def path(self) -> str: ...
    @property
    def cut(self) -> str: ...
    def __iter__(self) -> Iterator[Found]: ...


class Reader(Protocol):
    """An open file: what it was when opened stays what is read."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    def read(self, offset: int, limit: int) -> bytes: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """The result of a change. `undoable` is False if the former content was too large to keep."""

    path: str
    size: int = 0
    existed: bool = False
    undoable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFinding:
    """Whether a path may be touched, decided without opening it."""

    value: str
    decision: str
    reason: str
    resolved: str | None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one path, as undo must know it.

    `before` and `after` are fingerprints of what is at `path` (for a move: at `to`), None where there is nothing.
    `kept` says that the former content is held under its fingerprint. `made` are directories made on the way, outermost
    first; `temp` is the name that a half-done change may leave beside the file.
    """

    kind: str
    path: str
    to: str = ""
    before: str | None = None
    after: str | None = None
    mode: int = 0
    kept: bool = True
    made: tuple[str, ...] = ()
    temp: str = ""


class Keep(Protocol):
    """Stores what changes replace, for undo."""

    largest: int

    def save(self, descriptor: int) -> None:
        """Store the content of an open file durably. Blocks; called in a thread."""

    async def note(self, call: ToolCall, change: Change) -> None:
        """Write durably that the change is about to happen."""

    def standing(self, *, call_id: str | None, session: str | None) -> Sequence[Change]:
        """The changes of a call or a session that have not been undone, newest first. Blocks."""


class Files(Protocol):
    @property
    def root(self) -> str: ...

    def resolve(self, path: str) -> str:
        """The absolute path with all links followed; it need not exist."""

    def target(self, path: str) -> str:
        """As `resolve`, but a path that may not be touched is returned as written. For naming effects."""

    def relative(self, path: str) -> str:
        """A resolved path, relative to the workspace."""

    def explain(self, path: str, *, change: bool = False, follow: bool = True) -> PathFinding:
        """Without `follow`, a link at the path is meant itself."""
        ...

    def read(self, path: str, limit: int) -> Chunk: ...
    def open(self, path: str) -> Reader: ...
    def stat(self, path: str) -> FileStat | None:
        """None if nothing exists there."""

    def list(self, path: str, *, limit: int, after: str = "", hidden: bool = False) -> Listing: ...
    def walk(
        self,
        path: str,
        *,
        bounds: Bounds = ...,
        hidden: bool = False,
        skip: frozenset[str] = ...,
        search_base: bool = False,
    ) -> Walk:
        """Sensitive directories are not entered. With `search_base` the path must lie in a base for directory
        searches."""

    async def write(
        self,
        call: ToolCall,
        path: str,
        data: bytes,
        *,
        append: bool = False,
        create_dirs: bool = True,
        expect: str | None = None,
        mode: int | None = None,
    ) -> Changed:
        """Replace the file atomically. `expect` is the fingerprint it must still have."""

    async def delete(self, call: ToolCall, path: str) -> Changed: ...
    async def move(
        self, call: ToolCall, path: str, to: str, *, overwrite: bool = False, create_dirs: bool = True
    ) -> Changed: ...
    async def link(self, call: ToolCall, path: str, target: str) -> Changed:
        """Restore a symbolic link."""

    async def remove_directory(self, path: str) -> bool:
        """Remove a directory if it is empty."""

    def fingerprint_of(self, data: bytes) -> str:
        """The fingerprint of a file with this content."""

    def changes(self, *, call_id: str | None = None, session: str | None = None) -> Sequence[Change]:
        """Changes of a call or a session that have not been undone, newest first; empty if none are kept. Blocks."""

    def fingerprint(self, path: str) -> str | None:
        """Identifies what is at the path, not following a link there; any difference shows. None if nothing exists."""
