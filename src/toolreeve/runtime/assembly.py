"""Composition root: builds the parts of a runtime, starts and stops them.

With its neighbours, the only place where the clock, randomness and the database come in.
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.config import Configuration, Workers
from toolreeve.config.guard_table import guard_table
from toolreeve.core.action import Action
from toolreeve.core.context import Services
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.execution.admission import Admission
from toolreeve.execution.executor import Executor, LocalExecutor
from toolreeve.execution.limiters import Breakers, Limiters, LocalBreakers, LocalCaches, LocalConcurrency
from toolreeve.execution.outputs import OutputStore
from toolreeve.execution.progress import report_to
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.pipeline import Pipeline
from toolreeve.policy.rules import PermissionRule
from toolreeve.record.audit import Audit
from toolreeve.record.budget import BudgetStore
from toolreeve.record.bus import Bus
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.record.metrics import Metrics
from toolreeve.record.traces import new_tracer
from toolreeve.record.undo import Undo
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.approval_parts import ApprovalParts
from toolreeve.runtime.build import new_network_guard
from toolreeve.runtime.connectors import RuntimeSecrets
from toolreeve.runtime.files import new_files
from toolreeve.runtime.model_catalogue import ConfiguredModels
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.runtime.processes import (
    ClosableProcesses,
    DeferredProcesses,
    command_rules,
    find_hideable,
    new_processes,
)
from toolreeve.runtime.store import configured_store, settings_digest
from toolreeve.runtime.upstream_parts import UpstreamParts, client_info

if TYPE_CHECKING:
    from toolreeve.approval.channel import Channel
    from toolreeve.confinement.trials import TrialStage
    from toolreeve.execution.workers.remote import RemoteExecutor
    from toolreeve.upstream.server_spec import ServerSpec
    from toolreeve.upstream.transports.connect import Authorize

logger = logging.getLogger(__name__)


class Assembly:
    """The parts of one runtime."""

    def __init__(
        self,
        configuration: Configuration,
        registry: ToolRegistry,
        policy: PolicySource,
        channels: "Sequence[Channel]",
        servers: "Sequence[ServerSpec]" = (),
        authorize: "Authorize | None" = None,
    ) -> None:
        self._configuration = configuration
        self.policy = policy
        self.redactor = Redactor(configuration.secrets)
        self.redactor.learn(value for server in servers for value in server.secret_values)
        self._build_record()
        self._build_machine()
        self.approval = ApprovalParts(
            configuration,
            registry,
            channels,
            policy=policy,
            store=self.store,
            journal=self.journal,
            events=self.events,
            redact=self.redactor.text,
            files=self.files,
            http=self.http,
            processes=self.processes,
        )
        self._build_execution()
        self.upstream = UpstreamParts(
            configuration,
            registry,
            servers,
            authorize,
            store=self.store,
            journal=self.journal,
            events=self.events,
            http=self.http,
            processes=self.processes,
            forget=self.limiters.forget,
        )
        self.pipeline = self._new_pipeline(registry)

    def _build_record(self) -> None:
        settings = self._configuration.settings
        self.bus = Bus()
        self.metrics = Metrics(lambda: self.limiters.breakers.states())
        self.events = EventPublisher(self.bus, self.metrics, self.redactor, time.time)
        self.events.tracer = new_tracer(
            settings.record.otlp_endpoint, self._configuration.known.environ, version=client_info()["version"]
        )
        self.store = configured_store(self._configuration)
        config = settings_digest(settings)
        version = client_info()["version"]
        self.store.describe(lambda: {"version": version, "config": config, "policy": self.policy.digest})
        self.journal = Journal(
            self.store,
            self.redactor,
            time.time,
            workspace=os.path.realpath(settings.workspace.dir),
            on_gap=self.events.gap,
        )
        self.metrics.watch("toolreeve_audit_backlog", "Records that wait to be written.", lambda: self.store.backlog)
        self.metrics.watch("toolreeve_audit_failures_total", "Writes that failed.", lambda: self.store.failures)
        self.audit = Audit(self.store)
        self.budget = BudgetStore(self.store.budget)

    def _build_machine(self) -> None:
        """Files, network and processes, guarded."""
        from toolreeve.information_flow.stage import InformationFlow
        from toolreeve.trial.commits import Commits

        state = Path(self._configuration.settings.state.dir)
        redact = self.redactor.text
        self.commits = Commits(state, time.time)
        contents = self.store.contents(time.time)
        self.undo = Undo(self.store.changes, contents, time.time, redact=redact, commits=self.commits)
        self.guards = guard_table(self._configuration)
        self.files = new_files(self._configuration, self.guards, keep=self.undo)
        self.flow = InformationFlow(
            self.store.flow_facts(time.time),
            now=time.time,
            redact=redact,
            finds_secret=self.redactor.knows,
            files=self.files,
            policy=self.policy,
            settings=lambda: self.policy.flow,
        )
        self.network = new_network_guard(self._configuration)
        self.http = GuardedHttp(self.network)
        self.processes = DeferredProcesses(self._new_processes)
        self.metrics.watch("toolreeve_sandbox_running", "Programs that run.", lambda: self.processes.running)
        self._has_confinements = False
        self._hidden: Sequence[PermissionRule] = ()
        self._finding_confinements = asyncio.Lock()

    def _build_execution(self) -> None:
        configuration = self._configuration
        settings = configuration.settings
        self.outputs = OutputStore(settings.limits.output_chars)
        self.services = Services(
            files=self.files,
            audit=self.audit,
            models=ConfiguredModels(configuration.known.environ),
            undo=self.undo,
            outputs=self.outputs,
            processes=self.processes,
            commands=command_rules(configuration),
            now=time.time,
            http=self.http,
            secrets=RuntimeSecrets(configuration.secret_source, self.redactor),
        )
        self.limiters = Limiters(
            concurrency=LocalConcurrency(settings.limits.concurrency),
            caches=LocalCaches(time.monotonic),
            breakers=self._new_breakers(),
            rates=self.budget,
            budgets=self.budget,
        )
        local = LocalExecutor(
            self.services,
            timeout=settings.limits.timeout,
            patience=settings.approval.timeout,
            draw=random.random,
            progress=self._progress,
        )
        self.remote = self._new_remote(configuration, local)
        self.executor: Executor = self.remote or local

    def _new_breakers(self) -> Breakers:
        """Gateways that share a database share the breakers of tools."""
        if (state := self.store.shared_state) is None:
            return LocalBreakers(time.monotonic)
        from toolreeve.execution.workers.limiters import SharedBreakers

        return SharedBreakers(state, time.time)

    def _new_pipeline(self, registry: ToolRegistry) -> Pipeline:
        return Pipeline(
            registry=registry,
            policy=self.policy,
            broker=lambda: self.approval.broker,
            admission=Admission(self.limiters, lambda: self.policy.budget, today=time.time),
            executor=self.executor,
            journal=self.journal,
            events=self.events,
            services=self.services,
            trials=lambda: self.trials,
            flow=self.flow,
            outputs=self.outputs,
            clock=time.perf_counter,
            find_confinements=self._find_confinements,
            expect=self.upstream.pool.expect if self.upstream.servers else None,
        )

    def _new_remote(self, configuration: Configuration, local: Executor) -> "RemoteExecutor | None":
        """Not imported unless [workers] is set."""
        if configuration.settings.workers == Workers():
            return None
        from toolreeve.runtime.remote import new_remote_executor, share_limiters

        remote = new_remote_executor(configuration, local, self._progress)
        if configuration.settings.workers.limits == "shared":
            self.limiters = share_limiters(self.limiters, remote)
        return remote

    def _runs_elsewhere(self, action: Action) -> str:
        """Where, if not in this process."""
        pool = self.remote and self.remote.pools.find(action.spec)
        return f"it runs on the worker pool {pool.name!r}" if pool else ""

    @cached_property
    def trials(self) -> "TrialStage":
        from toolreeve.confinement.trials import TrialStage
        from toolreeve.trial.committer import Committer

        trial = self._configuration.settings.trial
        return TrialStage(
            self.processes,
            self.services,
            self.guards,
            scratch=trial.scratch,
            seconds=trial.seconds,
            keeps=trial.use == "ask",
            layer_mb=trial.layer_mb,
            committer=Committer(self.commits, self.undo.note),
            last_change=lambda: self.undo.noted_at,
            runs_elsewhere=self._runs_elsewhere,
        )

    def _new_processes(self) -> ClosableProcesses:
        from toolreeve.sandbox.proxy.server import Proxy

        proxy = Proxy(self.network, emit=self.events.pass_on, now=time.time)
        guards = self.policy().read_guards
        self._hidden = find_hideable(guards, self._configuration)
        hidden = [each for each in guards if each.rule in self._hidden]
        unread = (lambda path: any(each.targets(path) for each in hidden)) if hidden else None
        return new_processes(self._configuration, proxy.serve, unread)

    async def _find_confinements(self) -> None:
        """Every call waits for the answer: one that did not would run unconfined. A sandbox that could not be built is
        tried again with the next call."""
        if self._has_confinements:
            return
        async with self._finding_confinements:
            if not self._has_confinements and (found := await self.processes.confinements()):
                hides = self.processes.hides_unread and self.remote is None  # workers have policies of their own
                self.policy.enforce(found, self._hidden if hides else ())
                self._has_confinements = True

    def _progress(self, action: Action) -> Callable[[str], None] | None:
        """Where a tool's progress goes: to its caller if they asked for it, and to the subscribers of the bus."""
        peer = action.call.peer
        notify = report_to(peer.progress, self.redactor.text) if peer is not None and peer.wants_progress else None
        if not self.bus.listened:
            return notify

        def report(text: str) -> None:
            self.events.progress(action.call, action.spec.name, text)
            if notify is not None:
                notify(text)

        return report

    async def start(self) -> None:
        await self.store.start()
        await self.journal.start()
        await self.flow.files.start()
        await self.undo.sweep(self.files)
        await self._recover_commits()
        budget = self.policy.budget
        if budget is not None:
            await self.budget.reserve(budget.scope, budget.spent, None)
            budget.spent = await self.budget.spent(budget.scope)
        if self.upstream.servers:
            self.upstream.pool.start()

    async def _recover_commits(self) -> None:
        """Finish or revert the commits of trials that a killed process left, before the first command; recorded."""
        for each in await asyncio.to_thread(self.commits.recover):
            await self.journal.note("recovery", asdict(each))
            if each.outcome == "failed":
                logger.warning("the commit %s in %s could not be recovered: %s", each.id, each.root, each.reason)

    async def close(self) -> None:
        """Closes every part even if one fails, then raises the first failure."""
        failures: list[Exception] = []
        parts = (self.executor, self.upstream, self.processes, self.http, self.approval)
        steps = (*(part.close for part in parts), self.journal.stop, self.store.close, self.bus.close)
        for step in steps:
            try:
                await step()
            except Exception as problem:
                failures.append(problem)
        if "trials" in self.__dict__:
            self.trials.held.close()
        self.files.close()
        if self.events.tracer is not None:
            await self.events.tracer.close()
        if failures:
            raise ToolreeveError(f"the runtime did not close cleanly: {failures[0]}") from failures[0]
