"""Interruptible threads for blocking work.

Work is ended by raising in its thread: it stops at its next bytecode. Python cannot kill a thread, so a call into C (a
`time.sleep`, a driver) ends only by itself. The caller never waits for that: it gets its result at the deadline, and
the message says that the work may continue. An interrupted thread does no further work, so a late interrupt can never
hit another job.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

IDLE_SECONDS = 10.0


class Interrupted(BaseException):
    """Raised in a worker thread whose caller has gone. Not an Exception, so `except Exception` lets it through."""


class _Job:
    """One piece of work. The lock orders its end against an interrupt: never an interrupt after the end."""

    __slots__ = ("ended", "future", "interrupted", "lock", "loop", "thread", "work")

    def __init__(self, work: Callable[[], Any], loop: "asyncio.AbstractEventLoop") -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.lock = threading.Lock()
        self.thread: int | None = None
        self.ended = False
        self.interrupted = False

    def run(self) -> None:
        value = None
        problem = None
        with self.lock:
            if self.interrupted:
                return
            self.thread = threading.get_ident()
        try:
            value = self.work()
        except BaseException as raised:  # any exception belongs to the caller
            problem = raised
        with self.lock:
            self.ended = True
        with contextlib.suppress(RuntimeError):  # the loop has closed: no caller is left
            self.loop.call_soon_threadsafe(self._deliver, value, problem)

    def _deliver(self, value: Any, problem: BaseException | None) -> None:
        if self.future.done():
            return
        if problem is None:
            self.future.set_result(value)
        elif isinstance(problem, StopIteration | Interrupted | SystemExit | KeyboardInterrupt):
            self.future.set_exception(RuntimeError(f"the work ended with {type(problem).__name__}"))
        else:
            self.future.set_exception(problem)

    def interrupt(self) -> None:
        import ctypes

        with self.lock:
            self.interrupted = True
            if self.thread is not None and not self.ended:
                target = ctypes.c_ulong(self.thread)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(Interrupted))


class _Pool:
    """Idle threads exit after a while. Grows as needed: blocked work never delays other work."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, job: _Job) -> None:
        with self._lock:
            free = self._idle > 0
            if free:
                self._idle -= 1
        if not free:
            threading.Thread(target=self._work, args=(job,), daemon=True, name="toolreeve-work").start()
        else:
            self._jobs.put(job)

    def _work(self, job: _Job | None) -> None:
        with contextlib.suppress(Interrupted):  # a late interrupt ends this thread, as it must
            while job is not None:
                job.run()
                if job.interrupted:
                    return
                job = self._next()

    def _next(self) -> _Job | None:
        with self._lock:
            self._idle += 1
        try:
            return self._jobs.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            with self._lock:
                if self._idle > 0:
                    self._idle -= 1
                    return None
            return self._jobs.get()  # a job was promised to this thread at the very last moment


_pool = _Pool()


async def run_interruptibly(work: Callable[[], Any]) -> Any:
    """Run blocking work in a thread. If the caller is cancelled, the thread is stopped at its next bytecode."""
    job = _Job(work, asyncio.get_running_loop())
    _pool.submit(job)
    try:
        return await job.future
    except asyncio.CancelledError:
        job.interrupt()
        raise
