"""Changes: what happened to guarded and hidden paths between two looks.

What came and went in between is not told of.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from toolreeve.core.guarded_paths import Content

Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What happened since the last look. All paths are absolute; links are told of as links.

    `appeared`: guarded and not there before, the outermost path of each. `changed`: guarded and replaced or written to;
    `former` has what a file that git reads held when it was last accepted. `gone`: guarded and no longer there.
    `hidden`: hidden, and made, replaced, moved or removed.
    """

    appeared: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    former: Mapping[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.appeared or self.changed or self.gone or self.hidden)


NO_CHANGES = Changes()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """A guarded path that is there. `unit` is the outermost path that is guarded with it."""

    unit: str
    signature: Signature
    kind: Content | None = None
    content: bytes | None = None


class Tally:
    """What one look found, kept so that what came and went in between is not told of."""

    def __init__(self) -> None:
        self.appeared: set[str] = set()
        self.changed: set[str] = set()
        self.gone: dict[str, KnownState] = {}
        self.hidden: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.appeared or self.changed or self.gone or self.hidden)

    def note(self, path: str, before: KnownState | None, now: KnownState, *, written: bool = False) -> None:
        before = before or self.gone.pop(path, None)
        if before is None:
            self.appeared.add(path)
            return
        same = before.signature == now.signature and before.content == now.content and not written
        if same or path in self.appeared:
            return
        self.changed.add(path)

    def remove(self, path: str, before: KnownState) -> None:
        if path in self.appeared:
            self.appeared.discard(path)
        else:
            self.gone[path] = before

    def compare(
        self,
        before: Mapping[str, KnownState],
        now: Mapping[str, KnownState],
        secrets: Iterable[tuple[str, Signature]],
    ) -> None:
        """Add what a new listing shows to what was noted of events before the others were lost."""
        for path in before.keys() - now.keys():
            self.remove(path, before[path])
        for path, known in now.items():
            self.note(path, before.get(path), known)
        self.hidden |= {path for path, _ in secrets}


def with_units(paths: Iterable[str], known: Mapping[str, KnownState]) -> Iterator[tuple[str, str]]:
    return ((known[path].unit, path) for path in paths if path in known)
