"""`BaseAgent`: a model with tools, inside or outside an event loop.

The runtime lives on a thread of its own, so `run` works in a script, and `run_async` in any event loop.
"""

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar

from toolreeve.agent.config import BaseAgentConfig
from toolreeve.agent.control.channel import ControlChannel
from toolreeve.agent.control.protocol import ControlProtocol
from toolreeve.agent.events import AgentEvent
from toolreeve.agent.providers import ModelProvider, connect
from toolreeve.agent.recorded_run import run_recorded
from toolreeve.agent.runs import AgentResult, ignore
from toolreeve.agent.signature import Ask, Signature
from toolreeve.agent.tool_host import ReeveTools
from toolreeve.core.errors import ToolreeveError
from toolreeve.formats import tools_for
from toolreeve.permissions import PermissionPolicy
from toolreeve.runtime.sync import Portal
from toolreeve.runtime.toolreeve import Toolreeve

T = TypeVar("T")
Emit = Callable[[AgentEvent], None]
_END: Any = object()
NODE = "agent_exec"


class BaseAgent:
    """An agent with the builtin tools, or those of `mcp_servers`: None for the builtin ones, [] for none, a list for
    exactly those in it (`{"name": N, "transport": {"type": "builtin"}}` being the builtin ones under the name N).

    `control_protocol` carries approvals and questions to a person; without one, and without `approve`, calls that need
    approval raise PermissionError. Further keywords are those of `Toolreeve`: workspace, mode, settings, tools…
    """

    def __init__(
        self,
        config: BaseAgentConfig | Mapping[str, Any],
        signature: Signature | type[Signature] | None = None,
        mcp_servers: Sequence[Mapping[str, Any]] | None = None,
        control_protocol: ControlProtocol | None = None,
        permission_policy: PermissionPolicy | None = None,
        **options: Any,
    ) -> None:
        self.config = BaseAgentConfig.of(config)
        self.signature = _signature_class(signature)
        self.control_protocol = control_protocol
        self.workflow_generator = WorkflowGenerator(self)
        options.setdefault("builtin", mcp_servers is None or any(map(_is_builtin, mcp_servers)))
        if control_protocol is not None:
            options.setdefault("approve", ControlChannel(control_protocol))
        self._reeve = Toolreeve(mcp_servers=mcp_servers or [], policy=permission_policy, origin="agent", **options)
        self._portal: Portal | None = None
        self._starting = threading.Lock()
        self._provider: ModelProvider | None = None

    @property
    def session(self) -> str:
        """The session of all calls of this agent."""
        return self._reeve.session

    def run(self, **inputs: Any) -> AgentResult:
        """Run until the model has answered; blocks. Use `run_async` inside an event loop."""
        return self._submit(self._run(inputs, None)).result()

    async def run_async(self, *, on_event: Emit | None = None, **inputs: Any) -> AgentResult:
        """`on_event` is called on the runtime's thread."""
        return await self._await(self._run(inputs, on_event))

    async def stream(self, **inputs: Any) -> AsyncIterator[AgentEvent]:
        """The events of a run as they happen; the last is `ended`. Leaving early cancels the run."""
        loop = asyncio.get_running_loop()
        events: asyncio.Queue[Any] = asyncio.Queue()

        def put(event: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the reader's loop has ended, and with it the interest
                loop.call_soon_threadsafe(events.put_nowait, event)

        running = self._submit(self._run(inputs, put))
        running.add_done_callback(lambda _: put(_END))
        try:
            while (event := await events.get()) is not _END:
                yield event
            running.result()
        finally:
            running.cancel()

    async def _run(self, inputs: dict[str, Any], emit: Emit | None) -> AgentResult:
        if self._provider is None:
            self._provider = connect(
                self.config.llm_provider,
                api_key=self.config.api_key,
                base_url=self.config.base_url,
                timeout=self.config.request_timeout,
                environ=self._reeve.configuration.known.environ,
            )
        return await run_recorded(
            self._reeve, self.config, inputs, provider=self._provider, signature=self.signature, emit=emit or ignore
        )

    def tool_host(self) -> ReeveTools:
        """The tools that a run of this agent has."""
        return ReeveTools(self._reeve, self.session)

    async def execute_mcp_tool(
        self, tool_name: str, params: Mapping[str, Any], timeout: float | None = None
    ) -> dict[str, Any]:
        """As `Toolreeve.execute_mcp_tool`."""
        return await self._await(self._reeve.execute_mcp_tool(tool_name, params, timeout))

    async def discover_mcp_tools(
        self, server_name: str | None = None, category: str | None = None
    ) -> list[dict[str, Any]]:
        """As `Toolreeve.discover_mcp_tools`."""
        return await self._await(self._reeve.discover_mcp_tools(server_name, category))

    def declared_tools(self) -> list[dict[str, Any]]:
        """The tools as the model is given them, in its provider's format. Waits for the servers."""
        return self._submit(self._declare()).result()

    async def _declare(self) -> list[dict[str, Any]]:
        await self._reeve.fleet.settled()
        return tools_for(self.config.llm_provider, self.tool_host().specs())

    async def execute_tool_chain(self, steps: Sequence[Any]) -> list[dict[str, Any]]:
        """As `Toolreeve.execute_tool_chain`."""
        return await self._await(self._reeve.execute_tool_chain(steps))

    async def ask_user_question(
        self, question: str, options: Sequence[str] | None = None, timeout: float = 60.0
    ) -> str:
        """Raises RuntimeError without a control protocol."""
        return await self._control().ask(question, options, timeout)

    async def request_approval(
        self, action: str, details: Mapping[str, Any] | None = None, timeout: float = 60.0
    ) -> bool:
        """True only for a strict yes."""
        return await self._control().approve(action, details, timeout)

    async def report_progress(
        self, message: str, percentage: float | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        """Does not wait for anybody. Raises ValueError for a percentage outside 0–100."""
        await self._control().progress(message, percentage, details)

    def close(self) -> None:
        """End running calls and release everything."""
        with self._starting:
            portal, self._portal = self._portal, None
        if portal is not None:
            try:
                portal.run(self._shut_down())
            finally:
                portal.close()

    async def _shut_down(self) -> None:
        if self._provider is not None:
            await self._provider.close()
        await self._reeve.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def _control(self) -> ControlProtocol:
        if self.control_protocol is None:
            raise RuntimeError("the agent has no control_protocol: pass one to ask a person")
        return self.control_protocol

    def _submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        try:
            portal = self._started()
        except BaseException:
            work.close()
            raise
        return portal.submit(work)

    async def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self._submit(work))

    def _started(self) -> Portal:
        """The runtime's thread; the first use starts it."""
        with self._starting:
            if self._portal is None:
                portal = Portal()
                try:
                    portal.run(self._reeve.start())
                except BaseException:
                    portal.close()
                    raise
                self._portal = portal
            return self._portal


def _signature_class(signature: Signature | type[Signature] | None) -> type[Signature]:
    if signature is None:
        return Ask
    found = signature if isinstance(signature, type) else type(signature)
    if not issubclass(found, Signature):
        raise ToolreeveError(f"signature={signature!r:.80}: pass a subclass of Signature, or an instance of one")
    return found


def _is_builtin(server: Mapping[str, Any]) -> bool:
    transport = server.get("transport")
    return isinstance(transport, Mapping) and transport.get("type") == "builtin"


@dataclass(frozen=True, slots=True)
class WorkflowNode:
    config: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Workflow:
    nodes: dict[str, WorkflowNode]

    def build(self) -> "Workflow":
        return self


class WorkflowGenerator:
    def __init__(self, agent: BaseAgent) -> None:
        self.agent = agent

    def generate_signature_workflow(self) -> Workflow:
        """One node, the model, with its tools. Works inside and outside of an event loop."""
        config = self.agent.config
        node = WorkflowNode(
            {
                "provider": config.llm_provider,
                "model": config.model,
                "temperature": config.temperature,
                "inputs": list(self.agent.signature.inputs),
                "outputs": list(self.agent.signature.outputs),
                "tools": self.agent.declared_tools(),
            }
        )
        return Workflow({NODE: node})
