"""Worker: pulls the calls of one pool, verifies them, runs them, replies.

It has no policy and no record: it runs what a gateway signed, within its time, and nothing else. What it runs it keeps
alive at the server; what it finished it can send again for a while.
"""

import asyncio
import contextlib
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from toolreeve.core.context import silent
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Meta, Output
from toolreeve.execution.progress import report_to
from toolreeve.execution.workers.link import NatsLink, registry_seconds
from toolreeve.execution.workers.pools import Pool
from toolreeve.execution.workers.wire import (
    DELIVERIES,
    MAX_PIECES,
    ONCE,
    PIECE,
    CallRefused,
    RemoteCall,
    call_subject,
    control_subject,
    encode,
    encode_error,
    encode_output,
    encode_refusal,
    pieces,
    registry_subject,
    reply_of,
    stream_of,
    unseal,
)

logger = logging.getLogger(__name__)

PULL_SECONDS = 5.0
LEAVE_SECONDS = 2.0
IDLE_SECONDS = 0.5
KEPT_BYTES = 64 * 1024 * 1024
KEPT_RESULTS = 1_000

Execute = Callable[[Meta, Callable[[str], None]], Awaitable[Output]]
Bind = Callable[[RemoteCall], Awaitable[Execute]]
"""Finds the tool of a call. Raises CallRefused for one that this worker cannot run."""


class _Delivery:
    """One delivered message. `token` names it to the gateway, which gives leave to one delivery of a call."""

    def __init__(self, message: Any, reply: str) -> None:
        self.message = message
        self.reply = reply
        self.execution = reply.rpartition(".")[2]
        self.token = os.urandom(6).hex()
        self.task: asyncio.Task[None]


