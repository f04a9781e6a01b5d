"""Confinement of a call's programs, and the layer of a trial.

The decision chooses the confinement and the kernel enforces it, so a wrong belief about a program has no effect.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from toolreeve.core.effects import Effect
from toolreeve.core.errors import ErrorCode, ToolError

NOTHING_CHANGED = "Nothing was changed"
"""Ends the message of a call whose changes were refused after its trial."""
USER_NOTES = "user.overlay."
TRUSTED_NOTES = "trusted.overlay."
_CLOCK_REALTIME_COARSE = 5


class Confinement(StrEnum):
    """From the tightest. LOOK: the workspace is read-only; the network is off, or limited to the hosts that the effects
    name. TRY: the writable roots are overlays, kept or discarded afterwards; no network. WORK: as it was allowed
    beforehand."""

    LOOK = "look"
    TRY = "try"
    WORK = "work"

    def tighter(self, other: "Confinement") -> "Confinement":
        return min(self, other, key=list(Confinement).index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The upper directory of one overlay, after every process that could write to it has ended.

    `root` is the absolute path of the real tree below it. `upper` is a directory descriptor; whoever gets the layer
    closes it, and with it the layer is gone. `began_ns` is the coarse real-time clock before the program started: a
    real file with a later ctime was changed meanwhile. `uid` and `gid` own what the program made and become the
    owner of `root` when it is committed. `problem` says why the layer is incomplete, for example that it was full.
    `notes` is the prefix of overlayfs's own extended attributes: that of `trusted.` where the mount was privileged.
    """

    root: str
    upper: int
    began_ns: int
    uid: int
    gid: int
    problem: str = ""
    notes: str = USER_NOTES


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedChanges:
    """What a trial changed, scratch left out: WRITE and DELETE effects on absolute, normal paths.

    `deleted` is how many files are gone, with those of deleted and replaced directories; `untracked` are those of them
    that version control cannot restore.
    """

    effects: tuple[Effect, ...]
    deleted: int = 0
    untracked: tuple[str, ...] = ()


def file_clock_ns() -> int:
    """The clock of file times. It ticks every few milliseconds: two changes within a tick have the same time."""
    return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)


async def wait_for_tick() -> None:
    """Until a change made before now has an earlier file time than one made afterwards; a few milliseconds."""
    made = time.time_ns()
    while file_clock_ns() <= made:  # noqa: ASYNC110 - the kernel tells nobody
        await asyncio.sleep(0.0005)


class TrialImpossible(ToolError):
    """The call cannot be tried to its end. Nothing of it has taken effect: it is asked about beforehand."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.TOOL_EXEC, f"the command cannot run on trial: {reason}")
        self.reason = reason


class TrialLayers(Protocol):
    """Gives out what the programs of a call changed on trial."""

    def end_trial(self, call: str) -> Sequence[Layer]:
        """One layer for each writable root; none if nothing of the call was tried. The caller closes them."""
        ...
