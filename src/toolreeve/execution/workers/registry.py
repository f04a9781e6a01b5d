"""Registry of workers: who serves which pool, as they say themselves."""

import json
from collections.abc import Sequence

from typing_extensions import TypedDict

from toolreeve.execution.workers.link import NatsLink
from toolreeve.execution.workers.wire import DELIVERIES, REGISTRY, stream_of


class WorkerRow(TypedDict):
    name: str
    pool: str
    host: str
    pid: int
    version: str
    state: str  # `ready` or `draining`; a worker that says nothing for a while is no longer listed
    capacity: int
    running: int
    since: float


class WorkerList(TypedDict):
    """`nats` is where they are reached, empty if no pools are configured; `waiting` are the calls that no worker has
    taken yet, by pool."""

    nats: str
    workers: list[WorkerRow]
    waiting: dict[str, int]


async def read_fleet(link: NatsLink, pools: Sequence[str]) -> WorkerList:
    """Raises ToolError(WORKER_UNAVAILABLE)."""
    found = await _list_workers(link)
    return WorkerList(nats=link.settings.place, workers=found, waiting=await _count_waiting(link, pools))


async def explain_wait(link: NatsLink, pool: str) -> str:
    """Why no worker takes a call of this pool; empty if one should. Raises ToolError(WORKER_UNAVAILABLE)."""
    ready = [each for each in await _list_workers(link) if each["pool"] == pool and each["state"] == "ready"]
    if not ready:
        return f"pool {pool!r} has no worker: start one with `toolreeve worker --pool {pool}`"
    running, capacity = sum(each["running"] for each in ready), sum(each["capacity"] for each in ready)
    return f"the workers of pool {pool!r} are busy: {running} of {capacity} calls run" if running >= capacity else ""


async def _list_workers(link: NatsLink) -> list[WorkerRow]:
    """By pool and name. Raises ToolError(WORKER_UNAVAILABLE)."""
    from nats.js.errors import BucketNotFoundError, KeyNotFoundError, NoKeysError

    try:
        bucket = await link.jetstream.key_value(REGISTRY)
        keys = await bucket.keys()
    except (NoKeysError, BucketNotFoundError):
        return []
    except Exception as problem:
        raise link.unavailable(str(problem) or type(problem).__name__) from None
    found: list[WorkerRow] = []
    for key in sorted(keys):
        try:
            entry = await bucket.get(key)
        except KeyNotFoundError:  # gone since it was listed
            continue
        found.append(_read(key, entry.value or b"{}"))
    return found


def _read(key: str, content: bytes) -> WorkerRow:
    pool, _, name = key.partition(".")
    told = {**json.loads(content), "name": name, "pool": pool}
    return {each: told.get(each) for each in WorkerRow.__annotations__}  # type: ignore[return-value]  # as it said


async def _count_waiting(link: NatsLink, pools: Sequence[str]) -> dict[str, int]:
    """Calls that no worker has taken yet, by pool."""
    waiting: dict[str, int] = {}
    for pool in pools:
        streams = [stream_of(kind, pool) for kind in DELIVERIES]
        found = [await link.ask(link.jetstream.consumer_info(stream, pool)) for stream in streams]
        waiting[pool] = sum(each.num_pending or 0 for each in found)
    return waiting
