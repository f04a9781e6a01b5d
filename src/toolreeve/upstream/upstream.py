"""One upstream server: requests on behalf of calls, within their deadlines.

A call is never repeated unless the user has said that repeating it does no harm. Secrets that the server was given do
not come back from it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context
from toolreeve.core.errors import ToolError
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.upstream import era_bridge
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.peer import as_mcp_peer
from toolreeve.upstream.status import ServerState, unavailable
from toolreeve.upstream.supervisor import Emit, OnNotification, ServerSupervisor
from toolreeve.upstream.tools.listing import CAPABILITIES, Listed, list_all
from toolreeve.upstream.tools.result import failure_of
from toolreeve.upstream.transports.transport import Connect, Identity, RemoteError, ServerUnavailable


class Upstream:
    """`timeout` is for calls that set none; `on_notification` gets the server's notifications, `emit` the events about
    its state."""

    def __init__(
        self,
        spec: ServerSpec,
        connect: Connect,
        identity: Identity,
        *,
        timeout: float,
        jitter: Callable[[], float],
        on_notification: OnNotification,
        emit: Emit,
    ) -> None:
        self.spec = spec
        self.scrubber = Scrubber(spec.secret_values)
        self.supervisor = ServerSupervisor(
            spec,
            connect,
            identity,
            scrubber=self.scrubber,
            jitter=jitter,
            on_notification=self._notified,
            emit=emit,
        )
        self._timeout = timeout
        self._on_notification = on_notification
        self._emit = emit
        self._lists: dict[Listed, list[Any]] = {}
        self._listed_by: object = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def state(self) -> ServerState:
        return self.supervisor.state

    @property
    def problem(self) -> str:
        return self.supervisor.problem

    @property
    def era(self) -> str | None:
        main = self.supervisor.main
        return None if main is None else str(main.era)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        main = self.supervisor.main
        return {} if main is None else main.server_capabilities

    @property
    def is_settled(self) -> bool:
        """Whether the first attempt to connect has ended, either way."""
        return self.supervisor.state is not ServerState.CONNECTING

    def log_lines(self) -> list[str]:
        """The last lines that the server printed outside of the protocol."""
        main = self.supervisor.main
        return [] if main is None else main.last_output().splitlines()

    async def request(
        self, method: str, params: Mapping[str, Any], context: Context, *, repeatable: bool = False
    ) -> dict[str, Any]:
        """Send a request on behalf of a call. Raises ToolError(UPSTREAM)."""
        call = context.call
        supervisor = self.supervisor
        deadline = context.deadline
        peer = as_mcp_peer(call.peer)
        era = None if peer is None or peer is not call.peer else peer.era
        try:
            session = supervisor.find(era) or await supervisor.reach(era, self._seconds(call))
            try:
                return await era_bridge.send_request(session, method, params, peer, deadline)
            except ServerUnavailable:
                if not repeatable:
                    raise
            session = supervisor.find(era) or await supervisor.reach(era, self._seconds(call))
            return await era_bridge.send_request(session, method, params, peer, deadline)
        except (RemoteError, ServerUnavailable) as problem:
            raise self._failure(problem) from None

    async def subscribe(self, params: Mapping[str, Any], call: ToolCall, *, ends: bool = False) -> dict[str, Any]:
        """Start or end a subscription to a resource. Raises ToolError(UPSTREAM)."""
        try:
            if self.supervisor.main is None:
                await self.supervisor.reach(None, self._seconds(call))
            subscriptions = self.supervisor.subscriptions
            return await (subscriptions.remove(params) if ends else subscriptions.add(params))
        except (RemoteError, ServerUnavailable) as problem:
            raise self._failure(problem) from None

    def report_mismatch(self, tool: str, diagnostics: Mapping[str, Any]) -> None:
        """Emit an event about a result that does not fit the tool's output schema."""
        self._emit("answer_odd", {"server": self.name, "tool": tool, **diagnostics})

    def _failure(self, problem: RemoteError | ServerUnavailable) -> ToolError:
        if isinstance(problem, RemoteError):
            return failure_of(problem, self.name)
        return unavailable(self.name, self.scrubber.text(str(problem)))

    def _seconds(self, call: ToolCall) -> float:
        return float(call.timeout or self.spec.timeout or self._timeout)

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method.endswith("/list_changed"):
            self._lists.clear()
        self._on_notification(method, params)

    def lists_resource(self, uri: object) -> bool:
        """Whether the server has listed exactly this resource."""
        return any(isinstance(each, Mapping) and each.get("uri") == uri for each in self._lists.get("resources", ()))

    def resource_uris(self) -> Sequence[str]:
        """Of the resources that it has last listed."""
        listed = [each.get("uri") for each in self._lists.get("resources", ()) if isinstance(each, Mapping)]
        return [uri for uri in listed if isinstance(uri, str)]

    async def list_items(self, listed: Listed) -> Sequence[Any]:
        """Its resources, templates or prompts. Raises RemoteError, ServerUnavailable, TimeoutError."""
        main = self.supervisor.main
        if main is None or CAPABILITIES[listed] not in main.server_capabilities:
            return ()
        if self._listed_by is not main:
            self._lists = {}
            self._listed_by = main
        if listed not in self._lists:
            async with asyncio.timeout(self.spec.connect_timeout):
                self._lists[listed] = await list_all(main.request, listed)
        return self._lists[listed]
