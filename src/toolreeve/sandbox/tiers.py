"""Tiers: which kind of sandbox this machine gives.

Chosen once. Only what the machine lacks lowers it: never anything in a workspace, nothing that a command can do, and no
failure that may pass. Where a place cannot be built in the chosen tier, nothing runs.
"""

import itertools
import os
from dataclasses import dataclass
from typing import Literal

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.kernel import cgroup
from toolreeve.sandbox.kernel.rlimits import kernel_limits
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.layout import CoveredPaths, Layout
from toolreeve.sandbox.plan import Plan
from toolreeve.sandbox.session import SandboxSession, SlotHandle

Tier = Literal["full", "landlock", "limits"]
TIERS: tuple[Tier, ...] = ("full", "landlock", "limits")
FIRST_UNUSED_UID = 2_000_000_000
_UNUSED_UIDS = 100_000_000
_UIDS_EACH = 64
_ATTEMPTS = 2
_ANY_PROGRAM = ProcessRequest(argv=("true",), directory="/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """The weakest tier that is good enough, and how many commands run at once. `confined` is false by choice only."""

    require: Tier = "landlock"
    concurrency: int = 16
    confined: bool = True


class Builder:
    """Builds places of the one tier that this machine gives."""

    def __init__(self, grounds: Layout, strictness: Strictness) -> None:
        self._grounds, self._strictness = grounds, strictness
        self._tier: Tier | None = None if strictness.confined else "limits"
        self._bases: cgroup.Bases | str | None = None
        self._built = itertools.count()

    async def build(self, request: ProcessRequest, found: CoveredPaths) -> SandboxSession:
        """A place with a slot for the request. Raises ToolError."""
        if self._bases is None:
            self._bases = cgroup.find()
        if self._tier is None:
            return await self._choose(request, found)
        try:
            return await self._build(request, found, self._tier)
        except Unavailable as problem:
            raise _failed(self._tier, problem) from None

    async def _choose(self, request: ProcessRequest, found: CoveredPaths) -> SandboxSession:
        lacking = []
        for tier in TIERS[: TIERS.index(self._strictness.require) + 1]:
            try:
                session = await self._build(request, found, tier)
            except Unavailable as problem:
                doubt = await self._try_neutral(tier)
                if doubt is None:
                    self._tier = tier
                    raise _failed(tier, problem) from None
                if not doubt.lacking:
                    raise _failed(tier, doubt) from None
                lacking.append(f"{tier}: {doubt}")
                continue
            self._tier = tier
            return session
        raise _refused(self._strictness.require, lacking)

    async def _build(self, request: ProcessRequest, found: CoveredPaths, tier: Tier) -> SandboxSession:
        """What is being mounted may be renamed at that moment, so it is tried again."""
        for attempt in range(_ATTEMPTS):
            plan = self._grounds.plan(request, tier, uid=self._uid(), counts=self._counts, found=found)
            try:
                return await self._start(plan, request)
            except Unavailable as problem:
                if problem.lacking or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _try_neutral(self, tier: Tier) -> Unavailable | None:
        """What keeps the machine, whatever is in the workspace, from giving the tier; None where it gives it."""
        try:
            session = await self._start(self._grounds.neutral(tier, uid=self._uid(), counts=self._counts), _ANY_PROGRAM)
        except Unavailable as problem:
            return problem
        session.close()
        return None

    async def _start(self, plan: Plan, request: ProcessRequest) -> SandboxSession:
        bases = self._bases if isinstance(self._bases, cgroup.Bases) else None
        session = SandboxSession(plan, bases, self._strictness.concurrency)
        try:
            await session.start()
            session.give_back(await slot_for(session, request))  # only a slot that holds proves the tier
        except BaseException as problem:
            session.close()
            if isinstance(problem, TimeoutError):
                raise Unavailable("it was not ready in time") from None
            raise
        return session

    @property
    def _counts(self) -> bool:
        return not isinstance(self._bases, cgroup.Bases)

    def _uid(self) -> int | None:
        """No command of a runtime that is root is root, unless the operator wants no confinement at all."""
        if os.geteuid() != 0 or not self._strictness.confined:
            return None
        number = os.getpid() * _UIDS_EACH + next(self._built) % _UIDS_EACH
        return FIRST_UNUSED_UID + number % _UNUSED_UIDS


async def slot_for(session: SandboxSession, request: ProcessRequest) -> SlotHandle:
    """A slot with the limits of a request."""
    limits, plan = request.limits, session.plan
    held = kernel_limits(limits, memory=plan.counts_memory, processes=plan.counts_processes)
    while True:
        slot = await session.take((request.network, held))
        if slot.group is None:
            return slot
        try:
            slot.group.limit(limits.memory_mb << 20, limits.processes)
        except OSError:  # what an earlier command left in memory does not fit: a new one has nothing yet
            session.drop(slot)
            continue
        return slot


def _failed(tier: Tier, problem: Unavailable) -> ToolError:
    message = f"the sandbox ({tier}) cannot be built here, and nothing weaker is used instead: {problem}"
    hint = "mend what is named; `toolreeve doctor` tries it again. sandbox.mode chooses another kind of sandbox"
    return ToolError(ErrorCode.TOOL_EXEC, message, suggestions=(hint,))


def _refused(required: Tier, reasons: list[str]) -> ToolError:
    return ToolError(
        ErrorCode.PERMISSION,
        f"this machine cannot give the sandbox that is required ({required}): {'; '.join(reasons)}",
        suggestions=("run `toolreeve doctor` to see what is missing and how to get it",),
    )
