"""The runtime: the public class `Toolreeve`. Every call takes the road."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, cast

from toolreeve import flows
from toolreeve.config import Configuration, Settings
from toolreeve.core.action import Action
from toolreeve.core.call import Principal, RecordScope, ToolCall, new_id
from toolreeve.core.errors import ConfigError, ErrorCode, ToolreeveError
from toolreeve.core.names import BUILTIN_SERVER, client_arguments, server_of
from toolreeve.core.result import ToolResult
from toolreeve.core.toolset import check_toolset, read_toolset
from toolreeve.policy.mode import PermissionMode
from toolreeve.policy.state import Budget
from toolreeve.record.audit import Audit
from toolreeve.record.bus import Bus
from toolreeve.record.metrics import Metrics
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.assembly import Assembly
from toolreeve.runtime.build import (
    McpServers,
    Policy,
    builtin_server_names,
    check_workspace,
    new_catalogue,
    new_configuration,
    new_registry,
    new_servers,
)
from toolreeve.runtime.calls_in_flight import CallsInFlight
from toolreeve.runtime.channels import OWN_TERMINAL, DefaultApprove, new_channels
from toolreeve.runtime.internals import Internals
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.runtime.principal import find_local_principal
from toolreeve.scripted.catalogue import CatalogueChange

if TYPE_CHECKING:
    from toolreeve.policy.explanation import Explanation
    from toolreeve.runtime.approvals import Approvals
    from toolreeve.runtime.channels import Approve
    from toolreeve.runtime.sync import SyncToolreeve
    from toolreeve.upstream.pool import ServerPool
    from toolreeve.upstream.transports.connect import Authorize

logger = logging.getLogger(__name__)
P = ParamSpec("P")

CLOSE_TIMEOUT = 5.0
"""Seconds that running calls have to end when the runtime closes."""
RELOAD_INTERVAL = 1.0
HOME_AS_WORKSPACE = (
    "the workspace is your whole home directory: tools can read and change nearly everything in it."
    " Start in a project directory, or pass --workspace DIR (workspace=DIR in Python)"
)
REFUSALS = frozenset(
    {
        ErrorCode.PERMISSION,
        ErrorCode.APPROVAL_DENIED,
        ErrorCode.APPROVAL_TIMEOUT,
        ErrorCode.APPROVAL_PENDING,
        ErrorCode.DENIED,
    }
)


def _synchronous(init: Callable[Concatenate[Any, P], None]) -> "staticmethod[P, SyncToolreeve]":
    """`Toolreeve.sync`: the constructor of the synchronous runtime, with the arguments of this one."""

    def sync(*args: P.args, **kwargs: P.kwargs) -> "SyncToolreeve":
        from toolreeve.runtime.sync import SyncToolreeve

        make: Callable[P, Toolreeve] = cast(Any, Toolreeve)
        return SyncToolreeve(make(*args, **kwargs))

    sync.__doc__ = "The synchronous runtime, with the same arguments. Use it as `with Toolreeve.sync() as reeve`."
    signature = inspect.signature(init)
    own = list(signature.parameters.values())[1:]
    sync.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
    return staticmethod(sync)


class Toolreeve:
    """The tool runtime. Use it as `async with Toolreeve() as reeve`.

    Whatever is not passed is read from the configuration; `settings` replaces the configuration as a whole. `tools` are
    your own; `builtin` chooses the builtin ones: all, none, or a toolset such as `["file", "-delete_file"]`. `policy`
    is a PermissionPolicy, or rules in addition to the configured ones. `approve` answers approval requests: an async
    function of the request, or one or more channels; by default the terminal of a program that has one, None for
    nobody. `mcp_servers` are tables by name as in a configuration file, or
    the path of one; empty means none. The runtime starts once all of them are connected or have failed, unless
    `await_servers` is off; `mcp_authorize` receives the URL at which the user logs in to a server.
    `principal` is by default the local user, with the configured role.
    """

    def __init__(
        self,
        *,
        workspace: str | Path | None = None,
        mode: PermissionMode | str | None = None,
        tools: Iterable[Any] = (),
        builtin: bool | str | Sequence[str] = True,
        tool_files: Iterable[str | Path] = (),
        policy: Policy | None = None,
        approve: "Approve | DefaultApprove | None" = OWN_TERMINAL,
        settings: Settings | Configuration | None = None,
        mcp_servers: McpServers | None = None,
        mcp_authorize: "Authorize | None" = None,
        await_servers: bool = True,
        principal: Principal | None = None,
        origin: str = "python",
    ) -> None:
        self.configuration = new_configuration(settings, workspace, mode, tool_files)
        check_workspace(self.configuration)
        self.tools = new_registry(self.configuration, tools, builtin=builtin)
        self._catalogue = new_catalogue(self.configuration, self.tools)
        servers, self._server_problems = new_servers(self.configuration, mcp_servers)
        self._builtin_servers = builtin_server_names(mcp_servers)
        self._parts = Assembly(
            self.configuration,
            self.tools,
            PolicySource(self.configuration, policy),
            new_channels(approve, self.configuration.known.environ),
            servers,
            authorize=mcp_authorize,
        )
        self._await_servers = await_servers
        self._calls = CallsInFlight(self._parts.pipeline)
        self._closing: asyncio.Task[None] | None = None
        self._started = False
        self._reloading: asyncio.Task[None] | None = None
        self._learn_secrets()
        self.principal = principal or find_local_principal(self.configuration).principal
        self.origin = origin
        self.session = new_id()

    def __repr__(self) -> str:
        settings = self.configuration.settings
        return f"<Toolreeve {settings.workspace.dir}: {len(self.tools)} tools, {settings.policy.mode} mode>"

    sync = _synchronous(__init__)

    async def start(self) -> Self:
        """Open the record and connect the servers. `async with` does this."""
        if self._started or self._closing is not None:
            raise ToolreeveError("a runtime can be started only once: create a new one")
        await self._parts.start()
        self._started = True
        if self.configuration.settings.workspace.dir == self.configuration.home:
            logger.warning(HOME_AS_WORKSPACE)
        if not self._catalogue.is_empty:
            self._reloading = asyncio.create_task(self._reload_changes())
        if self._await_servers and self._parts.upstream.servers:
            await self._connect_servers()
        if self._await_servers:
            for problem in self.problems:
                logger.warning("not loaded: %s", problem)
        return self

    async def _connect_servers(self) -> None:
        """Each server has its own connect timeout. If the wait is cancelled, nothing is left running."""
        try:
            await self.fleet.settled()
        except BaseException:
            await asyncio.shield(self.close())
            raise

    async def close(self) -> None:
        """Cancel running calls, each with its record, and release everything."""
        if self._started:
            self._started = False
            # A separate task: a tool that closes the runtime is itself one of the calls that are cancelled.
            self._closing = asyncio.create_task(self._shut_down())
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _shut_down(self) -> None:
        await self._calls.end(CLOSE_TIMEOUT)
        for close in self.internals.closers:
            await close()
        if self._reloading is not None:
            self._reloading.cancel()
            await asyncio.wait({self._reloading})
        await self._parts.close()

    @property
    def problems(self) -> Sequence[ConfigError]:
        """Every tool file, MCP server and tool of a server that could not be loaded, and why."""
        return (*self._catalogue.problems, *self._server_problems, *self._unavailable_servers())

    def _unavailable_servers(self) -> Iterator[ConfigError]:
        for status in self.fleet.status() if self._parts.upstream.servers else ():
            for problem in filter(None, (status.problem, *status.problems)):
                yield ConfigError(
                    problem,
                    source=status.source,
                    key=f"mcp_servers.{status.name}",
                    fix=f"see `toolreeve servers show {status.name}`",
                )

    def reload(self) -> Sequence[CatalogueChange]:
        """Reload tool files that have changed. Runs every second while the runtime is up; errors are logged once per
        change."""
        changes = self._catalogue.refresh()
        for change in changes:
            for problem in change.problems:
                logger.warning("tool file not reloaded, its previous tools stay: %s", problem)
            for name in (*change.changed, *change.removed):
                self._parts.limiters.forget(name)
            self._parts.events.tools_changed(change.to_dict())
        if changes:
            self._learn_secrets()
        return changes

    async def _reload_changes(self) -> None:
        while True:
            await asyncio.sleep(RELOAD_INTERVAL)
            self.reload()

    def _learn_secrets(self) -> None:
        source = self.configuration.secret_source
        if self._catalogue.used:
            self._parts.redactor.learn(filter(None, map(source.find, self._catalogue.used)))

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def call(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        /,
        *,
        session: Any = None,
        timeout: Any = None,
        **kwargs: Any,
    ) -> ToolResult:
        """Run a tool with arguments as a mapping, by keyword, or both.

        `session`, a text, groups calls for undo, grants and the record; `timeout` is in seconds. If the tool itself has
        a parameter of that name, the keyword is the tool's, unless `args` already holds one.
        """
        given = dict(args or {}, **kwargs)
        if (session is not None or timeout is not None) and (bound := self.tools.get(tool)) is not None:
            own = bound.spec.input.get("properties", {})
            if session is not None and "session" in own and "session" not in given:
                given["session"], session = session, None
            if timeout is not None and "timeout" in own and "timeout" not in given:
                given["timeout"], timeout = timeout, None
        return await self.run(self._new_call(tool, given, session=session, timeout=timeout))

    def _new_call(self, tool: str, args: Mapping[str, Any], session: str | None = None, **more: Any) -> ToolCall:
        session = session or self.session
        return ToolCall(tool=tool, args=args, session=session, principal=self.principal, origin=self.origin, **more)

    async def run(self, call: ToolCall) -> ToolResult:
        """Run a call that is spelled out: with its own session, principal, timeout and expected cost."""
        if not self._started:
            raise ToolreeveError("the runtime is not started: use `async with Toolreeve() as reeve`")
        return await self._calls.run(call)

    def cancel(self, call_id: str) -> bool:
        """Cancel a running call: its caller gets E_CANCELLED. False if there is no such call."""
        return self._calls.cancel(call_id)

    async def batch(self, requests: Sequence[flows.Request], *, concurrency: int = 8) -> list[ToolResult]:
        """Run calls concurrently; results come in the order of the requests."""
        return await flows.batch(self.call, requests, run=self.run, concurrency=concurrency)

    async def chain(self, steps: Sequence[flows.Request], *, stop_on_error: bool = True) -> list[ToolResult]:
        """Run calls one after another; `{{previous.field}}` and `{{steps[0].field}}` refer to earlier results."""
        return await flows.chain(self.call, steps, run=self.run, stop_on_error=stop_on_error)

    async def execute_batch(self, requests: Sequence[flows.Request]) -> list[dict[str, Any]]:
        """As `batch`, with flat results."""
        return [result.to_flat() for result in await self.batch(requests)]

    async def execute_tool_chain(self, steps: Sequence[flows.Request]) -> list[dict[str, Any]]:
        """As `chain`, with flat results."""
        return [result.to_flat() for result in await self.chain(steps)]

    async def execute_mcp_tool(
        self, tool_name: str, params: Mapping[str, Any], timeout: float | None = None
    ) -> dict[str, Any]:
        """The flat result of a tool, named plainly or as `mcp__server__tool`, of any configured server.

        Raises ValueError for a malformed name or an unknown server, PermissionError if approval is needed and nobody
        can be asked, or the answer is no.
        """
        if (server := server_of(tool_name)) in self._builtin_servers:
            tool_name = tool_name.replace(f"mcp__{server}__", f"mcp__{BUILTIN_SERVER}__", 1)
        _check_server(tool_name, self.tools, self.fleet)
        result = await self.run(self._new_call(tool_name, params, timeout=timeout))
        if result.error is not None and result.error.code in REFUSALS:
            ways = "; or ".join(result.error.suggestions)
            raise PermissionError(f"{result.error.message}. Either {ways}" if ways else result.error.message)
        return result.to_flat()

    async def discover_mcp_tools(
        self, server_name: str | None = None, category: str | None = None
    ) -> list[dict[str, Any]]:
        """The tools of one server or of all, the builtin one included, as `mcp__server__tool`.

        Raises ValueError for a server that is not configured.
        """
        if server_name in self._builtin_servers:
            server_name = BUILTIN_SERVER
        if server_name not in (None, BUILTIN_SERVER):
            await self.fleet.ready(self.fleet.upstream(str(server_name)).name)
        elif server_name is None:
            await self.fleet.settled()
        from toolreeve.upstream.tools.discovery import discover

        return discover(self.tools.list(), server=server_name, category=category)

    def tools_for(self, provider: str, only: Sequence[str] | None = None) -> list[Any]:
        """The tools in the format of a model provider: openai, openai_responses, anthropic, ollama, gemini or mcp.

        `only` chooses them by name, category or pattern, as `--tools` does. The items are plain dicts, which the
        providers' clients accept as `tools`.
        """
        from toolreeve.formats import tools_for

        specs = [bound.spec for bound in self.tools.list()]
        if only is not None:
            toolset = read_toolset(only)
            check_toolset(toolset, specs)
            specs = [spec for spec in specs if toolset.includes(spec)]
        return tools_for(provider, specs)

    async def run_tool_calls(self, provider: Any, response: Any = None) -> list[Any]:
        """Run all tool calls of a model's response side by side. Returns the messages that answer them, to be appended
        to the conversation after the response's own; none if the model called no tool. The provider may be left out:
        a whole response shows whose it is."""
        from toolreeve.formats import find_provider, format_results, parse_calls

        if response is None:
            provider, response = find_provider(provider), provider
        calls = parse_calls(provider, response, [bound.spec.name for bound in self.tools.list()])
        results = await asyncio.gather(*(self.run(self._new_call(call.name, call.args)) for call in calls))
        answers = [(call.id, result) for call, result in zip(calls, results, strict=True)]
        return format_results(provider, answers, names=[call.name for call in calls]) if calls else []

    async def say(self, text: str, *, session: str | None = None) -> None:
        """Pass on what the user typed: it vouches for the values it names, and says what was asked for. Only a person's
        own words belong here; never what a model wrote or a tool returned."""
        await self._parts.flow.sessions.say(text, user=self.principal.user, session=session or self.session)

    async def undo(
        self,
        call_id: str | None = None,
        *,
        session: str | None = None,
        last: bool = False,
        force: bool = False,
    ) -> ToolResult:
        """Revert the file changes of a call, of the last call that has any in this workspace, or of all calls of a
        session, whoever made them. This is itself a recorded call."""
        args: dict[str, Any] = {"force": force}
        if last:
            call_id = await self._parts.undo.last_call(self._parts.files.reaches)
        if call_id:
            args["call_id"] = call_id
        if session:
            args["session"] = session
        return await self.run(self._new_call("undo", args, record_scope=RecordScope.ALL))

    def explain(
        self, tool: str, args: Mapping[str, Any] | None = None, *, estimated_cost: float = 0.0
    ) -> "Explanation":
        """The decision about a call, and why, without running it; for a tool of an MCP server, its pin as well."""
        from toolreeve.policy.explanation import explain, refused

        bound = self.tools.resolve(tool)
        call = ToolCall(tool=tool, args=args or {}, principal=self.principal, estimated_cost=estimated_cost)
        action = Action(call, bound, bound.input.parse(client_arguments(tool, call.args)), self._parts.files)
        explanation = explain(action, self._parts.policy())
        if bound.spec.server is None and bound.spec.category != "shell":
            return explanation
        refusal = self._parts.pipeline.refusal(action)
        return explanation if refusal is None else refused(explanation, refusal)

    @property
    def audit(self) -> Audit:
        """The record of all calls: `recent`, `list`, `show`, `export`, `verify`."""
        return self._parts.audit

    @property
    def approvals(self) -> "Approvals":
        """Questions to people, pending and answered: `list`, `show`, `decide`, `changes`, `history`, `grants`."""
        return self._parts.approval.approvals

    @property
    def fleet(self) -> "ServerPool":
        """The MCP servers of this runtime."""
        return self._parts.upstream.pool

    @property
    def bus(self) -> Bus:
        """The events of calls, approvals and servers, to subscribe to."""
        return self._parts.bus

    @property
    def budget(self) -> Budget | None:
        """What may be spent, and what has been; None without a limit."""
        return self._parts.policy.budget

    @property
    def metrics(self) -> Metrics:
        """Counters and histograms; `render` writes them in Prometheus' text format."""
        return self._parts.metrics

    @cached_property
    def internals(self) -> Internals:
        """For doors such as servers and commands; not part of the public interface."""
        return Internals(self._parts, self.configuration, self._calls)


def _check_server(name: str, tools: ToolRegistry, fleet: "ServerPool") -> None:
    if not name.startswith("mcp__") or name in tools:
        return
    server = server_of(name)
    if server is None:
        raise ValueError(f"{name!r} is not of the form mcp__server__tool")
    if server != BUILTIN_SERVER and fleet.named_by(name) is None:
        raise ValueError(f"no MCP server is called {server!r}")
