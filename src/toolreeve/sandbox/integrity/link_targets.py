"""Watch over the targets of links in place of guarded or hidden paths.

Their names say nothing, so the folders that hold them are watched for these names alone.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from toolreeve.sandbox.integrity.link_trail import follow
from toolreeve.sandbox.kernel import inotify


class Moved(NamedTuple):
    """Links whose targets were made or replaced; `arrived` are guarded ones that led nowhere before."""

    hidden: frozenset[str] = frozenset()
    guarded: frozenset[str] = frozenset()
    arrived: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.hidden or self.guarded)


_NOTHING = Moved()


class LinkTargets:
    """Has nothing to do, and opens nothing, where there are no such links."""

    def __init__(self) -> None:
        self._inotify: inotify.Inotify | None = None
        self._hidden: frozenset[str] = frozenset()
        self._guarded: frozenset[str] = frozenset()
        self._dangling: frozenset[str] = frozenset()
        self._blind = False

    def fileno(self) -> int:
        return -1 if self._inotify is None else self._inotify.descriptor

    def aim(self, guarded: Collection[str], hidden: Collection[str]) -> None:
        """Watch the folders on the way to where the links among these paths lead."""
        self._guarded = frozenset(filter(os.path.islink, guarded))
        self._hidden = frozenset(filter(os.path.islink, hidden))
        self._dangling = frozenset(path for path in self._guarded if not os.path.exists(path))
        if self._guarded or self._hidden:
            self._open()
        for path in self._guarded | self._hidden:
            self._watch_way(path)

    def _open(self) -> None:
        if self._inotify is None:
            try:
                self._inotify = inotify.Inotify()
            except OSError:
                self._blind = True

    def _watch_way(self, path: str) -> None:
        links, end = follow(path)
        for point in (*links, *([] if end is None else [end])):
            folder = os.path.dirname(point)
            while not os.path.isdir(folder):
                folder = os.path.dirname(folder)
            if self._inotify is not None:
                try:
                    self._inotify.add(folder, inotify.NAMES)
                except OSError:
                    self._blind = True

    def drain(self) -> Moved:
        if not self._is_stirred():
            return _NOTHING
        arrived = frozenset(filter(os.path.exists, self._dangling))
        return Moved(hidden=self._hidden, guarded=self._guarded, arrived=arrived)

    def _is_stirred(self) -> bool:
        """Where not everything can be watched, each look may find something."""
        if self._inotify is None:
            return self._blind
        stirred = self._blind
        while self._inotify.read():
            stirred = True
        return stirred

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
