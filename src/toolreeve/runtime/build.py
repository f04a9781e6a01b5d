"""Composition root: builds the parts of a runtime, starts and stops them.

The only place where the clock, randomness and the database come in. What the program does not pass is read from the
configuration; a configuration that is passed whole is mixed with nothing else.
"""

import asyncio
import contextlib
import logging
import os
import random
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.config import Configuration, Settings, from_settings, load
from toolreeve.config.guard_table import guard_table
from toolreeve.config.servers import servers_from_code
from toolreeve.config.xdg import DATABASE
from toolreeve.core.action import Action
from toolreeve.core.atomic import write_private
from toolreeve.core.context import Services
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.core.tool import AnyFunctionTool
from toolreeve.core.toolset import check_toolset, read_toolset
from toolreeve.execution.admission import Admission
from toolreeve.execution.executor import Executor, LocalExecutor
from toolreeve.execution.limiters import Limiters, LocalBreakers, LocalCaches, LocalConcurrency
from toolreeve.execution.outputs import OutputStore
from toolreeve.execution.progress import to_peer
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import Resolver
from toolreeve.permissions import PermissionPolicy
from toolreeve.pipeline import Pipeline
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.rules import PermissionRule
from toolreeve.record.audit import Audit
from toolreeve.record.blobs import Blobs
from toolreeve.record.budget import BudgetStore
from toolreeve.record.bus import Bus
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.record.metrics import Metrics
from toolreeve.record.store import Store
from toolreeve.record.traces import CallTracer
from toolreeve.record.undo import Undo
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.builtin import TOOLS
from toolreeve.runtime.connectors import RuntimeSecrets, select_connectors, service_urls
from toolreeve.runtime.files import new_files
from toolreeve.runtime.model_catalogue import ConfiguredModels
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.runtime.processes import (
    ClosableProcesses,
    DeferredProcesses,
    command_rules,
    describe_surroundings,
    new_processes,
)
from toolreeve.runtime.shell_tools import with_analysis
from toolreeve.scripted.catalogue import Catalogue
from toolreeve.scripted.python_files import load_tools

if TYPE_CHECKING:
    from toolreeve.approval.automatic import AutomaticApproval
    from toolreeve.approval.broker import Broker
    from toolreeve.approval.channel import Channel
    from toolreeve.approval.governors import Governors
    from toolreeve.approval.grants import Grants
    from toolreeve.confinement.trials import TrialStage
    from toolreeve.record.pending import PendingStore
    from toolreeve.runtime.approvals import Approvals
    from toolreeve.upstream.pool import ServerPool
    from toolreeve.upstream.server_spec import ServerSpec
    from toolreeve.upstream.tools.pins import Pins
    from toolreeve.upstream.transports.connect import Authorize
    from toolreeve.upstream.transports.transport import Connect, Transport

logger = logging.getLogger(__name__)

McpServers = Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path
Policy = PermissionPolicy | Sequence[PermissionRule]


def new_configuration(
    settings: Settings | Configuration | None,
    workspace: str | Path | None,
    mode: PermissionMode | str | None,
    tool_files: Iterable[str | Path],
) -> Configuration:
    if isinstance(settings, Configuration):
        return settings
    overrides = {
        "workspace.dir": None if workspace is None else str(workspace),
        "policy.mode": mode.value if isinstance(mode, PermissionMode) else mode,
        "tool_files": tuple(map(str, tool_files)) or None,
    }
    if settings is None:
        return load(overrides)
    if any(value is not None for value in overrides.values()):
        raise ToolreeveError("pass either `settings`, or workspace, mode and tool_files; not both")
    return from_settings(settings)


def check_workspace(configuration: Configuration) -> None:
    """Raises ConfigError if no workspace is set and the current directory is `/`: some clients start their servers
    there, and none of them means that tools may read the whole machine."""
    folder = Path(configuration.settings.workspace.dir)
    if configuration.origins["workspace.dir"] == "default" and folder == folder.parent:
        raise ConfigError(
            f"started in {str(folder)!r}: the whole file system cannot be the workspace",
            source="current directory",
            key="workspace.dir",
            fix=f"pass --workspace DIR, or set workspace.dir in {configuration.user_file}",
        )


