"""Remote executor: sends calls to worker pools, and waits for their results.

A call that must not run twice begins only with this gateway's leave, which is given to one delivery: whatever NATS
delivers again, a call that was not given leave has not run. A delivery that is never acknowledged is announced by the
server itself; the call is then lost, its outcome unknown, and it is not run again.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.context import ProgramBounds, silent, unbound
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Meta, Output
from toolreeve.core.trial import Confinement, TrialImpossible
from toolreeve.execution.executor import GRACE, Executor
from toolreeve.execution.workers.link import NatsLink, NatsSettings
from toolreeve.execution.workers.pools import Pool, Pools
from toolreeve.execution.workers.registry import explain_wait
from toolreeve.execution.workers.wire import (
    ONCE,
    REPEAT,
    Assembler,
    CallRefused,
    SignedCall,
    call_subject,
    control_subject,
    decode_result,
    encode,
    new_remote_call,
    reply_subject,
    seal,
)

ADVISORY = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES"
PUBLISH_SECONDS = 2.0
PUBLISH_PAUSE = 0.2
PUBLISH_LIMIT = 15.0
"""A cluster without a leader finds one within that time."""
PROBE_SECONDS = 1.0
NOTICE_SECONDS = 1.0
"""A call that nobody begins for so long tells its caller what it waits for."""
FULL = 10_077
"""JetStream's code for a subject that holds as many messages as it may."""

logger = logging.getLogger(__name__)
ReportTo = Callable[[Action], Callable[[str], None] | None]


