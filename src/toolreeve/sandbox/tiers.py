"""Tiers: the strictest kind of sandbox that this machine supports.

Chosen once. Only what the machine lacks lowers it: never anything in a workspace, nothing that a command can do, and no
transient failure. Where a sandbox cannot be built in the chosen tier, nothing runs.
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
    """The weakest tier that is accepted, and how many commands run at once. `confined` is false by choice only."""

    require: Tier = "landlock"
    concurrency: int = 16
    confined: bool = True


class Builder:
    """Builds sessions of the one tier that this machine supports."""

    def __init__(self, layout: Layout, strictness: Strictness) -> None:
        self._layout = layout
        self._strictness = strictness
        self._tier: Tier | None = None if strictness.confined else "limits"
        self._bases: cgroup.Bases | str | None = None
        self._built = itertools.count()

    async def build(self, request: ProcessRequest, found: CoveredPaths) -> SandboxSession:
        """A session with a slot for the request. Raises ToolError."""
        if self._bases is None:
            self._bases = cgroup.find()
        if self._tier is None:
            return await self._choose(request, found)
        try:
            return await self._build(request, found, self._tier)
        except Unavailable as problem:
            raise _failed(self._tier, problem) from None

    async def _choose(self, request: ProcessRequest, found: CoveredPaths) -> SandboxSession:
        reasons = []
        for tier in TIERS[: TIERS.index(self._strictness.require) + 1]:
            try:
                session = await self._build(request, found, tier)
            except Unavailable as problem:
                neutral_problem = await self._try_neutral(tier)
                if neutral_problem is None:
                    self._tier = tier
                    raise _failed(tier, problem) from None
                if not neutral_problem.is_unsupported:
                    raise _failed(tier, neutral_problem) from None
                reasons.append(f"{tier}: {neutral_problem}")
                continue
            self._tier = tier
            return session
        raise _refused(self._strictness.require, reasons)

    async def _build(self, request: ProcessRequest, found: CoveredPaths, tier: Tier) -> SandboxSession:
        """Tried again on failure, because a path may be renamed while it is being mounted."""
        for attempt in range(_ATTEMPTS):
            plan = self._layout.plan(request, tier, uid=self._uid(), counts=self._counts, found=found)
            try:
                return await self._start(plan, request)
            except Unavailable as problem:
                if problem.is_unsupported or attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def _try_neutral(self, tier: Tier) -> Unavailable | None:
        """Why the machine, whatever is in the workspace, does not support the tier; None where it does."""
        plan = self._layout.neutral(tier, uid=self._uid(), counts=self._counts)
        try:
            session = await self._start(plan, _ANY_PROGRAM)
        except Unavailable as problem:
            return problem
        session.close()
        return None

    async def _start(self, plan: Plan, request: ProcessRequest) -> SandboxSession:
        bases = self._bases if isinstance(self._bases, cgroup.Bases) else None
        session = SandboxSession(plan, bases, self._strictness.concurrency, request)
        try:
            await session.start()
            session.give_back(await slot_for(session, request))  # only a locked slot proves the tier
        except BaseException as problem:
            session.close()
            if isinstance(problem, TimeoutError):
                raise Unavailable("the supervisor did not start in time") from None
            raise
        return session

    @property
    def _counts(self) -> bool:
        return not isinstance(self._bases, cgroup.Bases)

    def _uid(self) -> int | None:
        """Commands of a runtime that is root are not root, unless the operator wants no confinement at all."""
        if os.geteuid() != 0 or not self._strictness.confined:
            return None
        number = os.getpid() * _UIDS_EACH + next(self._built) % _UIDS_EACH
        return FIRST_UNUSED_UID + number % _UNUSED_UIDS


async def slot_for(session: SandboxSession, request: ProcessRequest) -> SlotHandle:
    """A slot with the limits of a request."""
    limits = request.limits
    plan = session.plan
    slot_limits = kernel_limits(limits, memory=plan.counts_memory, processes=plan.counts_processes)
    while True:
        slot = await session.take((request.network, slot_limits))
        if slot.group is None:
            return slot
        try:
            slot.group.limit(limits.memory_mb << 20, limits.processes)
        except OSError:  # memory that an earlier command left exceeds the limit: a new slot has none
            session.drop(slot)
            continue
        return slot


def _failed(tier: Tier, problem: Unavailable) -> ToolError:
    message = f"the sandbox (tier {tier}) cannot be built, and nothing weaker is used instead: {problem}"
    hint = "fix the named cause and check with `toolreeve doctor`, or choose another sandbox.mode"
    return ToolError(ErrorCode.TOOL_EXEC, message, suggestions=(hint,))


def _refused(required: Tier, reasons: list[str]) -> ToolError:
    return ToolError(
        ErrorCode.PERMISSION,
        f"this machine does not support the required sandbox (sandbox.require = {required}): {'; '.join(reasons)}",
        suggestions=("run `toolreeve doctor` to see what is missing and how to enable it",),
    )
