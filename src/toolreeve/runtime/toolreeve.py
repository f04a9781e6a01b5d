"""The runtime: everything a program does with Toolreeve starts here, and every call it makes takes the road."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from toolreeve import flows, formats
from toolreeve.config import Configuration, Settings
from toolreeve.core.action import Action
from toolreeve.core.call import LOCAL, Principal, ToolCall, new_id
from toolreeve.core.errors import ConfigError, ErrorCode, ToolreeveError
from toolreeve.core.names import BUILTIN_SERVER, server_of
from toolreeve.core.result import ToolResult
from toolreeve.policy.explanation import Explanation, explain, refused
from toolreeve.policy.mode import PermissionMode
from toolreeve.record.audit import Audit
from toolreeve.record.bus import Bus
from toolreeve.record.metrics import Metrics
from toolreeve.record.pending import PendingStore
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.build import Assembly
from toolreeve.runtime.given import (
    Approve,
    McpServers,
    Policy,
    channels_of,
    new_catalogue,
    new_configuration,
    new_registry,
    servers_of,
)
from toolreeve.runtime.policy_source import PolicySource
from toolreeve.scripted.catalogue import CatalogueChange
from toolreeve.upstream.pool import ServerPool
from toolreeve.upstream.tools.discovery import discover
from toolreeve.upstream.tools.pins import Pins
from toolreeve.upstream.transports.connect import Authorize

if TYPE_CHECKING:
    from toolreeve.runtime.sync import SyncToolreeve

logger = logging.getLogger(__name__)

PATIENCE = 5.0
"""How many seconds the calls under way get to end when the runtime is closed."""
LOOK_EVERY = 1.0
REFUSALS = frozenset(
    {
        ErrorCode.PERMISSION,
        ErrorCode.APPROVAL_DENIED,
        ErrorCode.APPROVAL_TIMEOUT,
        ErrorCode.APPROVAL_PENDING,
        ErrorCode.DENIED,
    }
)


class Toolreeve:
    """Tools behind one call. Use it as `async with Toolreeve() as reeve`.

    What is not given is looked up in the configuration; `settings` says everything and looks up nothing. `policy` is a
    PermissionPolicy, or rules on top of the configured ones. `approve` answers what must be asked: an async function of
    the request, or one or more channels. `mcp_servers` are tables by name as in a configuration file, or a path to one;
    an empty one means none. The runtime starts when all of them are connected or have failed, unless `await_servers` is
    off; `mcp_authorize` is given the URL at which a person logs in to one.
    """

    def __init__(
        self,
        *,
        workspace: str | Path | None = None,
        mode: PermissionMode | str | None = None,
        tools: Iterable[Any] = (),
        tool_files: Iterable[str | Path] = (),
        policy: Policy | None = None,
        approve: Approve | None = None,
        settings: Settings | Configuration | None = None,
        mcp_servers: McpServers | None = None,
        mcp_authorize: Authorize | None = None,
        await_servers: bool = True,
        principal: Principal = LOCAL,
        origin: str = "python",
    ) -> None:
        self.configuration = new_configuration(settings, workspace, mode, tool_files)
        self.tools = new_registry(self.configuration, tools)
        self._catalogue = new_catalogue(self.configuration, self.tools)
        standing = PolicySource(self.configuration, policy)
        servers, self._server_problems = servers_of(self.configuration, mcp_servers)
        self._parts = Assembly(
            self.configuration, self.tools, standing, channels_of(approve), servers, authorize=mcp_authorize
        )
        self._await_servers = await_servers
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._quiet: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._started = False
        self._watching: asyncio.Task[None] | None = None
        self._learn_secrets()
        self.principal, self.origin, self.session = principal, origin, new_id()

    @staticmethod
    def sync(**options: Any) -> "SyncToolreeve":
        """The same without `async`: use it as `with Toolreeve.sync() as reeve`."""
        from toolreeve.runtime.sync import SyncToolreeve

        return SyncToolreeve(lambda: Toolreeve(**options))

    async def start(self) -> Self:
        if self._started or self._closing is not None:
            raise ToolreeveError("a runtime is started once; make another one")
        await self._parts.start()
        self._started = True
        if not self._catalogue.is_empty:
            self._watching = asyncio.create_task(self._watch())
        if self._await_servers:
            await self._settle()
        return self

    async def _settle(self) -> None:
        """Each server is given its own time to connect. Whoever gives up waiting leaves nothing running."""
        try:
            await self.fleet.settled()
        except BaseException:
            await asyncio.shield(self.close())
            raise

    async def close(self) -> None:
        """End the calls that are under way, each with its record, and let go of everything."""
        if self._started:
            self._started = False
            # A task of its own: a tool that closes the runtime is itself one of the calls that end.
            self._closing = asyncio.create_task(self._shut())
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        if self._running:
            self._quiet = asyncio.get_running_loop().create_future()
            for call_id in list(self._running):
                self.cancel(call_id)
            await asyncio.wait([self._quiet], timeout=PATIENCE)
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        await self._parts.close()

    @property
    def problems(self) -> Sequence[ConfigError]:
        """What is wrong with files of tools in YAML and with `mcp_servers`; the others are there."""
        return (*self._catalogue.problems, *self._server_problems)

    def reload(self) -> Sequence[CatalogueChange]:
        """Read files of tools again that have changed. Done by itself every second while the runtime runs; whoever runs
        the program is told what is wrong with them, once for each change."""
        changes = self._catalogue.refresh()
        for change in changes:
            for problem in change.problems:
                logger.warning("the tools stay as they were: %s", problem)
            for name in (*change.changed, *change.removed):
                self._parts.gate.forget(name)
            self._parts.teller.tools_changed(change.to_dict())
        if changes:
            self._learn_secrets()
        return changes

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
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

    async def call(self, tool: str, args: Mapping[str, Any] | None = None, /, **kwargs: Any) -> ToolResult:
        """Run a tool with arguments as a mapping, by keyword, or both."""
        given = kwargs if args is None else {**args, **kwargs} if kwargs else args
        return await self.run(
            ToolCall(tool=tool, args=given, session=self.session, principal=self.principal, origin=self.origin)
        )

    async def run(self, call: ToolCall) -> ToolResult:
        """Take a call, spelled out with its session, principal and time limit, down the road."""
        if not self._started:
            raise ToolreeveError("the runtime is not started: use `async with Toolreeve() as reeve`")
        task = self._running[call.id] = _this_task()
        try:
            return await self._parts.pipeline.run(call)
        finally:
            self._running.pop(call.id, None)
            if self._quiet is not None and not self._running and not self._quiet.done():
                self._quiet.set_result(None)
            if call.id in self._parts.pipeline.revoked:
                self._parts.pipeline.revoked.discard(call.id)
                task.uncancel()

    def cancel(self, call_id: str) -> bool:
        """End a call that is under way: its caller gets E_CANCELLED. False if no such call is."""
        task = self._running.get(call_id)
        if task is None or call_id in self._parts.pipeline.revoked:
            return False
        self._parts.pipeline.revoked.add(call_id)
        return task.cancel()

    async def batch(self, requests: Sequence[flows.Request], *, concurrency: int = 8) -> list[ToolResult]:
        """Run calls at the same time; the results are in the order of the requests."""
        return await flows.batch(self.call, requests, run=self.run, concurrency=concurrency)

    async def chain(self, steps: Sequence[flows.Request], *, stop_on_error: bool = True) -> list[ToolResult]:
        """Run calls one after another; `{{previous.field}}` and `{{steps[0].field}}` refer to earlier results."""
        return await flows.chain(self.call, steps, run=self.run, stop_on_error=stop_on_error)

    async def execute_batch(self, requests: Sequence[flows.Request]) -> list[dict[str, Any]]:
        return [result.to_flat() for result in await self.batch(requests)]

    async def execute_tool_chain(self, steps: Sequence[flows.Request]) -> list[dict[str, Any]]:
        return [result.to_flat() for result in await self.chain(steps)]

    async def execute_mcp_tool(
        self, tool_name: str, params: Mapping[str, Any], timeout: float | None = None
    ) -> dict[str, Any]:
        """The flat result of a tool named plainly or as `mcp__server__tool`, of any server that is configured.

        Raises ValueError for a malformed name or an unknown server, PermissionError when approval is needed and there
        is no way to ask, or the answer is no.
        """
        _check_server(tool_name, self.tools, self.fleet)
        call = ToolCall(
            tool=tool_name,
            args=params,
            session=self.session,
            principal=self.principal,
            origin=self.origin,
            timeout=timeout,
        )
        result = await self.run(call)
        if result.error is not None and result.error.code in REFUSALS:
            raise PermissionError("; or ".join((result.error.message, *result.error.suggestions)))
        return result.to_flat()

    async def discover_mcp_tools(
        self, server_name: str | None = None, category: str | None = None
    ) -> list[dict[str, Any]]:
        """The tools of one server or of all, the builtin one included, as `mcp__server__tool`.

        Raises ValueError for a server that is not configured.
        """
        if server_name not in (None, BUILTIN_SERVER):
            await self.fleet.ready(self.fleet.upstream(str(server_name)).name)
        elif server_name is None:
            await self.fleet.settled()
        return discover(self.tools.list(), server=server_name, category=category)

    def tools_for(self, provider: str) -> list[dict[str, Any]]:
        """All tools in the format of a model provider: openai, anthropic, ollama, gemini or mcp."""
        return formats.tools_for(provider, [bound.spec for bound in self.tools.list()])

    async def undo(self, call_id: str | None = None, *, session: str | None = None, force: bool = False) -> ToolResult:
        """Put back what a call, or all calls of a session, changed in files. Itself a call in the record."""
        named = {"call_id": call_id, "session": session}
        return await self.call("undo", {key: value for key, value in named.items() if value} | {"force": force})

    def explain(self, tool: str, args: Mapping[str, Any] | None = None, *, estimated_cost: float = 0.0) -> Explanation:
        """What the policy says about a call, and why, without making it; of a tool elsewhere, its pin as well."""
        bound = self.tools.resolve(tool)
        call = ToolCall(tool=tool, args=args or {}, principal=self.principal, estimated_cost=estimated_cost)
        action = Action(call, bound, bound.input.parse(call.args), self._parts.files)
        explanation = explain(action, self._parts.policy())
        refusal = None if bound.spec.server is None else self._parts.pipeline.refusal(action)
        return explanation if refusal is None else refused(explanation, refusal)

    @property
    def audit(self) -> Audit:
        return self._parts.audit

    @property
    def approvals(self) -> PendingStore:
        """What waits for a person's answer."""
        return self._parts.approvals

    @property
    def fleet(self) -> ServerPool:
        """The MCP servers behind this runtime."""
        return self._parts.fleet

    @property
    def pins(self) -> Pins:
        """What the tools of MCP servers were when they were first seen, and what of that has changed."""
        return self._parts.pins

    @property
    def bus(self) -> Bus:
        return self._parts.bus

    @property
    def metrics(self) -> Metrics:
        return self._parts.metrics

    @property
    def files(self) -> Any:
        return self._parts.files


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise ToolreeveError("calls are made from inside a task of an asyncio event loop")
    return task


def _check_server(name: str, tools: ToolRegistry, fleet: ServerPool) -> None:
    if not name.startswith("mcp__") or name in tools:
        return
    server = server_of(name)
    if server is None:
        raise ValueError(f"{name!r} is not of the form mcp__server__tool")
    if server != BUILTIN_SERVER and fleet.named_by(name) is None:
        raise ValueError(f"no MCP server is called {server!r}")
