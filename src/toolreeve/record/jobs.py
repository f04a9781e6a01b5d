"""Jobs of a store's writer thread, and the log that it writes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from toolreeve.record.chain import ChainStore, Entry


class Log(Protocol):
    """Turns deferred and appended lines into rows. Called in the writer thread.

    While `unsynced` is set, `idle` is called once nothing was written for a second.
    """

    unsynced: bool

    def write(self, chain: ChainStore, lines: Sequence[Any]) -> None:
        """Inside the transaction. After a failure the same lines may be passed again."""

    def entries(self, lines: Sequence[Any]) -> list[Entry]:
        """The lines as a chain stores them."""
        ...

    def note_synced(self, chain: ChainStore) -> None:
        """Inside the transaction: store how far the witness is on disk."""

    def committed(self, chain: ChainStore, lines: Sequence[Any]) -> None:
        """The group is on disk. Called outside any transaction, before any caller is answered."""

    def examine(self, chain: ChainStore) -> None:
        """Inside a transaction: record what the witness reveals."""

    def bury(self, chain: ChainStore) -> list[str]:
        """Inside a transaction: close the open calls of dead processes as lost; returns their names."""
        ...

    def idle(self, chain: ChainStore) -> None:
        """Nothing was written for a while. Called outside any transaction."""


class Job:
    """A waiting caller: for `work` to be done, for `line` to be written, or for everything before it."""

    __slots__ = ("future", "kept", "line", "loop", "problem", "value", "work")

    def __init__(self, *, work: Callable[[Any], Any] | None = None, line: Any = None, kept: bool = False) -> None:
        self.work = work
        self.line = line
        self.kept = kept
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.problem: BaseException | None = None

    @property
    def awaits_all(self) -> bool:
        return self.work is None and self.line is None


def answer(jobs: Sequence[Job]) -> None:
    """Wake each event loop once, however many of its callers waited."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, own in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, own)
        except RuntimeError:
            continue  # the loop has closed: no caller is left


def _resolve(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.problem is None:
            job.future.set_result(job.value)
        else:
            job.future.set_exception(job.problem)
