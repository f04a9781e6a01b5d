"""Executor: runs attempts under a deadline, repeated only if safe.

Every wait has a timeout. A tool that does not stop when cancelled is abandoned, and the result says so; its caller is
never left waiting with it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Protocol

from toolreeve.core.action import Action
from toolreeve.core.context import Context, ProgramBounds, Services, silent, unbound
from toolreeve.core.deadline import Alarms, Deadline
from toolreeve.core.errors import ErrorCode, ToolError, describe_crash
from toolreeve.core.result import Meta, Output
from toolreeve.execution.retry import delay, may_repeat

GRACE = 1.0


class Executor(Protocol):
    """Runs an admitted call somewhere: in this process, or elsewhere."""

    async def run(self, action: Action, meta: Meta, bounds: Callable[[], ProgramBounds] = unbound) -> Output:
        """The tool's output. `bounds` are those of the programs that the tool starts. Counts its attempts in `meta`;
        raises ToolError."""
        ...

    async def close(self) -> int:
        """Stop what still runs; returns how many calls did not stop."""
        ...


class LocalExecutor:
    """Runs calls in this process.

    `patience` is the timeout of a question that a tool asks a person; `draw` returns random numbers in [0, 1) for
    jitter.
    """

    def __init__(
        self,
        services: Services,
        *,
        timeout: float,
        patience: float,
        draw: Callable[[], float],
        progress: Callable[[Action], Callable[[str], None] | None],
    ) -> None:
        self._services = services
        self._timeout = timeout
        self._patience = patience
        self._draw = draw
        self._progress = progress
        self._alarms = Alarms()
        self._abandoned: set[asyncio.Task[Output]] = set()

    async def run(self, action: Action, meta: Meta, bounds: Callable[[], ProgramBounds] = unbound) -> Output:
        retry = action.tool.spec.limits.retry
        meta.attempts = 1
        if retry is None:
            return await self._attempt(action, meta, bounds)
        while True:
            try:
                return await self._attempt(action, meta, bounds)
            except ToolError as error:
                if meta.attempts >= retry.attempts or not may_repeat(error, action):
                    raise
            await asyncio.sleep(delay(retry, meta.attempts, self._draw()))
            meta.attempts += 1

    def _attempt(self, action: Action, meta: Meta, bounds: Callable[[], ProgramBounds]) -> Awaitable[Output]:
        call = action.call
        tool = action.tool
        seconds = float(call.timeout or tool.spec.limits.timeout or self._timeout)
        deadline = Deadline(seconds, self._patience, self._alarms)
        progress = self._progress(action) or silent
        approved = meta.approved_by is not None
        context = Context(
            call,
            self._services,
            progress,
            deadline,
            approved=approved,
            notices=meta.quarantined,
            bounds=bounds,
        )
        running = tool.run(action.args, context)  # type: ignore[arg-type]
        return _run_inline(running, deadline) if tool.inline else self._run_in_task(running, deadline)  # type: ignore[arg-type]

    async def _run_in_task(self, running: Coroutine[Any, Any, Output], deadline: Deadline) -> Output:
        """A separate task, so that a tool which swallows its cancellation cannot hold its caller."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(_contain(running))
        woken = loop.create_future()
        deadline.start(lambda: _wake(woken))
        task.add_done_callback(lambda _: _wake(woken))
        try:
            await woken
        except asyncio.CancelledError:
            await self._stop(task)
            raise
        finally:
            deadline.stop()
        if task.done():
            return _result(task)
        if await self._stop(task):
            raise timed_out(deadline.seconds)
        raise timed_out(deadline.seconds, "; it did not stop when it was cancelled and may still be running")

    async def _stop(self, task: asyncio.Task[Output]) -> bool:
        """Whether the task ended when cancelled. If not, `close` cancels it again."""
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE)
        if not task.done():
            self._abandoned.add(task)
            task.add_done_callback(self._abandoned.discard)
            return False
        if not task.cancelled():
            task.exception()  # retrieved: an exception after the deadline is of no interest
        return True

    async def close(self) -> int:
        """Cancel abandoned tasks once more; returns how many still run."""
        for task in self._abandoned:
            task.cancel()
        if self._abandoned:
            await asyncio.wait(set(self._abandoned), timeout=GRACE)
        self._alarms.close()
        return len(self._abandoned)


async def _contain(running: Coroutine[Any, Any, Output]) -> Output:
    """An exception of a tool is a failure of the tool, SystemExit included: asyncio would let that end the loop."""
    try:
        return await running
    except ToolError:
        raise
    except (Exception, SystemExit) as crash:
        raise ToolError(ErrorCode.TOOL_EXEC, describe_crash(crash)) from crash


def timed_out(seconds: float, remark: str = "") -> ToolError:
    return ToolError(ErrorCode.TIMEOUT, f"the tool did not finish within {seconds:g} s{remark}")


def _self_cancelled() -> ToolError:
    return ToolError(ErrorCode.CANCELLED, "the tool cancelled itself")


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _result(task: asyncio.Task[Output]) -> Output:
    if task.cancelled():
        raise _self_cancelled()
    problem = task.exception()
    if problem is not None and not isinstance(problem, ToolError):  # a BaseException does not leave a tool either
        raise ToolError(ErrorCode.TOOL_EXEC, describe_crash(problem)) from problem
    return task.result()


async def _run_inline(running: Coroutine[Any, Any, Output], deadline: Deadline) -> Output:
    """In the caller's task. The first step runs without a timer: most inline tools end in it."""
    task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]
    cancelled_before = task.cancelling()
    try:
        waiting = running.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    except asyncio.CancelledError:
        raise _self_cancelled() from None
    deadline.start(task.cancel)
    try:
        return await _Resumed(running, waiting)
    except asyncio.CancelledError:
        if deadline.has_passed and task.cancelling() == cancelled_before + 1:  # only the deadline cancelled it
            raise timed_out(deadline.seconds) from None
        if task.cancelling() == cancelled_before:
            raise _self_cancelled() from None
        raise
    finally:
        deadline.stop()
        if deadline.has_passed:
            task.uncancel()


class _Resumed(Awaitable[Output]):
    """The rest of a coroutine whose first step has run and awaits `waiting`."""

    def __init__(self, running: Coroutine[Any, Any, Output], waiting: Any) -> None:
        self._running = running
        self._waiting = waiting

    def __await__(self) -> Generator[Any, Any, Output]:
        waiting = self._waiting
        while True:
            raised: BaseException | None = None
            try:
                sent = yield waiting
            except BaseException as problem:  # thrown into the coroutine below
                raised = problem
            try:
                waiting = self._running.send(sent) if raised is None else self._running.throw(raised)
            except StopIteration as ended:
                return ended.value  # type: ignore[no-any-return]
