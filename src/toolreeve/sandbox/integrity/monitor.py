"""Integrity monitor: keeps covers current before, during and after commands.

Hidden paths are covered whenever they are made, and a guarded path that is replaced is covered again. A guarded path
that appears while commands run may be the work of any of them: it is suspect until the last of them has ended.
"""

import asyncio
import itertools
import os
import stat
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace

from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.baseline import Baseline
from toolreeve.sandbox.integrity.changes import Changes
from toolreeve.sandbox.integrity.leftovers import settle_leftovers
from toolreeve.sandbox.integrity.link_targets import LinkTargets
from toolreeve.sandbox.integrity.neutral_git import GitCovers, covers
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.integrity.watch import Watch
from toolreeve.sandbox.kernel.inotify import MOST_QUEUED
from toolreeve.sandbox.layout import CoveredPaths

MOST_UNREAD = 1_000
"""Rules that name more files than this are not enforced by covers."""


class IntegrityMonitor:
    """`refresh` is called with paths that must be covered at once.

    Without a quarantine, new guarded paths stay in place, and are covered for later commands.
    """

    def __init__(
        self, guards: GuardTable, refresh: Callable[[CoveredPaths], None], quarantine: Quarantine | None
    ) -> None:
        self._refresh = refresh
        self._quarantine = quarantine
        self._guards = guards
        self._baseline = None if quarantine is None else Baseline(quarantine.baselines, guards)
        self._notices: tuple[str, ...] = ()
        self._neutral = -1, GitCovers()
        self._watch = Watch(guards)
        self._targets = LinkTargets()
        self.started = False
        self._listening: set[int] = set()
        self._running: set[int] = set()
        self._services: set[int] = set()
        self._numbers = itertools.count()
        self._suspects: dict[str, set[int]] = {}
        self._replaced: frozenset[str] = frozenset()
        self._former: dict[str, bytes] = {}
        self._covered: dict[str, tuple[int, int]] = {}
        self._settle_lock = asyncio.Lock()
        self._settling: set[str] = set()
        self._tasks: set[asyncio.Task[tuple[str, ...]]] = set()
        self._reported_incomplete = ""

    async def start(self) -> None:
        """Walk all roots, once."""
        await asyncio.to_thread(self._walk)
        self.started = True
        self._watch_targets()

    def _walk(self) -> None:
        self._watch.start()
        if self._guards.unread is not None and len(self._watch.sensitive()) > MOST_UNREAD:
            self._watch.close()
            self._guards = replace(self._guards, unread=None)
            self._watch = Watch(self._guards)
            self._watch.start()
        if self._quarantine is not None and self._baseline is not None:
            self._notices = settle_leftovers(self._watch, self._quarantine, self._guards)
            self._baseline.open()

    @property
    def hides_unread(self) -> bool:
        """Whether what rules keep from being read is among the sensitive paths."""
        return self.started and self._guards.unread is not None

    def take_notices(self) -> tuple[str, ...]:
        """For the next result: what was quarantined while no caller waited for it, and what is not watched."""
        notices, self._notices = self._notices, ()
        if self.incomplete != self._reported_incomplete:
            self._reported_incomplete = self.incomplete
            if self.incomplete:
                notices += (self.incomplete,)
        return notices

    @property
    def excess(self) -> str:
        """Why no command may run; empty when they may."""
        return self._watch.excess

    async def close(self) -> None:
        """The leftovers of ended commands are settled first."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._baseline is not None:
            self._baseline.close()
        for descriptor in self._listening:
            asyncio.get_running_loop().remove_reader(descriptor)
        self._watch.close()
        self._targets.close()

    def _watch_targets(self) -> None:
        self._targets.watch(self._watch.guarded(), self._watch.hidden() | self._watch.sensitive())
        for descriptor in {self._watch.fileno(), self._targets.fileno()} - self._listening - {-1}:
            asyncio.get_running_loop().add_reader(descriptor, self._check_some)
            self._listening.add(descriptor)

    @property
    def incomplete(self) -> str:
        problem = self._baseline.problem if self._baseline is not None else ""
        return "; ".join(filter(None, (self._watch.incomplete, problem)))

    def found(self) -> CoveredPaths:
        """All paths that a sandbox must cover."""
        guarded = [path for path in self._watch.guarded() if not self._is_suspect(path)]
        return CoveredPaths(
            hidden=sorted(self._watch.hidden()), guarded=sorted(guarded), sensitive=sorted(self._watch.sensitive())
        )

    def neutral(self) -> GitCovers:
        """The covers by which git in a sandbox runs nothing that a repository names."""
        if self._neutral[0] != self._watch.version:
            self._neutral = self._watch.version, covers(self._watch, self._guards)
        return self._neutral[1]

    def history(self) -> tuple[str, ...]:
        return self._watch.history()

    def note_covered(self, found: CoveredPaths) -> None:
        """A sandbox was built with these covers."""
        for path in found.guarded:
            self._note_covered(path)

    def _invalidate_baseline(self) -> None:
        if self._baseline is not None:
            self._baseline.stale = True

    def _note_covered(self, path: str) -> None:
        inode = _inode(path)
        if inode is not None and inode != self._covered.get(path):
            self._covered[path] = inode
            self._invalidate_baseline()

    def _check_some(self) -> None:
        """A few events at a time: a command that causes events without end must not block the event loop."""
        self.check(most=1)

    def check(self, most: int = MOST_QUEUED) -> None:
        """Process the changes since the last check, and cover what must be."""
        if not self.started:
            return
        changes = self._watch.drain(most)
        targets = self._targets.drain()
        if not changes and not targets:
            return
        if changes.appeared or changes.changed or changes.gone or targets.arrived:
            self._invalidate_baseline()
        returned = changes.appeared & self._covered.keys()  # the host had removed it, because no command could
        replaced = self._replaced_among(changes.changed) | returned
        referenced = self._accept(changes, replaced)
        if self._running or self._services:  # changes of the host between commands are not reverted
            self._former = {**changes.former, **self._former}
        self._suspect((changes.appeared | targets.arrived) - returned, replaced)
        self._watch_targets()
        guarded = changes.appeared | replaced | targets.guarded | referenced
        hidden = changes.hidden.intersection(self._watch.hidden() | self._watch.sensitive()) | targets.hidden
        self._renew_covers(hidden, [path for path in guarded if not self._is_suspect(path)])

    def _renew_covers(self, hidden: Iterable[str], guarded: Iterable[str]) -> None:
        covered = [path for path in guarded if not self._watch.needs_no_cover(path)]
        sensitive = self._watch.sensitive().intersection(hidden)
        found = CoveredPaths(
            hidden=sorted(set(hidden) - sensitive), guarded=sorted(covered), sensitive=sorted(sensitive)
        )
        for path in found.guarded:
            if path in self._covered:
                self._note_covered(path)
        if any(found):
            self._refresh(found)

    def _suspect(self, appeared: frozenset[str], replaced: frozenset[str]) -> None:
        if self._running:
            self._replaced |= {path for path in replaced if not self._is_below_suspect(path)}
            for path in appeared | replaced:
                self._suspects.setdefault(path, set(self._running))
        elif self._services:  # these are not waited for
            self._settling |= appeared | replaced
            self._create_task(self._settle_now(appeared, replaced))

    def _is_below_suspect(self, path: str) -> bool:
        """A path that appeared during a command, or lies in one that did, is the command's to change until it ends."""
        while len(path) > 1:
            if self._is_suspect(path):
                return True
            path = os.path.dirname(path)
        return False

    def _accept(self, changes: Changes, replaced: frozenset[str]) -> frozenset[str]:
        """Accept what the host wrote. Returns existing paths that its settings now refer to."""
        written = changes.changed - replaced
        if not self._running and not self._services:
            written = changes.appeared | changes.changed
        return frozenset().union(*map(self._watch.accept, written))

    def _replaced_among(self, paths: Iterable[str]) -> frozenset[str]:
        """Without those whose cover is still in place: the host changed them, because no command could."""
        return frozenset(path for path in paths if not self._is_covered(path))

    def _is_covered(self, path: str) -> bool:
        """No cover keeps commands from a file that has another name (a hard link)."""
        if _has_other_names(path):
            return False
        while len(path) > 1:
            if path in self._covered:
                return self._covered[path] == _inode(path)
            path = os.path.dirname(path)
        return False

    def _is_suspect(self, path: str) -> bool:
        """A replaced path that was guarded before is covered all the same, so it is none."""
        return path in self._suspects and path not in self._replaced

    def begin(self, *, is_service: bool = False) -> int:
        """A command that can write, or a service, begins. Returns the number for `end`."""
        number = next(self._numbers)
        runs = self._services if is_service else self._running
        runs.add(number)
        return number

    def ready(self) -> None:
        """A command that has begun is about to run."""
        if self._baseline is not None and (self._running or self._services):
            self._baseline.begin(self._watch, self._covered, self._suspects.keys() | self._settling)

    async def end(self, number: int, call: str = "") -> tuple[str, ...]:
        """Quarantine what appeared while it ran, unless another command that ran then still does. Returns what was
        done. Continues when its caller is cancelled."""
        self.check()
        if self._suspects or self._watch.has_locked:
            return await asyncio.shield(self._create_task(self._end(number, call)))
        self._take_suspects(number)  # nothing appeared: most commands end here, without another turn of the loop
        self._mark_idle()
        return ()

    def end_later(self, number: int, call: str = "") -> "asyncio.Task[tuple[str, ...]]":
        """Like `end`, without waiting."""
        self.check()
        return self._create_task(self._end(number, call))

    def _create_task(self, work: Coroutine[None, None, tuple[str, ...]]) -> "asyncio.Task[tuple[str, ...]]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self, number: int, call: str) -> tuple[str, ...]:
        notices: tuple[str, ...] = ()
        if self._watch.has_locked:
            async with self._settle_lock:
                with self._watch.unlocked():
                    self.check()
                    notices = await self._settle(*self._take_suspects(number), call)
        elif any(changes := self._take_suspects(number)):
            async with self._settle_lock:
                notices = await self._settle(*changes, call)
        self._mark_idle()
        return notices

    def _mark_idle(self) -> None:
        if self._baseline is not None and not (self._running or self._services or self._settling):
            self._baseline.end()

    def _take_suspects(self, number: int) -> tuple[frozenset[str], frozenset[str]]:
        """A command has ended. Returns the new and the replaced paths that only ended commands can have made."""
        self._running.discard(number)
        self._services.discard(number)
        for running in self._suspects.values():
            running.discard(number)
        over = frozenset(path for path, running in self._suspects.items() if not running)
        for path in over:
            del self._suspects[path]
        replaced = over & self._replaced
        self._replaced -= over
        self._settling |= over
        return over - replaced, replaced

    async def _settle_now(self, appeared: frozenset[str], replaced: frozenset[str]) -> tuple[str, ...]:
        async with self._settle_lock:
            notices = await self._settle(appeared, replaced)
        self._notices += notices
        return notices

    async def _settle(self, appeared: frozenset[str], replaced: frozenset[str], call: str = "") -> tuple[str, ...]:
        """In a thread, so that the event loop is free meanwhile."""
        over = appeared | replaced
        former = {path: data for path, data in self._former.items() if path in replaced}
        self._former = {path: data for path, data in self._former.items() if path not in over}
        notices: tuple[str, ...] = ()
        if self._quarantine is not None and over:
            changes = Changes(appeared=appeared, changed=replaced, former=former)
            suspects = self._quarantine.find_suspects(self._watch, changes)
            outcome = await asyncio.to_thread(self._quarantine.take, suspects, call)
            for path, content in outcome.accepted:
                self._watch.accept(path, content)
            notices = outcome.notices
            self._invalidate_baseline()
        self._settling -= over
        self._renew_covers((), filter(os.path.lexists, appeared))
        return notices


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has_other_names(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink > 1
