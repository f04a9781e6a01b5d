"""Composition root: builds the parts from a configuration, starts and stops them in order.

The only place where real time, chance and the database come in.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from toolreeve.approval.broker import Broker
from toolreeve.approval.channel import Channel
from toolreeve.approval.preview import previewer
from toolreeve.config import Configuration
from toolreeve.config.guard_table import guard_table
from toolreeve.config.xdg import DATABASE
from toolreeve.core.action import Action
from toolreeve.core.context import Services
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.execution.admission import Admission
from toolreeve.execution.executor import Executor
from toolreeve.execution.progress import to_peer
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import Resolver
from toolreeve.pipeline import Pipeline
from toolreeve.record.audit import Audit
from toolreeve.record.budget import BudgetStore
from toolreeve.record.bus import Bus
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.record.metrics import Metrics
from toolreeve.record.pending import PendingStore
from toolreeve.record.store import Store
from toolreeve.record.undo import Undo
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.runtime.processes import command_rules, new_processes
from toolreeve.sandbox.proxy.server import Proxy
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.upstream.connections import Identity
from toolreeve.upstream.pool import ServerPool
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.tools.pins import Pins
from toolreeve.upstream.transports.connect import Authorize, TransportFactory


class NoModels:
    """No provider of language models can be configured yet."""

    async def list(self) -> Mapping[str, Sequence[str]]:
        return {}


def new_network_guard(configuration: Configuration, resolver: Resolver | None = None) -> NetworkGuard:
    """Raises ConfigError naming the place of a rule that is none."""
    given = configuration.settings.network
    bounds = NetworkSettings(
        allow=given.allow,
        deny=given.deny,
        timeout=given.timeout,
        proxy=given.proxy,
        ca_file=given.ca_file,
    )
    try:
        return NetworkGuard(bounds, resolver)
    except ConfigError as problem:
        place = configuration.origins.get(problem.key, problem.source)
        raise ConfigError(problem.problem, source=place, key=problem.key, fix=problem.fix) from None


def _client_info() -> Mapping[str, str]:
    """Who we are to MCP servers."""
    from importlib.metadata import version

    return {"name": "toolreeve", "version": version("toolreeve")}


def _root(workspace: str) -> Mapping[str, str]:
    """What MCP servers are told of where we work."""
    path = Path(workspace).absolute()
    return {"uri": path.as_uri(), "name": path.name}


class Assembly:
    def __init__(
        self,
        configuration: Configuration,
        registry: ToolRegistry,
        policy: PolicySource,
        channels: Sequence[Channel],
        servers: Sequence[ServerSpec] = (),
        authorize: Authorize | None = None,
    ) -> None:
        settings = configuration.settings
        state = Path(settings.state.dir)
        self.policy = policy
        self.redactor = Redactor(configuration.secrets)
        self.bus = Bus()
        self.metrics = Metrics(self._breakers)
        self.teller = EventPublisher(self.bus, self.metrics, self.redactor, time.time)
        self.store = Store(state / DATABASE)
        self.journal = Journal(self.store, self.redactor, time.time, tell=self.teller.gap)
        self.metrics.watch("toolreeve_audit_backlog", "Records that wait to be written.", lambda: self.store.backlog)
        self.metrics.watch("toolreeve_audit_failures_total", "Writes that failed.", lambda: self.store.failures)
        self.audit = Audit(self.store)
        self.ledger = BudgetStore(self.store)
        self.approvals = PendingStore(
            self.store, time.time, journal=self.journal, lifetime=settings.approval.pending_hours * 3600
        )
        self.undo = Undo(self.store, state / "undo", time.time, redact=self.redactor.text)
        guards = guard_table(configuration)
        self.files = WorkspaceFiles(
            settings.workspace.dir,
            extra_roots=settings.workspace.extra_roots,
            writable_roots=settings.workspace.writable_roots,
            allow_write=settings.workspace.allow_write,
            search_bases=settings.workspace.search_allowed_bases,
            protected=guards.secret,
            unwritable=configuration.governing,
            named=settings.workspace.sensitive_allow,
            home=configuration.home,
            homes=guards.homes,
            environment=guards.environment,
            keep=self.undo,
        )
        self.network = new_network_guard(configuration)
        self.http = GuardedHttp(self.network)
        proxy = Proxy(self.network, emit=self.teller.pass_on, now=time.time)
        self.processes = new_processes(configuration, proxy.serve)
        services = Services(
            files=self.files,
            audit=self.audit,
            models=NoModels(),
            undo=self.undo,
            processes=self.processes,
            commands=command_rules(configuration),
            now=time.time,
            http=self.http,
        )
        self.gate = Admission(
            self.ledger,
            lambda: policy.budget,
            now=time.monotonic,
            today=time.time,
            concurrency=settings.limits.concurrency,
        )
        self.executor = Executor(
            services,
            timeout=settings.limits.timeout,
            patience=settings.approval.timeout,
            draw=random.random,
            progress=self._progress,
        )
        self.broker = Broker(
            channels,
            now=time.time,
            timeout=settings.approval.timeout,
            emit=self.teller.pass_on,
            remember=policy.remember,
            preview=previewer(self.files),
            pending=self.approvals,
        )
        self.redactor.learn(value for server in servers for value in server.secret_values)
        self.pins = Pins(self.store, note=self.journal.note)
        self.fleet = ServerPool(
            servers,
            registry,
            self.pins,
            dial=TransportFactory(
                http=self.http,
                environ=configuration.known.environ,
                state=state,
                workspace=settings.workspace.dir,
                enclosure=self.processes if isinstance(self.processes, Sandbox) else None,
                authorize=authorize,
            ),
            identity=Identity(info=_client_info() if servers else {}, roots=(_root(settings.workspace.dir),)),
            timeout=settings.limits.timeout,
            draw=random.random,
            tell=self.teller.server,
            forget=self.gate.forget,
        )
        self.pipeline = Pipeline(
            registry=registry,
            policy=policy,
            broker=self.broker,
            gate=self.gate,
            executor=self.executor,
            journal=self.journal,
            teller=self.teller,
            services=services,
            clock=time.perf_counter,
            expect=self.fleet.expect if servers else None,
        )

    def _progress(self, action: Action) -> Callable[[str], None] | None:
        """Where a tool's progress goes, if anybody listens: to the one who called, and to those who watch."""
        peer = action.call.peer
        told = to_peer(peer, self.redactor.text) if peer is not None and peer.wants_progress else None
        if not self.bus.listened:
            return told

        def report(text: str) -> None:
            self.teller.progress(action.call, action.spec.name, text)
            if told is not None:
                told(text)

        return report

    def _breakers(self) -> Mapping[str, str]:
        now = time.monotonic()
        return {name: str(breaker.state(now)) for name, breaker in self.gate.breakers.items()}

    async def start(self) -> None:
        await self.store.start()
        await self.journal.start()
        await self.undo.sweep(self.files)
        if (budget := self.policy.budget) is not None:
            await self.ledger.reserve(budget.scope, budget.spent, None)
            budget.spent = await self.ledger.spent(budget.scope)
        self.fleet.start()

    async def close(self) -> None:
        """Everything is closed even if closing one part fails; the first failure is then told."""
        failures: list[Exception] = []
        parts = (self.executor, self.fleet, self.processes, self.http)
        for step in (*(part.close for part in parts), self.journal.stop, self.store.close, self.bus.close):
            try:
                await step()
            except Exception as problem:
                failures.append(problem)
        self.files.close()
        if failures:
            raise ToolreeveError(f"the runtime did not close cleanly: {failures[0]}") from failures[0]