def new_registry(
    configuration: Configuration, tools: Iterable[Any], *, builtin: bool | str | Sequence[str] = True
) -> ToolRegistry:
    """The chosen builtin tools, those of the configured Python files, and those that the program passed."""
    rules = command_rules(configuration)
    chosen = with_analysis(
        _choose(builtin=builtin),
        root=configuration.settings.workspace.dir,
        home=configuration.home,
        quality=rules.quality,
        allowed=configuration.settings.workspace.sensitive_allow,
    )
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise ToolreeveError(
            f"tools={tools!r:.100}: pass a list of tools, such as [{getattr(tools, 'name', 'my_tool')}]"
        )
    files = [Path(name) for name in configuration.settings.tool_files if name.endswith(".py")]
    found = [tool for path in files for tool in load_tools(path)]
    connected = select_connectors(configuration).new_tools(service_urls(configuration)) if builtin is True else ()
    own = (_with_surroundings(each, configuration) for each in chosen)
    return ToolRegistry([*own, *connected, *found, *tools])


def _with_surroundings(tool: AnyFunctionTool, configuration: Configuration) -> AnyFunctionTool:
    """`bash` and `execute_command` with a description that says what their commands have."""
    if tool.spec.category != "shell":
        return tool
    description = f"{tool.spec.description} {describe_surroundings(configuration)}"
    return replace(tool, spec=replace(tool.spec, description=description))


def _choose(*, builtin: bool | str | Sequence[str]) -> Sequence[AnyFunctionTool]:
    if builtin is True:
        return TOOLS
    if not builtin:
        return ()
    if not isinstance(builtin, str | Sequence):
        raise ToolreeveError(f"builtin={builtin!r:.100}: pass True, False, or a toolset such as ['file']")
    toolset = read_toolset(builtin)
    check_toolset(toolset, [each.spec for each in TOOLS])
    return [each for each in TOOLS if toolset.includes(each.spec)]


def new_catalogue(configuration: Configuration, registry: ToolRegistry) -> Catalogue:
    return Catalogue(
        configuration.settings.tool_files,
        registry,
        profile=configuration.settings.error_profile,
        secret=configuration.secret_source.find,
        trusted=configuration.code.files if configuration.code is not None else (),
    )


def builtin_server_names(mcp_servers: McpServers | None) -> frozenset[str]:
    """The names that a program gives to the builtin tools among its servers."""
    if mcp_servers is None or isinstance(mcp_servers, str | Path):
        return frozenset()
    tables = (
        mcp_servers.items() if isinstance(mcp_servers, Mapping) else [(each.get("name"), each) for each in mcp_servers]
    )
    return frozenset(str(name) for name, table in tables if isinstance(table, Mapping) and _is_builtin(table))


def _is_builtin(table: Mapping[str, Any]) -> bool:
    transport = table.get("transport")
    return table.get("type") == "builtin" or (isinstance(transport, Mapping) and transport.get("type") == "builtin")


def new_servers(
    configuration: Configuration, mcp_servers: McpServers | None
) -> "tuple[Sequence[ServerSpec], Sequence[ConfigError]]":
    """The servers, and the errors of those that are left out, which are also issued as warnings."""
    if mcp_servers is None:
        return configuration.mcp_servers, ()
    found = servers_from_code(mcp_servers, configuration.known, base=Path.cwd())
    for problem in found.problems:
        warnings.warn(f"an MCP server is left out: {problem}", stacklevel=3)
    return tuple(found.specs), tuple(found.problems)


def new_network_guard(configuration: Configuration, resolver: Resolver | None = None) -> NetworkGuard:
    """Raises ConfigError with the origin of an invalid rule."""
    network = configuration.settings.network
    settings = NetworkSettings(
        allow=network.allow,
        deny=network.deny,
        timeout=network.timeout,
        proxy=network.proxy,
        ca_file=network.ca_file,
    )
    try:
        return NetworkGuard(settings, resolver)
    except ConfigError as problem:
        origin = configuration.origins.get(problem.key, problem.source)
        raise ConfigError(problem.problem, source=origin, key=problem.key, fix=problem.fix) from None


def _client_info() -> Mapping[str, str]:
    """The clientInfo sent to MCP servers."""
    from importlib.metadata import version

    return {"name": "toolreeve", "version": version("toolreeve")}


