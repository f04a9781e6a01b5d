"""The synchronous runtime: an event loop in its own thread.

Its methods are those of `Toolreeve`, derived from them: nothing is declared twice.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from toolreeve.approval.channels.callback import CallbackChannel
from toolreeve.approval.request import Answer, Request
from toolreeve.config import Configuration
from toolreeve.core.call import Principal
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.core.result import ToolResult
from toolreeve.core.tool import BoundTool
from toolreeve.record.audit import Audit
from toolreeve.record.bus import Bus
from toolreeve.record.metrics import Metrics
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.builtin import BuiltinTools
from toolreeve.runtime.toolreeve import Toolreeve

if TYPE_CHECKING:
    from toolreeve.policy.state import Budget
    from toolreeve.runtime.approvals import Approvals
    from toolreeve.upstream.pool import ServerPool

T = TypeVar("T")
P = ParamSpec("P")


class Portal:
    """A thread with an event loop. Safe to use from any number of threads, also from inside another loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="toolreeve-portal")
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the coroutine. An interrupt of the waiting thread cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise ToolreeveError("SyncToolreeve cannot be called from inside its own calls: use Toolreeve there")
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Start the coroutine without waiting for it. Cancelling the future cancels it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _waiting(
    method: Callable[Concatenate[Toolreeve, P], Coroutine[Any, Any, T]],
) -> "Callable[Concatenate[SyncToolreeve, P], T]":
    """A method of `Toolreeve` that waits for its result."""

    @wraps(method)
    def run(self: "SyncToolreeve", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.wait(method(self.runtime, *args, **kwargs))

    return run


def _plain(method: Callable[Concatenate[Toolreeve, P], T]) -> "Callable[Concatenate[SyncToolreeve, P], T]":
    """A method of `Toolreeve` that does not wait. It runs on the loop's thread once the runtime is started."""

    @wraps(method)
    def run(self: "SyncToolreeve", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.on_loop(lambda: method(self.runtime, *args, **kwargs))

    return run


class SyncToolreeve:
    """`Toolreeve` without async. Use it as `with Toolreeve.sync() as reeve`.

    Parts such as `audit` and `approvals` are those of the runtime; `wait` awaits what their methods return:
    `reeve.wait(reeve.audit.list())`.
    """

    def __init__(self, runtime: Toolreeve) -> None:
        self.runtime = runtime
        self._portal: Portal | None = None

    def __repr__(self) -> str:
        return repr(self.runtime).replace("Toolreeve", "SyncToolreeve", 1)

    def start(self) -> Self:
        """Open the record and connect the servers. `with` does this."""
        self._portal = Portal()
        try:
            self._portal.run(self.runtime.start())
        except BaseException:
            self._portal.close()
            self._portal = None
            raise
        return self

    def close(self) -> None:
        """Cancel running calls, each with its record, and release everything."""
        if self._portal is not None:
            try:
                self._portal.run(self.runtime.close())
            finally:
                self._portal.close()
                self._portal = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine, run on the runtime's own loop."""
        if self._portal is None:
            work.close()
            raise ToolreeveError("the runtime is not started: use `with Toolreeve.sync() as reeve`")
        return self._portal.run(work)

    def on_loop(self, function: Callable[[], T]) -> T:
        """The result of a function, called on the runtime's own thread; directly if it is not started."""

        async def call() -> T:
            return function()

        return function() if self._portal is None else self._portal.run(call())

    call = _waiting(Toolreeve.call)
    run = _waiting(Toolreeve.run)
    batch = _waiting(Toolreeve.batch)
    chain = _waiting(Toolreeve.chain)
    run_tool_calls = _waiting(Toolreeve.run_tool_calls)
    undo = _waiting(Toolreeve.undo)
    say = _waiting(Toolreeve.say)
    execute_mcp_tool = _waiting(Toolreeve.execute_mcp_tool)
    execute_batch = _waiting(Toolreeve.execute_batch)
    execute_tool_chain = _waiting(Toolreeve.execute_tool_chain)
    discover_mcp_tools = _waiting(Toolreeve.discover_mcp_tools)
    cancel = _plain(Toolreeve.cancel)
    reload = _plain(Toolreeve.reload)
    explain = _plain(Toolreeve.explain)
    tools_for = _plain(Toolreeve.tools_for)

    @property
    def configuration(self) -> Configuration:
        """The settings in force, and where each comes from."""
        return self.runtime.configuration

    @property
    def tools(self) -> ToolRegistry:
        """The registry of tools."""
        return self.runtime.tools

    @property
    def session(self) -> str:
        """The session of calls that name none."""
        return self.runtime.session

    @property
    def principal(self) -> Principal:
        """The caller, for policy and record."""
        return self.runtime.principal

    @property
    def origin(self) -> str:
        """The door that calls are recorded with."""
        return self.runtime.origin

    @property
    def problems(self) -> Sequence[ConfigError]:
        """Every tool file, MCP server and tool of a server that could not be loaded, and why."""
        return self.runtime.problems

    @property
    def audit(self) -> Audit:
        """The record of all calls."""
        return self.runtime.audit

    @property
    def approvals(self) -> "Approvals":
        """Questions to people, pending and answered: `list`, `show`, `decide`, `changes`, `history`, `grants`."""
        return self.runtime.approvals

    @property
    def fleet(self) -> "ServerPool":
        """The MCP servers of this runtime."""
        return self.runtime.fleet

    @property
    def budget(self) -> "Budget | None":
        """As `Toolreeve.budget`."""
        return self.runtime.budget

    @property
    def bus(self) -> Bus:
        """The events of calls, approvals and servers."""
        return self.runtime.bus

    @property
    def metrics(self) -> Metrics:
        """Counters and histograms."""
        return self.runtime.metrics


class _BuiltinApproval:
    """The channel of `BUILTIN_TOOLS.approve`, once it is set."""

    name = "callback"

    def available(self) -> bool:
        return BUILTIN_TOOLS.approve is not None

    async def ask(self, request: Request) -> Answer:
        return await CallbackChannel(BUILTIN_TOOLS.approve or _deny).ask(request)


def _deny(_: Request) -> bool:
    return False


class _SharedRuntime:
    """One runtime for `BUILTIN_TOOLS`, started by the first call. When Python exits, its store writes what is
    queued."""

    def __init__(self) -> None:
        self._reeve: SyncToolreeve | None = None
        self._lock = threading.Lock()

    def call(self, tool: BoundTool, args: Mapping[str, Any]) -> ToolResult:
        with self._lock:
            if self._reeve is None:
                self._reeve = Toolreeve.sync(approve=[_BuiltinApproval()]).start()
            if tool.spec.name not in self._reeve.runtime.tools:  # one that the program registered
                self._reeve.runtime.tools.register(tool)
        return self._reeve.call(tool.spec.name, args)


BUILTIN_TOOLS = BuiltinTools(_SharedRuntime().call)
