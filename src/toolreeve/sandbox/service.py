"""Service: a long-running program in its own slot, on its caller's streams.

The slot is never used again: what such a program leaves in it is unknown.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.sandbox import limit_report
from toolreeve.sandbox.command import send_order, to_message
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.messages import SLOT_REPORT
from toolreeve.sandbox.session import SandboxSession, SlotHandle

_TERM_GRACE = 0.5


class Service:
    """`ended` says in words how the program ended, once nothing of it is left in the sandbox."""

    def __init__(self, session: SandboxSession, slot: SlotHandle, on_end: Callable[[], None]) -> None:
        self._session = session
        self._slot = slot
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._how = "the sandbox was terminated while it ran"

    def start(self, request: ProcessRequest, environment: Mapping[str, str], streams: Sequence[int]) -> None:
        """Raises Unavailable where the slot is dead already."""
        self._limits = request.limits
        report = self._slot.report = self._loop.create_future()
        report.add_done_callback(self._reported)
        try:
            send_order(self._slot, to_message(request, environment), streams)
        except OSError:
            raise Unavailable("the slot exited") from None

    def kill(self) -> None:
        """With all it started; `ended` resolves when that is done."""
        self._slot.terminate()
        if not self._slot.has_namespaces:
            self._loop.call_later(_TERM_GRACE, self._slot.kill)

    def _reported(self, report: "asyncio.Future[bytes]") -> None:
        if not report.cancelled() and report.result():
            kind, status, *_ = SLOT_REPORT.unpack(report.result())
            self._how = _describe(kind, status, self._limits)
        slot = self._slot
        if slot.has_namespaces and slot.pidfd >= 0:  # the slot init exits after all other processes
            slot.terminate()
            self._loop.add_reader(slot.pidfd, self._init_exited, slot.pidfd)
        else:
            self._finish()

    def _init_exited(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        self._finish()

    def _finish(self) -> None:
        self._session.drop(self._slot)
        self._on_end()
        if not self.ended.done():
            self.ended.set_result(self._how)


def _describe(kind: bytes, status: int, limits: ProcessLimits) -> str:
    if kind == b"F":
        return f"it cannot be started: {os.strerror(status)}"
    code = os.waitstatus_to_exitcode(status)
    if limit := limit_report.killed_for(kind, limits):
        return f"it was {limit}"
    return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"