@dataclass(slots=True, eq=False)
class _Execution:
    """One call on its way. `holder` is the delivery that was given leave, or that last began; `waits` says why there is
    none yet."""

    id: str
    pool: Pool
    kind: str
    tool: str
    allowed: float
    progress: Callable[[str], None]
    result: asyncio.Future[bytes]
    envelope: SignedCall
    until: float
    waits: str = ""
    holder: str = ""
    copies: int = 0
    place: tuple[str, int] | None = None
    timer: asyncio.TimerHandle | None = None
    pieces: dict[str, Assembler] = field(default_factory=dict)

    def fail(self, error: ToolError) -> None:
        if not self.result.done():
            self.result.set_exception(error)

    def arm(self, seconds: float, then: Callable[[], None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(seconds, then)


class RemoteExecutor:
    """Runs the tools of the pools on workers, all others with `local`. Connects for the first call.

    `now` is wall-clock time; `version` is that of this program, for messages.
    """

    def __init__(
        self,
        local: Executor,
        pools: Pools,
        settings: NatsSettings,
        *,
        timeout: float,
        progress: ReportTo,
        now: Callable[[], float],
        version: str,
    ) -> None:
        self.pools = pools
        self.link = NatsLink(settings, name="toolreeve gateway")
        self.link.on_reconnect = self._probe_all
        self._local = local
        self._settings = settings
        self._timeout = timeout
        self._progress = progress
        self._now = now
        self._version = version
        self._name = os.urandom(8).hex()
        self._running: dict[str, _Execution] = {}
        self._places: dict[tuple[str, int], _Execution] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._seen_waits: dict[str, tuple[float, str]] = {}
        self._looking = asyncio.Lock()
        self._connecting = asyncio.Lock()
        self._is_connected = False

    async def connect(self) -> NatsLink:
        """The link, with streams and subscriptions. Raises ToolError(WORKER_UNAVAILABLE)."""
        if self._is_connected:
            return self.link
        async with self._connecting:
            if not self._is_connected:
                await self.link.connect()
                try:
                    await self.link.prepare(self.pools.names)
                    await self.link.client.subscribe(reply_subject("*", self._name, ">"), cb=self._on_reply)
                    for pool in self.pools.names:
                        await self.link.client.subscribe(f"{ADVISORY}.*.{pool}", cb=self._on_advisory)
                    await self.link.client.flush()
                except BaseException:
                    await self.link.close()
                    raise
                self._is_connected = True
        return self.link

    async def run(self, action: Action, meta: Meta, bounds: Callable[[], ProgramBounds] = unbound) -> Output:
        pool = self.pools.find(action.spec)
        if pool is None:
            return await self._local.run(action, meta, bounds)
        limits = bounds()
        if limits.confinement is Confinement.TRY:
            raise TrialImpossible(f"{action.spec.name} runs on the worker pool {pool.name!r}")
        await self.connect()
        meta.attempts = 1
        execution = self._new_execution(action, meta, limits, pool)
        try:
            await self._publish(execution)
            content = await execution.result
        except asyncio.CancelledError:
            self._spawn(self._cancel(execution))
            raise
        except ToolError:
            if not execution.holder:
                self._spawn(self._cancel(execution))
            raise
        finally:
            self._forget(execution)
        try:
            return decode_result(content, meta)
        except CallRefused as refusal:
            if execution.kind == ONCE and execution.holder:
                raise self._lost(execution, f"refused {execution.tool} after it had leave to run it") from None
            raise self._unavailable(execution, f"a worker refused the call: {refusal}") from None

    def _new_execution(self, action: Action, meta: Meta, bounds: ProgramBounds, pool: Pool) -> _Execution:
        limits = action.spec.limits
        seconds = float(action.call.timeout or limits.timeout or self._timeout)
        attempts, pause = (1, 0.0) if limits.retry is None else (limits.retry.attempts, limits.retry.max_delay)
        kind = REPEAT if action.read_only or action.spec.idempotent else ONCE
        number = os.urandom(8).hex()
        loop = asyncio.get_running_loop()
        envelope = seal(
            new_remote_call(action, meta, bounds, timeout=seconds, version=self._version),
            pool.keys[0],
            subject=call_subject(kind, pool.name),
            reply=reply_subject(pool.name, self._name, number),
            issued=self._now(),
            lifetime=self._settings.queue_timeout,
        )
        execution = _Execution(
            id=number,
            pool=pool,
            kind=kind,
            tool=action.spec.name,
            allowed=attempts * (seconds + GRACE + pause),
            progress=self._progress(action) or silent,
            result=loop.create_future(),
            envelope=envelope,
            until=loop.time() + self._settings.queue_timeout,
        )
        self._running[number] = execution
        execution.arm(min(NOTICE_SECONDS, self._settings.queue_timeout), partial(self._wait, execution))
        return execution

    def _forget(self, execution: _Execution) -> None:
        self._running.pop(execution.id, None)
        if execution.timer is not None:
            execution.timer.cancel()
        if execution.place is not None:
            self._places.pop(execution.place, None)
        if execution.result.done() and not execution.result.cancelled():
            execution.result.exception()  # retrieved: the publication may have failed before

    async def _publish(self, execution: _Execution) -> None:
        """Until it is stored, begun, or too late. The same message twice is stored once."""
        from nats.errors import Error, MaxPayloadError
        from nats.js.errors import APIError

        body = execution.envelope.body
        headers = {**execution.envelope.headers, "Nats-Msg-Id": f"{execution.id}.{execution.copies}"}
        subject = call_subject(execution.kind, execution.pool.name)
        until = self._now() + PUBLISH_LIMIT
        while not execution.result.done() and not execution.holder:
            try:
                stored = await self.link.jetstream.publish(subject, body, timeout=PUBLISH_SECONDS, headers=headers)
            except MaxPayloadError:
                most = self.link.client.max_payload
                message = f"the arguments have {len(body)} bytes; NATS takes {most} (its max_payload)"
                raise ToolError(ErrorCode.INVALID_PARAMS, message) from None
            except (Error, TimeoutError, OSError) as problem:  # not stored, or nobody knows: the same message again
                if isinstance(problem, APIError) and problem.err_code == FULL:
                    raise self._unavailable(execution, self._full) from None
                if self._now() > until:
                    why = self.link.problem or str(problem) or type(problem).__name__
                    raise self._unavailable(execution, f"NATS did not store the call: {why}") from None
                await asyncio.sleep(PUBLISH_PAUSE)
            else:
                execution.place = (stored.stream, stored.seq)
                self._places[execution.place] = execution
                return

    @property
    def _full(self) -> str:
        return f"{self._settings.queue_limit} calls wait already (workers.queue_limit)"

    def _wait(self, execution: _Execution) -> None:
        """Nobody has begun the call. Without leave, nothing of it can run any more once it is given up."""
        left = execution.until - asyncio.get_running_loop().time()
        if left > 0:
            execution.arm(min(NOTICE_SECONDS, left), partial(self._wait, execution))
            self._spawn(self._tell_wait(execution))
            return
        waited = f"no worker took the call within {self._settings.queue_timeout:g} s (workers.queue_timeout)"
        execution.fail(self._unavailable(execution, f"{waited}; {execution.waits}" if execution.waits else waited))

    async def _tell_wait(self, execution: _Execution) -> None:
        """One look at the registry serves all calls that wait for the pool."""
        pool = execution.pool.name
        now = asyncio.get_running_loop().time()
        async with self._looking:
            if now - self._seen_waits.get(pool, (-NOTICE_SECONDS, ""))[0] >= NOTICE_SECONDS:
                with contextlib.suppress(ToolError):  # the call itself finds that NATS is away
                    why = await explain_wait(self.link, pool)
                    if why and why != self._seen_waits.get(pool, (0.0, ""))[1]:
                        logger.warning("a call waits: %s", why)
                    self._seen_waits[pool] = (now, why)
        _, why = self._seen_waits.get(pool, (0.0, ""))
        if why != execution.waits and not execution.holder and not execution.result.done():
            execution.waits = why
            if why:
                execution.progress(why)

    def _unavailable(self, execution: _Execution, why: str) -> ToolError:
        message = f"pool {execution.pool.name!r}: {why}; nothing ran. `toolreeve workers` lists the workers"
        return ToolError(ErrorCode.WORKER_UNAVAILABLE, message)

    async def _on_reply(self, message: Any) -> None:
        _, _, pool, _, call, kind, token, *rest = message.subject.split(".")
        execution = self._running.get(call)
        if execution is None or execution.pool.name != pool or execution.result.done():
            if kind == "begin" and message.reply:
                await message.respond(b"-")
            return
        match kind:
            case "begin":
                await self._on_begin(execution, token, message)
            case "alive" if execution.holder == token:
                execution.arm(self._settings.ack_wait, partial(self._probe, execution))
            case "progress" if execution.holder == token:
                execution.progress(message.data.decode(errors="replace"))
            case "result" if execution.kind == REPEAT or execution.holder in ("", token):
                number, count = map(int, rest)
                whole = execution.pieces.setdefault(token, Assembler()).add(number, count, message.data)
                if whole is not None:
                    execution.result.set_result(whole)

    async def _on_begin(self, execution: _Execution, token: str, message: Any) -> None:
        """Leave for one delivery, which may ask again if the answer was lost; repeatable calls need none."""
        if execution.kind == ONCE and execution.holder not in ("", token):
            await message.respond(b"-")
            return
        execution.holder = token
        execution.arm(execution.allowed + self._settings.ack_wait, partial(self._probe, execution))
        if message.reply:
            await message.respond(b"+")

    async def _on_advisory(self, message: Any) -> None:
        """The server gave up on a delivery that nobody acknowledged. It keeps the message until it is deleted."""
        told = json.loads(message.data)
        place = (told["stream"], told["stream_seq"])
        execution = self._places.pop(place, None)
        if execution is not None and execution.holder:
            self._probe(execution)
        elif execution is not None:
            self._spawn(self._repeat(execution))
        self._spawn(self._delete(place))

    async def _repeat(self, execution: _Execution) -> None:
        """Delivered, but not begun: the worker died or stopped before. It is safe to send the call again."""
        execution.copies += 1
        try:
            await self._publish(execution)
        except ToolError as error:
            execution.fail(error)

    def _probe(self, execution: _Execution) -> None:
        """Ask the worker for the call or its result; silence means that the worker is gone."""
        execution.arm(PROBE_SECONDS, partial(self._lose, execution))
        self._spawn(self._control(execution, "probe"))

    async def _probe_all(self) -> None:
        """After a reconnect: results may have been sent meanwhile."""
        for execution in list(self._running.values()):
            if execution.holder:
                self._spawn(self._control(execution, "probe"))

    def _lose(self, execution: _Execution) -> None:
        execution.fail(self._lost(execution, f"that ran {execution.tool} is gone"))

    def _lost(self, execution: _Execution, what: str) -> ToolError:
        again = execution.kind == REPEAT
        advice = "it may be called again" if again else "it is not run again: check what it did first"
        message = f"the worker of pool {execution.pool.name!r} {what}; outcome unknown; {advice}"
        return ToolError(ErrorCode.WORKER_LOST, message, retryable=again)

    async def _cancel(self, execution: _Execution) -> None:
        await self._control(execution, "cancel")
        if execution.place is not None:
            await self._delete(execution.place)

    async def _control(self, execution: _Execution, word: str) -> None:
        with contextlib.suppress(Exception):  # the timer decides if nothing comes back
            await self.link.client.publish(control_subject(execution.pool.name), encode([word, execution.id]))

    async def _delete(self, place: tuple[str, int]) -> None:
        with contextlib.suppress(Exception):  # another gateway was first, or it was acknowledged after all
            await self.link.jetstream.delete_msg(*place)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> int:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=GRACE)
        if self._is_connected:
            await self.link.close()
        return await self._local.close()
