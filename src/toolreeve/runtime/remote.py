"""Builds pools, connection and remote executor from the [workers] table."""

import time
from dataclasses import replace
from functools import partial

from toolreeve.config import Configuration
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.suggest import hint_similar
from toolreeve.core.toolset import read_toolset
from toolreeve.core.version import VERSION
from toolreeve.execution.executor import Executor
from toolreeve.execution.limiters import Limiters
from toolreeve.execution.workers.link import NatsLink, NatsSettings
from toolreeve.execution.workers.pools import Pool, Pools
from toolreeve.execution.workers.registry import WorkerList, read_fleet
from toolreeve.execution.workers.remote import RemoteExecutor, ReportTo
from toolreeve.execution.workers.signing import PoolKey, read_key


def new_remote_executor(configuration: Configuration, local: Executor, progress: ReportTo) -> RemoteExecutor:
    return RemoteExecutor(
        local,
        new_pools(configuration),
        nats_settings(configuration),
        timeout=configuration.settings.limits.timeout,
        progress=progress,
        now=time.time,
        version=VERSION,
    )


def share_limiters(limiters: Limiters, remote: RemoteExecutor) -> Limiters:
    """The same limits for all gateways of the same NATS; budgets stay in the database."""
    from toolreeve.execution.workers.limiters import (
        SharedBreakers,
        SharedCaches,
        SharedConcurrency,
        SharedRates,
        SharedState,
    )

    state = SharedState(remote.connect)
    return replace(
        limiters,
        concurrency=SharedConcurrency(state, limiters.concurrency, time.time),
        caches=SharedCaches(state, time.time),
        breakers=SharedBreakers(state, time.time),
        rates=SharedRates(state),
    )


async def find_fleet(configuration: Configuration) -> WorkerList:
    """The workers of the configured pools. Raises ToolError(WORKER_UNAVAILABLE)."""
    pools = list(configuration.settings.workers.pools)
    link = NatsLink(nats_settings(configuration), name="toolreeve")
    await link.connect()
    try:
        await link.prepare(pools)
        return await read_fleet(link, pools)
    finally:
        await link.close()


def nats_settings(configuration: Configuration) -> NatsSettings:
    """Raises ConfigError without a URL."""
    workers = configuration.settings.workers
    if not workers.url:
        raise ConfigError(
            "workers need the NATS server that carries the calls",
            source=configuration.origins.get("workers.pools", "code"),
            key="workers.url",
            fix='set workers.url, such as "nats://127.0.0.1:4222"',
        )
    reveal = partial(configuration.reveal, key="workers.password")
    return NatsSettings(
        urls=tuple(url.strip() for url in workers.url.split(",")),
        user=workers.user,
        password=reveal(workers.password) if workers.password else "",
        tls_ca=workers.tls_ca,
        tls_cert=workers.tls_cert,
        tls_key=workers.tls_key,
        replicas=workers.replicas,
        ack_wait=workers.ack_wait,
        queue_timeout=workers.queue_timeout,
        queue_limit=workers.queue_limit,
    )


def new_pools(configuration: Configuration) -> Pools:
    """Raises ConfigError for an invalid key."""
    return Pools([new_pool(configuration, name) for name in configuration.settings.workers.pools])


def new_pool(configuration: Configuration, name: str) -> Pool:
    """One pool: a worker needs the keys of no other. Raises ToolreeveError for an unknown one or an invalid key."""
    tables = configuration.settings.workers.pools
    if name not in tables:
        known = ", ".join(tables) or "none"
        raise ToolreeveError(f"no pool {name!r} in workers.pools{hint_similar(name, tables)}; configured: {known}")
    table = tables[name]
    references = (table["key"], *table.get("old_keys", ()))
    return Pool(
        name=name,
        tools=read_toolset(table["tools"]) if "tools" in table else None,
        tags=frozenset(table.get("tags", ())),
        keys=[_read_key(configuration, name, reference) for reference in references],
    )


def _read_key(configuration: Configuration, pool: str, reference: str) -> PoolKey:
    text = configuration.reveal(reference, key="workers.pools")
    try:
        return read_key(text)
    except ToolreeveError as problem:
        source = configuration.origins.get("workers.pools", "code")
        raise ConfigError(str(problem), source=source, key=f"workers.pools.{pool}.key") from None
