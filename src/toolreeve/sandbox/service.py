"""How does a program run that stays? In a slot of its own, on streams that its starter holds, until its end.

The slot is never used again: what such a program leaves in it is unknown.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence

from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.command import send_order, to_message
from toolreeve.sandbox.launch import Unavailable
from toolreeve.sandbox.messages import ENDED
from toolreeve.sandbox.session import SandboxSession, SlotHandle

_MOMENT = 0.5
_BREACHES = {b"M": "memory", b"C": "CPU time", b"P": "processes"}


class Service:
    """A program in its place. `ended` says in words how it ended, once nothing of it is left there."""

    def __init__(self, session: SandboxSession, slot: SlotHandle, parted: Callable[[], None]) -> None:
        self._session, self._slot, self._parted = session, slot, parted
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self._how = "the sandbox ended under it"

    def start(self, request: ProcessRequest, environment: Mapping[str, str], streams: Sequence[int]) -> None:
        """Raises Unavailable where the slot is dead already."""
        answer = self._slot.answer = self._loop.create_future()
        answer.add_done_callback(self._answered)
        try:
            send_order(self._slot, to_message(request, environment), streams)
        except OSError:
            raise Unavailable("the slot ended") from None

    def kill(self) -> None:
        """With all it started; `ended` tells when that is done."""
        self._slot.kill()
        if not self._slot.apart:
            self._loop.call_later(_MOMENT, self._slot.kill_surely)

    def _answered(self, answer: "asyncio.Future[bytes]") -> None:
        if not answer.cancelled() and answer.result():
            kind, status, *_ = ENDED.unpack(answer.result())
            self._how = _told(kind, status)
        self._part()

    def _part(self) -> None:
        """With namespaces, the keeper ends after all that it kept."""
        slot = self._slot
        if slot.apart and slot.pidfd >= 0:
            slot.kill()
            self._loop.add_reader(slot.pidfd, self._keeper_ended, slot.pidfd)
        else:
            self._over()

    def _keeper_ended(self, pidfd: int) -> None:
        self._loop.remove_reader(pidfd)
        self._over()

    def _over(self) -> None:
        self._session.drop(self._slot)
        self._parted()
        if not self.ended.done():
            self.ended.set_result(self._how)


def _told(kind: bytes, status: int) -> str:
    if kind == b"F":
        return f"it cannot be started: {os.strerror(status)}"
    if kind in _BREACHES:
        return f"it was ended for using more {_BREACHES[kind]} than it may"
    code = os.waitstatus_to_exitcode(status)
    return f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"
