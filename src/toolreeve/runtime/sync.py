"""The synchronous runtime: one event loop in its own thread runs every call."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from toolreeve import flows
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.result import ToolResult
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.builtin import BuiltinTools
from toolreeve.runtime.toolreeve import Toolreeve

T = TypeVar("T")


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
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncToolreeve:
    """`Toolreeve` without async. Use it as `with Toolreeve.sync() as reeve`."""

    def __init__(self, build: Callable[[], Toolreeve]) -> None:
        self._reeve = build()
        self._portal: Portal | None = None

    def start(self) -> Self:
        self._portal = Portal()
        try:
            self._portal.run(self._reeve.start())
        except BaseException:
            self._portal.close()
            self._portal = None
            raise
        return self

    def close(self) -> None:
        if self._portal is not None:
            try:
                self._portal.run(self._reeve.close())
            finally:
                self._portal.close()
                self._portal = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._portal is None:
            work.close()
            raise ToolreeveError("the runtime is not started: use `with Toolreeve.sync() as reeve`")
        return self._portal.run(work)

    def call(self, tool: str, args: Mapping[str, Any] | None = None, /, **kwargs: Any) -> ToolResult:
        return self._run(self._reeve.call(tool, args, **kwargs))

    def batch(self, requests: Sequence[flows.Request], *, concurrency: int = 8) -> list[ToolResult]:
        return self._run(self._reeve.batch(requests, concurrency=concurrency))

    def chain(self, steps: Sequence[flows.Request], *, stop_on_error: bool = True) -> list[ToolResult]:
        return self._run(self._reeve.chain(steps, stop_on_error=stop_on_error))

    def undo(self, call_id: str | None = None, *, session: str | None = None, force: bool = False) -> ToolResult:
        return self._run(self._reeve.undo(call_id, session=session, force=force))

    def execute_mcp_tool(
        self, tool_name: str, params: Mapping[str, Any], timeout: float | None = None
    ) -> dict[str, Any]:
        return self._run(self._reeve.execute_mcp_tool(tool_name, params, timeout))

    def execute_batch(self, requests: Sequence[flows.Request]) -> list[dict[str, Any]]:
        return self._run(self._reeve.execute_batch(requests))

    def execute_tool_chain(self, steps: Sequence[flows.Request]) -> list[dict[str, Any]]:
        return self._run(self._reeve.execute_tool_chain(steps))

    def discover_mcp_tools(self, server_name: str | None = None, category: str | None = None) -> list[dict[str, Any]]:
        return self._run(self._reeve.discover_mcp_tools(server_name, category))

    def tools_for(self, provider: str) -> list[dict[str, Any]]:
        return self._reeve.tools_for(provider)

    @property
    def tools(self) -> ToolRegistry:
        return self._reeve.tools


class _SharedRuntime:
    """One runtime for `BUILTIN_TOOLS`, started by the first call. When Python exits, its store writes what is
    queued."""

    def __init__(self) -> None:
        self._reeve: SyncToolreeve | None = None
        self._lock = threading.Lock()

    def call(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        with self._lock:
            if self._reeve is None:
                self._reeve = Toolreeve.sync().start()
        return self._reeve.call(tool, args)


BUILTIN_TOOLS = BuiltinTools(_SharedRuntime().call)
