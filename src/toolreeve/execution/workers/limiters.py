"""Shared limiters: rates, concurrency, breakers and caches of all gateways, in NATS.

Each state is one key, changed by compare-and-set: of two gateways that change it at once, one reads again. Times are
wall-clock times of the gateways. They are as volatile as NATS itself: budgets are in the database, never here.
"""

import asyncio
import contextlib
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from toolreeve.core.action import Action
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import CircuitBreaker, RateLimit
from toolreeve.core.result import Meta, Output
from toolreeve.execution.breaker import Breaker, BreakerState
from toolreeve.execution.cache import Cache
from toolreeve.execution.limiters import Release
from toolreeve.execution.workers.link import NatsLink
from toolreeve.execution.workers.wire import LIMITS, PIECE, decode_result, encode, encode_output, spec_digest

TRIES = 200
LEASE_SECONDS = 30.0
"""A place among the running calls is given back by then, should its gateway die."""
WAIT_SECONDS = 0.05
NO_META = Meta(call_id="", tool="", session="")

T = TypeVar("T")
Connect = Callable[[], Awaitable[NatsLink]]
Change = Callable[[Any], tuple[Any, T]]
"""From the old state, None at first, to the new one and an answer. Called again after a conflict."""


class ChangingState(Protocol):
    """JSON values by key, changed by one gateway at a time: in NATS, or in the database."""

    async def change(self, key: str, change: Change[T]) -> T:
        """Raises ToolError if what keeps them is away."""
        ...


