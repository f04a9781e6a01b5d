"""Trials: the commands of a call in one lasting slot.

A slot is used for one call and never again. Its layers are given out when every process that could write to them has
ended.
"""

import asyncio
import os
import select
from functools import cache
from typing import NamedTuple

from toolreeve.core.process import ProcessRequest
from toolreeve.core.trial import TRUSTED_NOTES, USER_NOTES, Layer, TrialImpossible, file_clock_ns
from toolreeve.sandbox.kernel.overlay import read_mounts
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.plan import within
from toolreeve.sandbox.session import SandboxSession, SlotHandle
from toolreeve.sandbox.tiers import slot_for

MOST_LAYERS = 8
_REPLACE_AFTER = 0.01
_RESERVE = 64


class _Trial:
    """`problem` says why its layers cannot be used."""

    __slots__ = ("began_ns", "problem", "session", "slot")

    def __init__(self, session: SandboxSession, slot: SlotHandle) -> None:
        self.session = session
        self.slot = slot
        self.began_ns = file_clock_ns()
        self.problem = ""


class Started(NamedTuple):
    """The slot in which the commands of a call run."""

    session: SandboxSession
    slot: SlotHandle


class Trials:
    """The trials under way, by call. `warm` is how many slots are ordered ahead."""

    def __init__(self, warm: int) -> None:
        self._warm = warm
        self._running: dict[str, _Trial] = {}

    def find(self, call: str) -> Started | None:
        trial = self._running.get(call)
        if trial is None:
            return None
        if trial.slot.is_dead or trial.slot.pidfd < 0:
            raise TrialImpossible("an earlier command of the call was killed")
        return Started(trial.session, trial.slot)

    async def start(self, call: str, session: SandboxSession, request: ProcessRequest) -> Started:
        await session.wait_covered()
        slot = await slot_for(session, request)
        session.busy += 1
        self._running[call] = _Trial(session, slot)
        return Started(session, slot)

    def spoil(self, session: SandboxSession, problem: str) -> None:
        """The layers of what runs in the session cannot be used, nor its slots that wait."""
        session.drop_idle()
        for trial in self._running.values():
            if trial.session is session:
                trial.problem = problem

    def end(self, call: str) -> tuple[Layer, ...]:
        """The layers of a call, which the caller closes; none if it was not tried."""
        trial = self._running.pop(call, None)
        if trial is None:
            return ()
        slot, session = trial.slot, trial.session
        layers = tuple(self._layer(trial, number) for number in range(len(slot.layers)))
        slot.layers = ()
        asyncio.get_running_loop().call_later(_REPLACE_AFTER, self._replace, session, slot)
        return layers

    def _replace(self, session: SandboxSession, slot: SlotHandle) -> None:
        """After the answer, which need not wait for it. The next call most likely has the same limits."""
        session.busy -= 1
        limits = None if slot.group is None else slot.group.limits
        session.drop(slot)
        if session.alive:
            session.keep_warm(slot.kind, self._warm, limits)

    def _layer(self, trial: _Trial, number: int) -> Layer:
        plan = trial.session.plan
        upper = trial.slot.layers[number]
        problem = trial.problem
        if not problem and not trial.session.alive:
            problem = "the sandbox was terminated while the command ran"
        return Layer(
            root=plan.writable[number],
            upper=upper,
            began_ns=trial.began_ns,
            uid=os.geteuid() if plan.uid is None else plan.uid,
            gid=os.getegid() if plan.uid is None else plan.uid,
            notes=USER_NOTES if plan.uid is None else TRUSTED_NOTES,
            problem=problem or _fullness(trial.slot, upper, plan.layer_mb),
        )


def _fullness(slot: SlotHandle, upper: int, megabytes: int) -> str:
    """A program may go on after a write that failed, and remove some of what it wrote: nearly full counts, too."""
    found = os.fstatvfs(upper)
    has_room = found.f_bfree > found.f_blocks // _RESERVE and found.f_ffree > found.f_files // _RESERVE
    if has_room and not slot.is_full:
        return ""
    return f"it changed more than a trial can hold (trial.layer_mb = {megabytes})"


class Obstacle:
    """Why nothing in the workspace can be tried now. Found out again whenever mounts change."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._mounts = -1
        self._poll = select.poll()
        self._found = ""

    def find(self) -> str:
        """Empty if it can be tried."""
        if self._mounts < 0:
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            self._poll.register(self._mounts, select.POLLPRI)
            self._found = _find_obstacle(self._layout)
        elif self._poll.poll(0):  # once for each change
            self._found = _find_obstacle(self._layout)
        return self._found

    def close(self) -> None:
        if self._mounts >= 0:
            os.close(self._mounts)
            self._mounts = -1


def _find_obstacle(layout: Layout) -> str:
    if not layout.may_write or not layout.layer_mb:
        return "trials are off"
    if len(layout.roots) > MOST_LAYERS:
        return f"there are more than {MOST_LAYERS} writable roots"
    if not _knows_overlays():
        return "the kernel has no overlay file system"
    roots = [os.path.realpath(root) for root in layout.roots]
    for path, _ in read_mounts():
        if any(path != root and within(path, root) for root in roots):
            return f"{path} is a mount of its own inside the workspace"
    return ""


@cache
def _knows_overlays() -> bool:
    with open("/proc/filesystems") as file:
        return "\toverlay\n" in file.read()
