"""Changes of guarded and hidden paths between two checks.

What appeared and vanished in between is not reported.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from toolreeve.core.guarded_paths import Content

Signature = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes since the last check. All paths are absolute; links are not followed.

    `appeared`: new guarded paths, the outermost of each unit. `changed`: guarded paths that were replaced or written
    to; `former` has the last accepted content of those that git reads. `gone`: guarded paths that no longer exist.
    `hidden`: hidden paths that were made, replaced, moved or removed.
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
    """A guarded path that exists. `unit` is the outermost path that is guarded with it."""

    unit: str
    signature: Signature
    kind: Content | None = None
    content: bytes | None = None


class Tally:
    """Collects the changes until the next report, so that what appeared and vanished cancels out."""

    def __init__(self) -> None:
        self.appeared: set[str] = set()
        self.changed: set[str] = set()
        self.gone: dict[str, KnownState] = {}
        self.hidden: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.appeared or self.changed or self.gone or self.hidden)

    def note(self, path: str, before: KnownState | None, now: KnownState, *, is_written: bool = False) -> None:
        before = before or self.gone.pop(path, None)
        if before is None:
            self.appeared.add(path)
            return
        is_same = before.signature == now.signature and before.content == now.content
        if (is_written or not is_same) and path not in self.appeared:
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
        """Add the difference of a new listing to the events that were noted before others were lost."""
        for path in before.keys() - now.keys():
            self.remove(path, before[path])
        for path, known in now.items():
            self.note(path, before.get(path), known)
        self.hidden |= {path for path, _ in secrets}
