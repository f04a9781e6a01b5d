"""Registry of workers: who serves which pool, as they say themselves."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolreeve.execution.workers.link import NatsLink
from toolreeve.execution.workers.wire import DELIVERIES, REGISTRY, stream_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """`waiting` are the calls that no worker has taken yet, by pool."""

    nats: str
    workers: Sequence["WorkerStatus"]
    waiting: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        return {"nats": self.nats, "workers": [each.to_dict() for each in self.workers], "waiting": dict(self.waiting)}


async def read_fleet(link: NatsLink, pools: Sequence[str]) -> FleetStatus:
    """Raises ToolError(WORKER_UNAVAILABLE)."""
    found = await list_workers(link)
    return FleetStatus(nats=link.settings.place, workers=found, waiting=await _count_waiting(link, pools))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStatus:
    """`state` is `ready` or `draining`; a worker that says nothing for a while is no longer listed."""

    name: str
    pool: str
    host: str
    pid: int
    version: str
    state: str
    capacity: int
    running: int
    since: float

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


async def list_workers(link: NatsLink) -> Sequence[WorkerStatus]:
    """By pool and name. Raises ToolError(WORKER_UNAVAILABLE)."""
    from nats.js.errors import BucketNotFoundError, KeyNotFoundError, NoKeysError

    try:
        bucket = await link.jetstream.key_value(REGISTRY)
        keys = await bucket.keys()
    except (NoKeysError, BucketNotFoundError):
        return ()
    except Exception as problem:
        raise link.unavailable(str(problem) or type(problem).__name__) from None
    found: list[WorkerStatus] = []
    for key in sorted(keys):
        try:
            entry = await bucket.get(key)
        except KeyNotFoundError:  # gone since it was listed
            continue
        found.append(_read(key, entry.value or b"{}"))
    return found


def _read(key: str, content: bytes) -> WorkerStatus:
    pool, _, name = key.partition(".")
    told = json.loads(content)
    shown = {each: told.get(each) for each in ("host", "pid", "version", "state", "capacity", "running", "since")}
    return WorkerStatus(name=name, pool=pool, **shown)


async def _count_waiting(link: NatsLink, pools: Sequence[str]) -> dict[str, int]:
    """Calls that no worker has taken yet, by pool."""
    waiting: dict[str, int] = {}
    for pool in pools:
        streams = [stream_of(kind, pool) for kind in DELIVERIES]
        found = [await link.ask(link.jetstream.consumer_info(stream, pool)) for stream in streams]
        waiting[pool] = sum(each.num_pending or 0 for each in found)
    return waiting
