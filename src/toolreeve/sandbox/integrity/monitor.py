"""Upkeep of covers: which paths were made or replaced, before, during and after commands.

What is hidden is covered whenever it is made, and a guarded path that is replaced is covered again. A guarded path that
appears while commands run may be the work of any of them: it is suspect until the last that ran then has ended.
"""

import asyncio
import itertools
import os
from collections.abc import Callable, Coroutine, Iterable

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


class IntegrityMonitor:
    """`refresh` is called with what must be covered, at once, while the event loop runs.

    Without a quarantine, what appeared stays where it is, and is covered for later commands.
    """

    def __init__(
        self, guards: GuardTable, refresh: Callable[[CoveredPaths], None], quarantine: Quarantine | None
    ) -> None:
        self._refresh, self._quarantine, self._guards = refresh, quarantine, guards
        self._baseline = None if quarantine is None else Baseline(quarantine.baselines, guards)
        self._notices: tuple[str, ...] = ()
        self._neutral = -1, GitCovers()
        self._watch = Watch(guards)
        self._targets = LinkTargets()
        self.started = False
        self._listening: set[int] = set()
        self._running: set[int] = set()
        self._lasting: set[int] = set()
        self._numbers = itertools.count()
        self._suspects: dict[str, set[int]] = {}
        self._replaced: frozenset[str] = frozenset()
        self._former: dict[str, bytes] = {}
        self._covered: dict[str, tuple[int, int]] = {}
        self._turn = asyncio.Lock()
        self._settling: set[str] = set()
        self._tasks: set[asyncio.Task[tuple[str, ...]]] = set()
        self._told_incomplete = ""

    async def start(self) -> None:
        """Look through everything, once."""
        await asyncio.to_thread(self._look_through)
        self.started = True
        self._aim()

    def _look_through(self) -> None:
        self._watch.start()
        if self._quarantine is not None and self._baseline is not None:
            self._notices = settle_leftovers(self._watch, self._quarantine, self._guards)
            self._baseline.open()

    def take_notices(self) -> tuple[str, ...]:
        """For the next result: what was put aside when no command was waited for, and what is not watched."""
        notices, self._notices = self._notices, ()
        if self.incomplete != self._told_incomplete:
            self._told_incomplete = self.incomplete
            notices += (self.incomplete,) if self.incomplete else ()
        return notices

    @property
    def excess(self) -> str:
        """Why no command may run; empty when they may."""
        return self._watch.excess

    async def close(self) -> None:
        """What ended commands left is settled first."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._baseline is not None:
            self._baseline.close()
        for descriptor in self._listening:
            asyncio.get_running_loop().remove_reader(descriptor)
        self._watch.close()
        self._targets.close()

    def _aim(self) -> None:
        self._targets.aim(self._watch.guarded(), self._watch.hidden())
        for descriptor in {self._watch.fileno(), self._targets.fileno()} - self._listening - {-1}:
            asyncio.get_running_loop().add_reader(descriptor, self._look_a_little)
            self._listening.add(descriptor)

    @property
    def incomplete(self) -> str:
        unkept = self._baseline.problem if self._baseline is not None else ""
        return "; ".join(filter(None, (self._watch.incomplete, unkept)))

    def found(self) -> CoveredPaths:
        """All that a place must cover."""
        guarded = [path for path in self._watch.guarded() if not self._is_suspect(path)]
        return CoveredPaths(hidden=sorted(self._watch.hidden()), guarded=sorted(guarded))

    def neutral(self) -> GitCovers:
        """What a place must show for git in it to run nothing that a repository names."""
        if self._neutral[0] != self._watch.version:
            self._neutral = self._watch.version, covers(self._watch, self._guards)
        return self._neutral[1]

    def covered(self, found: CoveredPaths, *, apart: bool) -> None:
        """A place was built with these covers, if its tier has any."""
        if apart:
            for path in found.guarded:
                self._note_covered(path)

    def _outdate(self) -> None:
        if self._baseline is not None:
            self._baseline.stale = True

    def _note_covered(self, path: str) -> None:
        inode = _inode(path)
        if inode is not None and inode != self._covered.get(path):
            self._covered[path] = inode
            self._outdate()

    def _look_a_little(self) -> None:
        """A command that makes events without end does not keep others from being served."""
        self.look(most=1)

    def look(self, most: int = MOST_QUEUED) -> None:
        """Take note of what happened since the last time, and have covered what must be."""
        if not self.started:
            return
        changes = self._watch.drain(most)
        moved = self._targets.drain()
        if not changes and not moved:
            return
        if changes.appeared or changes.changed or changes.gone or moved.arrived:
            self._outdate()
        back = changes.appeared & self._covered.keys()  # the host had taken it away, for no command could
        replaced = self._replaced_among(changes.changed) | back
        led = self._accept(changes, replaced)
        if self._running or self._lasting:  # what the host changes between commands is no command's to take back
            self._former = {**changes.former, **self._former}
        self._suspect((changes.appeared | moved.arrived) - back, replaced)
        self._aim()
        guarded = changes.appeared | replaced | moved.guarded | led
        hidden = {path for path in changes.hidden if os.path.lexists(path)} | moved.hidden
        self._renew(hidden, [path for path in guarded if not self._is_suspect(path)])

    def _renew(self, hidden: Iterable[str], guarded: Iterable[str]) -> None:
        held = [path for path in guarded if not self._watch.is_free(path)]
        found = CoveredPaths(hidden=sorted(hidden), guarded=sorted(held))
        for path in found.guarded:
            if path in self._covered:
                self._note_covered(path)
        if found.hidden or found.guarded:
            self._refresh(found)

    def _suspect(self, appeared: frozenset[str], replaced: frozenset[str]) -> None:
        if self._running:
            self._replaced |= {path for path in replaced if not self._is_below_suspect(path)}
            for path in appeared | replaced:
                self._suspects.setdefault(path, set(self._running))
        elif self._lasting:  # whose end cannot be waited for
            self._settling |= appeared | replaced
            self._start(self._settle_now(appeared, replaced))

    def _is_below_suspect(self, path: str) -> bool:
        """What appeared during a command, or lies in what did, is its own to change until it ends."""
        while len(path) > 1:
            if self._is_suspect(path):
                return True
            path = os.path.dirname(path)
        return False

    def _accept(self, changes: Changes, replaced: frozenset[str]) -> frozenset[str]:
        """What the host wrote is what stood there before the next command; what that leads git to."""
        alone = not self._running and not self._lasting
        written = changes.appeared | changes.changed if alone else changes.changed - replaced
        return frozenset().union(*map(self._watch.accept, written))

    def _replaced_among(self, paths: Iterable[str]) -> frozenset[str]:
        """Without those whose cover is still in place: the host changed them, for no command could."""
        return frozenset(path for path in paths if not self._is_held(path))

    def _is_held(self, path: str) -> bool:
        while len(path) > 1:
            if path in self._covered:
                return self._covered[path] == _inode(path)
            path = os.path.dirname(path)
        return False

    def _is_suspect(self, path: str) -> bool:
        """A path that was guarded before and was replaced is covered all the same."""
        return path in self._suspects and path not in self._replaced

    def begin(self, *, lasting: bool = False) -> int:
        """A command that can write begins, or a program that stays; the number is for its end."""
        number = next(self._numbers)
        (self._lasting if lasting else self._running).add(number)
        return number

    def ready(self) -> None:
        """What began is about to run."""
        if self._baseline is not None and (self._running or self._lasting):
            self._baseline.begin(self._watch, self._covered, self._suspects.keys() | self._settling)

    async def end(self, number: int, call: str = "") -> tuple[str, ...]:
        """Put aside what appeared while it ran, unless another command that ran then still does; what was done. Goes on
        when its caller is cancelled."""
        self.look()
        if self._suspects or self._watch.has_locked:
            return await asyncio.shield(self._start(self._end(number, call)))
        self._part(number)  # nothing appeared: most commands end here, without another turn of the loop
        self._rest()
        return ()

    def end_later(self, number: int, call: str = "") -> "asyncio.Task[tuple[str, ...]]":
        """As `end`, without waiting. What was done is told with the next result if nobody awaits it."""
        self.look()
        return self._start(self._end(number, call))

    def _start(self, work: Coroutine[None, None, tuple[str, ...]]) -> "asyncio.Task[tuple[str, ...]]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end(self, number: int, call: str) -> tuple[str, ...]:
        notices: tuple[str, ...] = ()
        if self._watch.has_locked:
            async with self._turn:
                with self._watch.unlocked():
                    self.look()
                    notices = await self._settle(*self._part(number), call)
        elif any(changes := self._part(number)):
            async with self._turn:
                notices = await self._settle(*changes, call)
        self._rest()
        return notices

    def _rest(self) -> None:
        """The baseline needs no comparing while nothing runs."""
        if self._baseline is not None and not (self._running or self._lasting or self._settling):
            self._baseline.end()

    def _part(self, number: int) -> tuple[frozenset[str], frozenset[str]]:
        """A command has ended: what appeared and what was replaced that only ended commands can have made."""
        self._running.discard(number)
        self._lasting.discard(number)
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
        async with self._turn:
            notices = await self._settle(appeared, replaced)
        self._notices += notices
        return notices

    async def _settle(self, appeared: frozenset[str], replaced: frozenset[str], call: str = "") -> tuple[str, ...]:
        """In a thread: others are served meanwhile."""
        over = appeared | replaced
        former = {path: data for path, data in self._former.items() if path in replaced}
        self._former = {path: data for path, data in self._former.items() if path not in over}
        notices: tuple[str, ...] = ()
        if self._quarantine is not None and over:
            changes = Changes(appeared=appeared, changed=replaced, former=former)
            judged = self._quarantine.judge(self._watch, changes)
            settled = await asyncio.to_thread(self._quarantine.take, judged, call)
            for path, content in settled.accepted:
                self._watch.accept(path, content)
            notices = settled.notices
            self._outdate()
        self._settling -= over
        self._renew((), filter(os.path.lexists, appeared))
        return notices


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