class Worker:
    """Runs up to `capacity` calls at once. `now` is wall-clock time; `redact` is applied to progress; `tell` is told
    when it is ready and when it drains."""

    def __init__(
        self,
        link: NatsLink,
        pool: Pool,
        bind: Bind,
        *,
        name: str,
        capacity: int,
        facts: dict[str, Any],
        now: Callable[[], float],
        redact: Callable[[str], str] = str,
        tell: Callable[[str], None] = silent,
    ) -> None:
        self.link = link
        self.pool = pool
        self.name = name
        self.capacity = capacity
        self._bind = bind
        self._facts = facts
        self._now = now
        self._redact = redact
        self._tell = tell
        self._slots = asyncio.Semaphore(capacity)
        self._deliveries: dict[str, _Delivery] = {}
        self._results: OrderedDict[str, tuple[_Delivery, bytes]] = OrderedDict()
        self._kept = 0
        self._pulls = {kind: _Pull(self, kind) for kind in DELIVERIES}
        self._is_draining = False
        self._called = asyncio.Event()
        self._announce_first_call = self._called.set

    async def serve(self, stop: asyncio.Event, drain_seconds: float) -> int:
        """Until `stop`; then no more calls are taken, and the running ones have `drain_seconds` to end. Returns how
        many did not."""
        self.link.on_reconnect = self._pull_again
        await self.link.connect()
        await self.link.client.subscribe(control_subject(self.pool.name), cb=self._on_control)
        async with asyncio.TaskGroup() as group:
            pulling = [group.create_task(pull.keep()) for pull in self._pulls.values()]
            beating = [group.create_task(self._keep_alive()), group.create_task(self._register())]
            self._tell(f"ready as {self.name}")
            await stop.wait()
            self._tell(f"draining; calls that still run: {len(self._deliveries)}")
            for task in pulling:
                task.cancel()
            left = await self._drain(drain_seconds)
            for task in beating:
                task.cancel()
        await self.link.client.publish(self._key, headers={"KV-Operation": "DEL"})
        await self.link.close()
        return left

    async def _drain(self, seconds: float) -> int:
        """What the server sent before it heard of the end is still run."""
        self._is_draining = True
        await self._announce()
        for pull in self._pulls.values():
            await pull.end()
        running = [each.task for each in self._deliveries.values()]
        if not running:
            return 0
        _, left = await asyncio.wait(running, timeout=seconds)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=2)
        return len(left)

    async def _pull_again(self) -> None:
        """The server has forgotten what was asked for."""
        for pull in self._pulls.values():
            pull.reset()

    async def _keep_alive(self) -> None:
        """One heartbeat for all calls."""
        while True:
            await asyncio.sleep(self.link.settings.ack_wait / 3)
            for delivery in list(self._deliveries.values()):
                with contextlib.suppress(Exception):  # disconnected: the next one counts
                    await delivery.message.in_progress()

    @property
    def _key(self) -> str:
        return registry_subject(self.pool.name, self.name)

    async def _register(self) -> None:
        """Now and then, and with the first call: before that, there may be no registry yet."""
        seconds = registry_seconds(self.link.settings.ack_wait) / 3
        while True:
            with contextlib.suppress(Exception):  # disconnected: the next one counts
                await self._announce()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._called.wait()
                    self._called = asyncio.Event()  # never set again

    async def _announce(self) -> None:
        state = "draining" if self._is_draining else "ready"
        shown = {**self._facts, "capacity": self.capacity, "running": len(self._deliveries), "state": state}
        await self.link.client.publish(self._key, encode({**shown, "at": self._now()}))

    async def _on_control(self, message: Any) -> None:
        word, execution = json.loads(message.data)
        delivery = self._deliveries.get(execution)
        if word == "cancel" and delivery is not None:
            delivery.task.cancel()
        elif word == "probe" and delivery is not None:
            await self.link.client.publish(f"{delivery.reply}.alive.{delivery.token}")
        elif word == "probe" and execution in self._results:
            await self._send(*self._results[execution])

    def deliver(self, message: Any) -> None:
        reply = reply_of(message.headers, self.pool.name)
        if reply is None:
            logger.warning("a call without a reply subject of this pool is dropped: %s", message.subject)
            return
        delivery = _Delivery(message, reply)
        if (known := self._deliveries.get(delivery.execution)) is not None:  # delivered again while it runs here
            known.message = message
            return
        self._deliveries[delivery.execution] = delivery
        delivery.task = asyncio.create_task(self._handle(delivery))
        self._announce_first_call()

    async def _handle(self, delivery: _Delivery) -> None:
        try:
            content = await self._content(delivery)
            if content is not None:
                self._keep(delivery, content)
                await self._send(delivery, content)
                await delivery.message.ack()
        except Exception as problem:
            logger.warning("%s: the result could not be sent: %r", delivery.execution, problem)
        finally:
            del self._deliveries[delivery.execution]
            for pull in self._pulls.values():
                pull.wake()

    async def _content(self, delivery: _Delivery) -> bytes | None:
        """The reply; None if the call may not begin: another delivery of it was given leave, or nobody waits."""
        meta = Meta(call_id="", tool="", session="")
        try:
            async with self._slots:
                message = delivery.message
                call = unseal(message.headers, message.data, self.pool.keys, subject=message.subject, now=self._now())
                execute = await self._bind(call)
                if not await self._may_begin(delivery):
                    return None
                output = await execute(meta, self._reporter(delivery))
                return _bounded(encode_output(output, meta))
        except CallRefused as refusal:
            logger.warning("%s refused: %s", delivery.execution, refusal)
            return encode_refusal(str(refusal))
        except ToolError as error:
            return _bounded(encode_error(error, meta))
        except asyncio.CancelledError:
            message = "the worker was stopped" if self._is_draining else "the call was cancelled"
            return encode_error(ToolError(ErrorCode.CANCELLED, f"{message} before the call ended"), meta)

    async def _may_begin(self, delivery: _Delivery) -> bool:
        """A call that must not run twice needs the gateway's leave: a NATS server that was killed delivers again what
        it had delivered. Raises CallRefused if the gateway does not answer."""
        subject = f"{delivery.reply}.begin.{delivery.token}"
        if delivery.message.subject != call_subject(ONCE, self.pool.name):
            await self.link.client.publish(subject)
            return True
        until = _clock() + self.link.settings.ack_wait
        while _clock() < until:
            with contextlib.suppress(Exception):  # disconnected, or no gateway there: ask again
                answer = await self.link.client.request(subject, timeout=LEAVE_SECONDS)
                return bool(answer.data == b"+")
            await asyncio.sleep(0.1)
        raise CallRefused("the gateway did not answer the request to begin")

    def _reporter(self, delivery: _Delivery) -> Callable[[str], None]:
        async def send(text: str) -> None:
            await self.link.client.publish(f"{delivery.reply}.progress.{delivery.token}", text.encode())

        return report_to(send, self._redact)

    async def _send(self, delivery: _Delivery, content: bytes) -> None:
        for number, piece in pieces(content):
            await self.link.client.publish(f"{delivery.reply}.result.{delivery.token}.{number}", piece)

    def _keep(self, delivery: _Delivery, content: bytes) -> None:
        self._results[delivery.execution] = (delivery, content)
        self._kept += len(content)
        while self._kept > KEPT_BYTES or len(self._results) > KEPT_RESULTS:
            _, (_, dropped) = self._results.popitem(last=False)
            self._kept -= len(dropped)

    @property
    def room(self) -> int:
        return self.capacity - len(self._deliveries)


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _bounded(content: bytes) -> bytes:
    most = PIECE * MAX_PIECES
    if len(content) <= most:
        return content
    error = ToolError(ErrorCode.LIMIT, f"the result has {len(content)} bytes; a worker sends at most {most}")
    return encode_error(error, Meta(call_id="", tool="", session="", attempts=1))