class SharedState:
    """JSON values by key. `connect` is awaited for the first use."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._bucket: Any = None

    async def change(self, key: str, change: Change[T]) -> T:
        """Raises ToolError(WORKER_UNAVAILABLE) if NATS does not answer."""
        from nats.errors import Error
        from nats.js.errors import KeyWrongLastSequenceError

        link = await self._connect()
        try:
            bucket = await self._open(link)
            for attempt in range(TRIES):
                value, revision = await _read(bucket, key)
                new, answer = change(value)
                if new == value:
                    return answer
                try:
                    await bucket.update(key, encode(new), last=revision)
                except KeyWrongLastSequenceError:
                    await asyncio.sleep(min(0.05, 0.001 * attempt))
                else:
                    return answer
        except (TimeoutError, Error) as problem:
            raise link.unavailable(f"shared limits (workers.limits): {problem}") from None
        raise link.unavailable(f"shared limits (workers.limits): {key} changes too fast")

    async def _open(self, link: NatsLink) -> Any:
        from nats.js.api import KeyValueConfig

        if self._bucket is None:
            config = KeyValueConfig(bucket=LIMITS, ttl=86_400, replicas=link.settings.replicas)
            self._bucket = await link.jetstream.create_key_value(config)
        return self._bucket


async def _read(bucket: Any, key: str) -> tuple[Any, int]:
    from nats.js.errors import KeyDeletedError, KeyNotFoundError

    try:
        entry = await bucket.get(key)
    except KeyDeletedError as gone:
        return None, gone.entry.revision if gone.entry is not None else 0
    except KeyNotFoundError:
        return None, 0
    return json.loads(entry.value or b"null"), entry.revision


def _key(kind: str, name: str) -> str:
    return f"{kind}.{hashlib.sha256(name.encode()).hexdigest()[:32]}"


class SharedRates:
    def __init__(self, state: SharedState) -> None:
        self._state = state

    async def take(self, key: str, limit: RateLimit, now: float) -> float:
        """Seconds to wait; 0.0 means admitted and counted."""

        def count(marks: list[float] | None) -> tuple[list[float], float]:
            recent = [mark for mark in marks or () if now - limit.per < mark <= now + limit.per]
            if len(recent) < limit.calls:
                return [*recent, now], 0.0
            return recent, max(0.001, recent[-limit.calls] + limit.per - now)

        return await self._state.change(_key("rate", key), count)


def _stay(place: str, until: float, places: dict[str, float] | None) -> tuple[dict[str, float], None]:
    return {**(places or {}), place: until}, None


class SharedConcurrency:
    """Limits of single tools are shared; `all_calls` is this gateway's own limit for all its calls."""

    def __init__(self, state: SharedState, all_calls: Any, now: Callable[[], float]) -> None:
        self.limits_all = all_calls.limits_all
        self._state = state
        self._all = all_calls
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()

    async def acquire(self, tool: str, limit: int | None) -> Release:
        release: Release = await self._all.acquire(tool, None)
        if not limit:
            return release
        place = os.urandom(6).hex()
        try:
            while not await self._take(tool, limit, place):  # noqa: ASYNC110 - another gateway gives its place back
                await asyncio.sleep(WAIT_SECONDS)
        except BaseException:
            release()
            self._spawn(self._give_back(tool, place))
            raise
        renewing = asyncio.create_task(self._renew(tool, place))

        def give_back() -> None:
            renewing.cancel()
            release()
            self._spawn(self._give_back(tool, place))

        return give_back

    def forget(self, tool: str) -> None:
        """Places end by themselves."""

    async def _take(self, tool: str, limit: int, place: str) -> bool:
        now = self._now()

        def enter(places: dict[str, float] | None) -> tuple[dict[str, float], bool]:
            taken = {each: until for each, until in (places or {}).items() if until > now}
            if len(taken) >= limit and place not in taken:
                return taken, False
            return {**taken, place: now + LEASE_SECONDS}, True

        return await self._state.change(_key("places", tool), enter)

    async def _renew(self, tool: str, place: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            await self._state.change(_key("places", tool), partial(_stay, place, self._now() + LEASE_SECONDS))

    async def _give_back(self, tool: str, place: str) -> None:
        def leave(places: dict[str, float] | None) -> tuple[dict[str, float], None]:
            return {each: until for each, until in (places or {}).items() if each != place}, None

        await self._state.change(_key("places", tool), leave)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved: the lease ends by itself


@dataclass(frozen=True, slots=True)
class SharedTicket:
    breakers: "SharedBreakers"
    tool: str
    settings: CircuitBreaker
    number: int

    async def leave(self, *, failed: bool, completed: bool) -> None:
        await self.breakers.leave(self, failed=failed, completed=completed)


def _enter(breaker: Breaker, now: float) -> int | ToolError:
    try:
        return breaker.enter(now)
    except ToolError as refusal:
        return refusal


class SharedBreakers:
    """A closed breaker costs a read for a call, and a write only when something changes. A probe whose gateway died is
    forgotten after the recovery timeout."""

    def __init__(self, state: ChangingState, now: Callable[[], float]) -> None:
        self._state = state
        self._now = now
        self._seen: dict[str, BreakerState] = {}

    async def enter(self, tool: str, settings: CircuitBreaker) -> SharedTicket:
        """Raises ToolError(CIRCUIT_OPEN)."""
        answer: int | ToolError = await self._change(tool, settings, _enter)
        if isinstance(answer, ToolError):
            raise answer
        return SharedTicket(self, tool, settings, answer)

    async def leave(self, ticket: SharedTicket, *, failed: bool, completed: bool) -> None:
        def leave(breaker: Breaker, now: float) -> None:
            breaker.leave(ticket.number, now, failed=failed, completed=completed)

        try:
            await self._change(ticket.tool, ticket.settings, leave)
        except ToolError as unavailable:  # the call has ended: it keeps its result
            if unavailable.code not in (ErrorCode.WORKER_UNAVAILABLE, ErrorCode.AUDIT_ERROR):
                raise

    async def _change(self, tool: str, settings: CircuitBreaker, act: Callable[[Breaker, float], T]) -> T:
        now = self._now()

        def change(stored: Any) -> tuple[Any, T]:
            state, at = stored or (None, now)
            breaker = Breaker.restore(settings, state, probe_ended=now - at > settings.recovery_timeout)
            before = breaker.saved()
            answer = act(breaker, now)
            self._seen[tool] = breaker.state(now)
            return stored if breaker.saved() == before else [breaker.saved(), now], answer

        return await self._state.change(_key("breaker", tool), change)

    def states(self) -> Mapping[str, str]:
        """As this gateway last saw them."""
        return {tool: str(state) for tool, state in self._seen.items()}

    def forget(self, tool: str) -> None:
        self._seen.pop(tool, None)


@dataclass(slots=True)
class SharedSlot:
    state: SharedState
    key: str
    expires: Callable[[], float]
    output: Output | None

    async def store(self, output: Output) -> None:
        """A success that JSON cannot carry, or that is large, is not kept; nor is any while NATS is away."""
        with contextlib.suppress(ToolError):
            content = encode_output(output, NO_META).decode()
            if len(content) <= PIECE:
                await self.state.change(self.key, lambda _: ([self.expires(), content], None))


class SharedCaches:
    """The key has the definition of the tool: one that was replaced finds nothing."""

    def __init__(self, state: SharedState, now: Callable[[], float]) -> None:
        self._state = state
        self._now = now
        self._keys: dict[str, Cache] = {}

    async def open(self, action: Action) -> SharedSlot | None:
        settings = action.spec.limits.caching
        if settings is None or not settings.enabled:
            return None
        cache = self._keys.setdefault(action.spec.name, Cache(settings))
        key = _key("cache", f"{spec_digest(action.spec)} {cache.key(action)}")
        stored = await self._state.change(key, lambda found: (found, found))
        output = None
        if stored is not None and stored[0] > self._now():
            output = replace(decode_result(stored[1].encode(), NO_META), cost=0.0)
        return SharedSlot(self._state, key, lambda: self._now() + settings.ttl, output)

    def forget(self, tool: str) -> None:
        self._keys.pop(tool, None)