def _root(workspace: str) -> Mapping[str, str]:
    """The root offered to MCP servers."""
    path = Path(workspace).absolute()
    return {"uri": path.as_uri(), "name": path.name}


def _load_link_key(state: Path) -> bytes:
    """The key of links to questions, shared by all processes of the same state directory."""
    path = state / "link.key"
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(own, os.urandom(32))
    with contextlib.suppress(FileExistsError):  # of two processes, the first one's key counts
        path.hardlink_to(own)
    own.unlink()
    return path.read_bytes()


def _check_arguments(registry: ToolRegistry, tool: str, args: Mapping[str, Any]) -> None:
    """Raises ToolError for arguments that the tool does not take."""
    registry.resolve(tool, hidden=True).input.parse(args)


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
        from toolreeve.information_flow.stage import InformationFlow
        from toolreeve.trial.commits import Commits

        settings = configuration.settings
        state = Path(settings.state.dir)
        self.policy = policy
        self.redactor = Redactor(configuration.secrets)
        self.bus = Bus()
        self.metrics = Metrics(lambda: self.limiters.breakers.states())
        self.events = EventPublisher(self.bus, self.metrics, self.redactor, time.time)
        if settings.record.otlp_endpoint:
            self.events.tracer = CallTracer(settings.record.otlp_endpoint, version=_client_info()["version"])
        self.store = Store(state / DATABASE)
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
        self._new_approvals = partial(self._build_approvals, configuration, registry)
        self.commits = Commits(state, time.time)
        self.undo = Undo(
            self.store.changes,
            Blobs(state / "undo", time.time),
            time.time,
            redact=self.redactor.text,
            commits=self.commits,
        )
        guards = guard_table(configuration)
        self.files = new_files(configuration, guards, keep=self.undo)
        self.flow = InformationFlow(
            self.store.flow_facts(time.time),
            now=time.time,
            redact=self.redactor.text,
            finds_secret=self.redactor.knows,
            files=self.files,
            policy=policy,
            settings=policy.flow,
        )
        self.network = new_network_guard(configuration)
        self.http = GuardedHttp(self.network)
        self.governors: Governors | None = None
        self.processes = DeferredProcesses(partial(self._new_processes, configuration))
        self._has_confinements = False
        self._finding_confinements = asyncio.Lock()
        outputs = OutputStore(settings.limits.output_chars)
        services = Services(
            files=self.files,
            audit=self.audit,
            models=ConfiguredModels(configuration.known.environ),
            undo=self.undo,
            outputs=outputs,
            processes=self.processes,
            commands=command_rules(configuration),
            now=time.time,
            http=self.http,
            secrets=RuntimeSecrets(configuration.secret_source, self.redactor),
        )
        self.limiters = Limiters(
            concurrency=LocalConcurrency(settings.limits.concurrency),
            caches=LocalCaches(time.monotonic),
            breakers=LocalBreakers(time.monotonic),
            rates=self.budget,
            budgets=self.budget,
        )
        self.executor: Executor = LocalExecutor(
            services,
            timeout=settings.limits.timeout,
            patience=settings.approval.timeout,
            draw=random.random,
            progress=self._progress,
        )
        self._configuration = configuration
        self._channels = (*channels, *self._new_notifications(configuration))
        self._automatic = self._new_automatic(configuration)
        self.redactor.learn(value for server in servers for value in server.secret_values)
        self._transports: Connect | None = None
        self._new_pool = partial(self._build_pool, configuration, registry, servers, authorize)
        self.has_servers = bool(servers)
        self._new_trials = partial(self._build_trials, settings, services, guards)
        self.pipeline = Pipeline(
            registry=registry,
            policy=policy,
            broker=lambda: self.broker,
            admission=Admission(self.limiters, lambda: policy.budget, today=time.time),
            executor=self.executor,
            journal=self.journal,
            events=self.events,
            services=services,
            trials=lambda: self.trials,
            flow=self.flow,
            outputs=outputs,
            clock=time.perf_counter,
            find_confinements=self._find_confinements,
            expect=self.pool.expect if servers else None,
        )

    @cached_property
    def trials(self) -> "TrialStage":
        return self._new_trials()

    def _build_trials(self, settings: Settings, services: Services, guards: GuardTable) -> "TrialStage":
        from toolreeve.confinement.trials import TrialStage
        from toolreeve.trial.committer import Committer

        return TrialStage(
            self.processes,
            services,
            guards,
            scratch=settings.trial.scratch,
            seconds=settings.trial.seconds,
            keeps=settings.trial.use == "ask",
            committer=Committer(self.commits, self.undo.note),
            last_change=lambda: self.undo.noted_at,
        )

    @cached_property
    def questions(self) -> "PendingStore":
        from toolreeve.record.pending import PendingStore

        return PendingStore(
            self.store.pending,
            time.time,
            lifetime=self._configuration.settings.approval.pending_hours * 3600,
            process=self.journal.process,
        )

    @cached_property
    def grants(self) -> "Grants":
        from toolreeve.approval.grants import Grants
        from toolreeve.policy.offers import covers

        settings = self._configuration.settings
        return Grants(
            self.store.grants(time.time),
            now=time.time,
            process=self.journal.process,
            workspace=os.path.realpath(settings.workspace.dir),
            lifetime=settings.approval.session_hours * 3600,
            covers=lambda rule, action: covers(rule, action, self.policy()),
            redact=self.redactor.text,
        )

    @cached_property
    def broker(self) -> "Broker":
        """Not imported before the first question."""
        from toolreeve.approval.broker import Broker
        from toolreeve.approval.preview import previewer
        from toolreeve.approval.request import Choice
        from toolreeve.policy.offers import find_offers

        approval = self._configuration.settings.approval
        return Broker(
            self._channels,
            now=time.time,
            timeout=approval.timeout,
            emit=self.events.pass_on,
            remember=self.policy.remember,
            preview=previewer(self.files),
            pending=self.questions,
            offers=lambda action: [Choice(*each) for each in find_offers(action, self.policy())],
            grants=self.grants,
            facts=_describe_parts,
            home=self._configuration.home,
            escalation=approval.escalate_after,
            automatic=self._automatic,
        )

    @cached_property
    def approvals(self) -> "Approvals":
        return self._new_approvals()

    def _build_approvals(self, configuration: Configuration, registry: ToolRegistry) -> "Approvals":
        from toolreeve.approval.links import LinkSigner
        from toolreeve.runtime.approvals import Approvals

        approval = configuration.settings.approval
        return Approvals(
            self.questions,
            self.store.grants(time.time),
            now=time.time,
            check=lambda tool, args: _check_arguments(registry, tool, args),
            redact=self.redactor.text,
            home=configuration.home,
            dead_time=approval.dead_time,
            links=LinkSigner(
                partial(_load_link_key, Path(configuration.settings.state.dir)),
                now=time.time,
                lifetime=approval.pending_hours * 3600,
            ),
            link_url=approval.link_url,
        )

    @cached_property
    def pins(self) -> "Pins":
        from toolreeve.upstream.tools.pins import Pins

        return Pins(self.store.pins, note=self.journal.note)

    @cached_property
    def pool(self) -> "ServerPool":
        """Empty, and not imported before it is asked for, if no server is configured."""
        return self._new_pool()

    def _build_pool(
        self,
        configuration: Configuration,
        registry: ToolRegistry,
        servers: "Sequence[ServerSpec]",
        authorize: "Authorize | None",
    ) -> "ServerPool":
        from toolreeve.upstream.pool import ServerPool
        from toolreeve.upstream.transports.transport import Identity

        settings = configuration.settings
        return ServerPool(
            servers,
            registry,
            self.pins,
            connect=partial(self._connect, configuration, authorize),
            identity=Identity(info=_client_info() if servers else {}, roots=(_root(settings.workspace.dir),)),
            timeout=settings.limits.timeout,
            jitter=random.random,
            emit=self.events.server,
            forget=self.limiters.forget,
        )

    def _new_notifications(self, configuration: Configuration) -> "Sequence[Channel]":
        """Raises ToolreeveError without the extra `notify`, or for an address that is not valid."""
        addresses = configuration.settings.approval.notify
        if not addresses:
            return ()
        from toolreeve.approval.channels.notification import NotificationChannel, new_sender

        send = new_sender([configuration.reveal(each, key="approval.notify") for each in addresses])
        return (NotificationChannel(send, self.approvals.new_link, redact=self.redactor.text),)

    def _new_automatic(self, configuration: Configuration) -> "AutomaticApproval | None":
        """Raises ConfigErrors for a file that is not valid."""
        approval = configuration.settings.approval
        if approval.auto_approval_file is None and approval.governors_file is None:
            return None
        from toolreeve.approval.auto_approval import read_policies
        from toolreeve.approval.automatic import AutomaticApproval
        from toolreeve.approval.governor_files import read_governors
        from toolreeve.approval.governors import Governors
        from toolreeve.policy.offers import covers

        policies = read_policies(Path(approval.auto_approval_file)) if approval.auto_approval_file else ()
        if approval.governors_file:
            reveal = partial(configuration.reveal, key="approval.governors_file")
            self.governors = Governors(
                read_governors(Path(approval.governors_file), reveal),
                processes=self.processes,
                http=self.http,
                now=time.time,
                workspace=os.path.realpath(configuration.settings.workspace.dir),
            )
        policy = self.policy
        return AutomaticApproval(policies, self.governors, covers=lambda rule, action: covers(rule, action, policy()))

    def _new_processes(self, configuration: Configuration) -> ClosableProcesses:
        from toolreeve.sandbox.proxy.server import Proxy

        proxy = Proxy(self.network, emit=self.events.pass_on, now=time.time)
        return new_processes(configuration, proxy.serve)

    def _connect(
        self, configuration: Configuration, authorize: "Authorize | None", spec: "ServerSpec", scrubber: Scrubber
    ) -> "Transport":
        if self._transports is None:
            self._transports = self._new_transports(configuration, authorize)
        return self._transports(spec, scrubber)

    def _new_transports(self, configuration: Configuration, authorize: "Authorize | None") -> "Connect":
        from toolreeve.sandbox.sandbox import Sandbox
        from toolreeve.upstream.transports.connect import TransportFactory

        processes = self.processes.backend()
        return TransportFactory(
            http=self.http,
            environ=configuration.known.environ,
            state=Path(configuration.settings.state.dir),
            workspace=configuration.settings.workspace.dir,
            sandbox=processes if isinstance(processes, Sandbox) else None,
            authorize=authorize,
        )

    async def _find_confinements(self) -> None:
        """Every call waits for the answer: one that did not would run unconfined. A sandbox that could not be built is
        tried again with the next call."""
        if self._has_confinements:
            return
        async with self._finding_confinements:
            if not self._has_confinements and (found := await self.processes.confinements()):
                self.policy.enforce(found)
                self._has_confinements = True

    def _progress(self, action: Action) -> Callable[[str], None] | None:
        """Where a tool's progress goes: to its caller if they asked for it, and to the subscribers of the bus."""
        peer = action.call.peer
        notify = to_peer(peer, self.redactor.text) if peer is not None and peer.wants_progress else None
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
        if self.has_servers:
            self.pool.start()

    async def _recover_commits(self) -> None:
        """Finish or revert the commits of trials that a killed process left, before the first command; recorded."""
        for each in await asyncio.to_thread(self.commits.recover):
            await self.journal.note("recovery", asdict(each))
            if each.outcome == "failed":
                logger.warning("the commit %s in %s could not be recovered: %s", each.id, each.root, each.reason)

    async def close(self) -> None:
        """Closes every part even if one fails, then raises the first failure."""
        failures: list[Exception] = []
        pool = (self.pool,) if self.has_servers else ()
        parts = (self.executor, *pool, self.processes, self.http)
        end_grants = (self.grants.end,) if "grants" in vars(self) else ()  # nobody was asked: none were granted
        steps = (*(part.close for part in parts), *end_grants, self.journal.stop, self.store.close, self.bus.close)
        for step in steps:
            try:
                await step()
            except Exception as problem:
                failures.append(problem)
        self.files.close()
        if self.events.tracer is not None:
            await self.events.tracer.close()
        if failures:
            raise ToolreeveError(f"the runtime did not close cleanly: {failures[0]}") from failures[0]


def _describe_parts(action: Action) -> Mapping[str, Any]:
    """Imported for the first question: the analysis of commands is large."""
    from toolreeve.policy.question_facts import describe_parts

    return describe_parts(action)