class _Pull:
    """Asks one consumer for as many calls as there is room, again and again; each begins as it arrives.

    nats-py's own `fetch` waits for a whole batch while it holds the first call.
    """

    def __init__(self, worker: Worker, kind: str) -> None:
        self._worker = worker
        self._stream = stream_of(kind, worker.pool.name)
        self._asked = 0
        self._due = 0.0
        self._woken = asyncio.Event()
        self._subscription: Any = None
        self._has_complained = False

    def wake(self) -> None:
        self._woken.set()

    def reset(self) -> None:
        self._asked = 0
        self.wake()

    async def keep(self) -> None:
        client = self._worker.link.client
        inbox = client.new_inbox()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._worker.pool.name}"
        self._subscription = await client.subscribe(inbox, cb=self._arrived)
        while True:
            if _clock() > self._due:
                self._asked = 0
            room = self._worker.room - self._asked
            if room > 0 and self._asked <= self._worker.capacity // 2:
                request = {"batch": room, "expires": int(PULL_SECONDS * 1e9)}
                with contextlib.suppress(Exception):  # disconnected: asked again below
                    await client.publish(subject, encode(request), inbox)
                    self._asked += room
                    self._due = _clock() + PULL_SECONDS + 1
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._woken.wait()

    async def end(self) -> None:
        """No more calls; those that are on their way have arrived when this returns."""
        if self._subscription is not None:
            with contextlib.suppress(Exception):  # disconnected: nothing can arrive
                await self._subscription.drain()

    async def _arrived(self, message: Any) -> None:
        if message.reply:
            self._asked -= 1
            self._worker.deliver(message)
        else:
            self._on_status(message.headers or {})
        if self._asked <= self._worker.capacity // 2:
            self.wake()

    def _on_status(self, headers: dict[str, str]) -> None:
        """A request is over; so much of it was not used."""
        self._asked = max(0, self._asked - int(headers.get("Nats-Pending-Messages", self._asked)))
        if headers.get("Status") == "503":
            self._asked = self._worker.capacity  # nothing to pull from: asked again when the request would be over
            self._due = _clock() + 1
            if not self._has_complained:
                self._has_complained = True
                logger.warning("pool %r: no gateway has prepared it yet; waiting", self._worker.pool.name)
