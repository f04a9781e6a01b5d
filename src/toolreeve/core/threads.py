"""How is blocking work ended? By raising in its thread: at its next bytecode it stops, unless it hangs in C code.

Python cannot kill a thread; a call into C (a `time.sleep`, a driver) ends only by itself. The caller is never made to
wait for that: it gets its answer at the deadline, and the message says that the work may go on.
"""

import asyncio
import ctypes
import threading
from collections.abc import Callable
from typing import Any


class Interrupted(BaseException):
    """Raised in a worker thread whose caller has gone. Not an Exception, so `except Exception` lets it through."""


class _Worker:
    """One piece of work in a thread of its own, cancellable."""

    def __init__(self, work: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.work, self.loop = work, loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.lock = threading.Lock()
        self.ended = False
        self.thread = threading.Thread(target=self._run, daemon=True, name="toolreeve-work")

    def _run(self) -> None:
        try:
            value, problem = self.work(), None
        except Interrupted:
            value, problem = None, None
        except BaseException as raised:
            value, problem = None, raised
        with self.lock:
            self.ended = True
        try:
            self.loop.call_soon_threadsafe(self._deliver, value, problem)
        except RuntimeError:
            return  # the loop has closed: nobody waits for the answer

    def _deliver(self, value: Any, problem: BaseException | None) -> None:
        if self.future.done():
            return
        if problem is None:
            self.future.set_result(value)
        elif isinstance(problem, StopIteration):
            self.future.set_exception(RuntimeError("the work raised StopIteration"))
        else:
            self.future.set_exception(problem)

    def interrupt(self) -> None:
        with self.lock:
            if not self.ended and self.thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self.thread.ident), ctypes.py_object(Interrupted)
                )


async def run_interruptibly(work: Callable[[], Any]) -> Any:
    worker = _Worker(work, asyncio.get_running_loop())
    worker.thread.start()
    try:
        return await worker.future
    except asyncio.CancelledError:
        worker.interrupt()
        raise
