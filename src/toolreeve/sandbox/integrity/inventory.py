"""Inventory of the guarded and hidden paths that exist in writable roots.

Holds what a walk or an event found and answers what commands must not see or change. It never looks at a file itself.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from toolreeve.sandbox.integrity.changes import Changes, KnownState, Signature
from toolreeve.sandbox.integrity.path_table import PathTable, is_in

MOST_COVERED = 4_000


class Inventory:
    """`_accepted` has the content of files that git reads, as it was when it was last accepted."""

    def __init__(self) -> None:
        self._known: PathTable[KnownState] = PathTable()
        self._secrets: PathTable[Signature] = PathTable()
        self._sensitive: PathTable[Signature] = PathTable()
        self._accepted: dict[str, bytes] = {}
        self._truncated = ""

    @property
    def complete(self) -> bool:
        """Whether all directories were listed."""
        return not self._truncated

    @property
    def excess(self) -> str:
        """Why not all paths that must be covered can be; empty when they can."""
        guarded = self.guarded()
        count = len(self._secrets) + len(self._sensitive) + len(guarded)
        if count <= MOST_COVERED:
            return ""
        [(directory, most)] = Counter(map(os.path.dirname, (*self._secrets, *self._sensitive, *guarded))).most_common(1)
        cause = f": {self._truncated}" if self._truncated else ""
        return (
            f"{count} paths must be hidden or protected from commands, and at most {MOST_COVERED} can be{cause}."
            f" Remove those that are not needed, or name them in workspace.sensitive_allow;"
            f" {directory!r} holds {most}"
        )

    def known(self) -> Iterator[tuple[str, Signature, bytes | None]]:
        """Each guarded path that exists, its signature, and its content when that was last accepted."""
        return ((path, known.signature, self._accepted.get(path)) for path, known in self._known.items())

    def since(self, before: Mapping[str, Sequence[int]]) -> Changes:
        """The difference from an earlier `known`, maybe before a reboot: devices may have new numbers."""
        appeared = self._known.keys() - before.keys()
        common = self._known.keys() & before.keys()
        changed = (path for path in common if self._known[path].signature[1:] != tuple(before[path][1:]))
        return Changes(appeared=self._outermost(appeared), changed=frozenset(changed))

    def guarded(self) -> frozenset[str]:
        """The outermost path of each unit that exists and must not change."""
        return frozenset(known.unit for path, known in self._known.items() if not self.needs_no_cover(path))

    def needs_no_cover(self, path: str) -> bool:
        """Whether a path is assessed, but not covered: git goes on using the links that a person made and writing its
        state, and what lies in a hidden directory is out of reach."""
        known = self._known.get(path)
        if known is not None and known.kind in ("link", "state"):
            return True
        return self._is_out_of_reach(path)

    def _is_out_of_reach(self, path: str) -> bool:
        """Whether it lies in a hidden directory."""
        while self._secrets and (path := path[: path.rindex("/")]):
            if path in self._secrets:
                return True
        return False

    def hidden(self) -> frozenset[str]:
        """The hidden paths that exist."""
        return frozenset(self._secrets)

    def sensitive(self) -> frozenset[str]:
        """The sensitive paths that exist."""
        return frozenset(self._sensitive)

    def settings(self) -> dict[str, tuple[int, bytes | None]]:
        """The settings files of all repositories: their inode and content; None where that cannot be read."""
        found: dict[str, tuple[int, bytes | None]] = {}
        for path, known in self._known.items():
            if known.kind == "config" and path == known.unit and not self._is_out_of_reach(path):
                found[path] = known.signature[1], known.content
        return found

    def hooks(self) -> frozenset[str]:
        """The hook directories of repositories that hold hooks which git would run, or that are links."""
        found = set()
        for path, known in self._known.items():
            if known.kind != "hooks":
                continue
            is_unit = path == known.unit
            is_directory = len(known.signature) == 2
            if is_unit and not is_directory:
                found.add(path)
            if not is_unit and not path.endswith(".sample"):
                found.add(known.unit)
        return frozenset(path for path in found if not self._is_out_of_reach(path))

    def _outermost(self, paths: Collection[str]) -> frozenset[str]:
        """Those that exist; in place of the paths inside a unit only the unit, if it is among them."""
        units: set[str] = set()
        outer: set[str] = set()
        for path in paths:
            if path in self._known:
                unit = self._known[path].unit
                units.add(unit)
                outer.add(unit if unit in paths else path)
        around = units & outer
        return frozenset(path for path in outer if not is_in(os.path.dirname(path), around))
