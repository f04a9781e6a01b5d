"""Worker process: this machine's tools and sandbox, for signed calls.

It decides nothing: policy, approvals and record are at the gateway that signed the call. Its own state directory holds
what its tools need, such as quarantined files; never a database of the gateway.
"""

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from toolreeve.config import Configuration, Policy, Workers
from toolreeve.core.action import Action
from toolreeve.core.context import silent
from toolreeve.core.errors import ConfigError
from toolreeve.core.result import Meta, Output
from toolreeve.core.trial import Confinement
from toolreeve.core.version import VERSION
from toolreeve.execution.executor import LocalExecutor
from toolreeve.execution.workers.link import NatsLink
from toolreeve.execution.workers.wire import CallRefused, RemoteCall, spec_digest
from toolreeve.execution.workers.worker import Execute, Worker
from toolreeve.runtime.assembly import Assembly
from toolreeve.runtime.build import new_catalogue, new_registry, new_servers
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.runtime.remote import nats_settings, new_pool


async def run_worker(
    configuration: Configuration,
    pool: str,
    *,
    capacity: int,
    drain_seconds: float,
    stop: asyncio.Event,
    tell: Callable[[str], None] = silent,
) -> int:
    """Serve a pool until `stop`. Returns how many calls did not end in time."""
    found = new_pool(configuration, pool)
    settings = nats_settings(configuration)
    name = f"{socket.gethostname().replace('.', '-')}-{os.getpid()}-{os.urandom(3).hex()}"
    async with WorkerTools(_worker_configuration(configuration, pool)) as tools:
        facts = {"host": socket.gethostname(), "pid": os.getpid(), "version": tools.version, "since": time.time()}
        link = NatsLink(settings, name=f"toolreeve worker {pool}", inbox=f"_INBOX_{pool}")
        worker = Worker(
            link,
            found,
            tools.bind,
            name=name,
            capacity=capacity,
            facts=facts,
            now=time.time,
            redact=tools.redact,
            tell=tell,
        )
        return await worker.serve(stop, drain_seconds)


def _worker_configuration(configuration: Configuration, pool: str) -> Configuration:
    """Without policy and workers, and with a state directory of its own. Raises ConfigError for a shared database."""
    settings = configuration.settings
    if settings.state.url:
        raise ConfigError(
            "a worker needs no database, and must not have the credentials of one",
            source=configuration.origins.get("state.url", "code"),
            key="state.url",
            fix="remove it from the configuration of the worker",
        )
    state = replace(settings.state, dir=str(Path(settings.state.dir) / "workers" / pool))
    return replace(
        configuration,
        settings=replace(settings, state=state, workers=Workers(), policy=Policy(mode=settings.policy.mode)),
    )


class WorkerTools:
    """Finds and runs the tools of signed calls."""

    def __init__(self, configuration: Configuration) -> None:
        self.version = VERSION
        self._registry = new_registry(configuration, ())
        new_catalogue(configuration, self._registry)
        servers, _ = new_servers(configuration, None)
        self._parts = Assembly(configuration, self._registry, PolicySource(configuration, None), (), servers)
        self.redact = self._parts.redactor.text
        self._reporters: dict[str, Callable[[str], None]] = {}
        self._executor = LocalExecutor(
            self._parts.pipeline.services,
            timeout=configuration.settings.limits.timeout,
            patience=0.0,
            draw=random.random,
            progress=lambda action: self._reporters.get(action.call.id, silent),
        )

    async def __aenter__(self) -> "WorkerTools":
        await self._parts.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._executor.close()
        await self._parts.close()

    async def bind(self, remote: RemoteCall) -> Execute:
        """Raises CallRefused for a tool that differs from the gateway's, or a confinement that is not enforced here."""
        call = remote.to_call()
        if call.tool not in self._registry and self._parts.pipeline.expect is not None:
            await self._parts.pipeline.expect(call)
        tool = self._registry.get(call.tool)
        if tool is None:
            raise CallRefused(
                f"this worker has no tool {call.tool!r}; tool_files and mcp_servers must be as at the gateway"
            )
        if spec_digest(tool.spec) != remote.digest:
            raise CallRefused(
                f"{call.tool!r} is defined otherwise here (Toolreeve {self.version}) than at the gateway"
                f" (Toolreeve {remote.version}): use the same versions and tool files"
            )
        await self._check_confinement(remote, confinable=tool.spec.confinable)
        action = Action(call, tool, tool.input.parse(remote.args), self._parts.files)
        if (refusal := self._parts.pipeline.refusal(action)) is not None:
            raise refusal
        return partial(self._execute, action, remote)

    async def _check_confinement(self, remote: RemoteCall, *, confinable: bool) -> None:
        wanted = Confinement(remote.confinement)
        if not confinable or wanted is Confinement.WORK:
            return
        if wanted not in await self._parts.processes.confinements():
            raise CallRefused(f"the sandbox of this worker cannot confine programs to {wanted.value!r}; see its doctor")

    async def _execute(self, action: Action, remote: RemoteCall, meta: Meta, report: Callable[[str], None]) -> Output:
        meta.approved_by = "gateway" if remote.approved else None
        self._reporters[action.call.id] = report
        try:
            return await self._executor.run(action, meta, remote.to_bounds)
        finally:
            del self._reporters[action.call.id]
