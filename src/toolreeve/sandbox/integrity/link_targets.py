"""Watches the targets of links that replace guarded or hidden paths.

The names of targets match no rule, so the folders that hold them are watched for these names alone.
"""

import os
from collections.abc import Collection
from typing import NamedTuple

from toolreeve.sandbox.integrity.link_trail import follow
from toolreeve.sandbox.kernel import inotify


class TargetChanges(NamedTuple):
    """Links whose targets were made or replaced; `arrived` are guarded ones that were dangling before."""

    hidden: frozenset[str] = frozenset()
    guarded: frozenset[str] = frozenset()
    arrived: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.hidden or self.guarded)


_NOTHING = TargetChanges()


class LinkTargets:
    """Opens nothing where there are no such links."""

    def __init__(self) -> None:
        self._inotify: inotify.Inotify | None = None
        self._hidden: frozenset[str] = frozenset()
        self._guarded: frozenset[str] = frozenset()
        self._dangling: frozenset[str] = frozenset()
        self._is_blind = False

    def fileno(self) -> int:
        return -1 if self._inotify is None else self._inotify.descriptor

    def watch(self, guarded: Collection[str], hidden: Collection[str]) -> None:
        """Watch the folders on the trails of the links among these paths."""
        self._guarded = frozenset(filter(os.path.islink, guarded))
        self._hidden = frozenset(filter(os.path.islink, hidden))
        self._dangling = frozenset(path for path in self._guarded if not os.path.exists(path))
        if self._guarded or self._hidden:
            self._open()
        for path in self._guarded | self._hidden:
            self._watch_trail(path)

    def _open(self) -> None:
        if self._inotify is None:
            try:
                self._inotify = inotify.Inotify()
            except OSError:
                self._is_blind = True

    def _watch_trail(self, path: str) -> None:
        links, end = follow(path)
        points = links if end is None else (*links, end)
        for point in points:
            folder = os.path.dirname(point)
            while not os.path.isdir(folder):
                folder = os.path.dirname(folder)
            if self._inotify is not None:
                try:
                    self._inotify.add(folder, inotify.NAMES)
                except OSError:
                    self._is_blind = True

    def drain(self) -> TargetChanges:
        if not self._has_events():
            return _NOTHING
        arrived = frozenset(filter(os.path.exists, self._dangling))
        return TargetChanges(hidden=self._hidden, guarded=self._guarded, arrived=arrived)

    def _has_events(self) -> bool:
        """Always true where not everything can be watched."""
        if self._inotify is None:
            return self._is_blind
        has_events = self._is_blind
        while self._inotify.read():
            has_events = True
        return has_events

    def close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
