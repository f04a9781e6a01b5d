"""How is a server asked? On behalf of a call, within its deadline, in the era of whoever made it.

A call is never made twice unless the user has said that this does no harm. What the server was given in secret does not
come back from it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.upstream import era_bridge
from toolreeve.upstream.connections import Dial, Identity
from toolreeve.upstream.scrubber import Scrubber
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.session.peer import as_mcp_peer
from toolreeve.upstream.supervisor import Notice, ServerState, ServerSupervisor, Tell
from toolreeve.upstream.tools.listing import CAPABILITIES, Listed, list_all
from toolreeve.upstream.tools.result import failure_of
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable


class Upstream:
    """One server. `timeout` is what a call gets that says nothing; `notice` hears what the server says unasked, `tell`
    what becomes of it."""

    def __init__(
        self,
        spec: ServerSpec,
        dial: Dial,
        identity: Identity,
        *,
        timeout: float,
        draw: Callable[[], float],
        notice: Notice,
        tell: Tell,
    ) -> None:
        self.spec = spec
        self.veil = Scrubber(spec.secret_values)
        self.keeper = ServerSupervisor(spec, dial, identity, veil=self.veil, draw=draw, notice=self._hear, tell=tell)
        self._timeout, self._notice, self._tell = timeout, notice, tell
        self._lists: dict[Listed, list[Any]] = {}
        self._listed_by: object = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def state(self) -> ServerState:
        return self.keeper.state

    @property
    def problem(self) -> str:
        return self.keeper.problem

    @property
    def era(self) -> str | None:
        main = self.keeper.main
        return None if main is None else str(main.era)

    @property
    def capabilities(self) -> Mapping[str, Any]:
        main = self.keeper.main
        return {} if main is None else main.server_capabilities

    @property
    def is_settled(self) -> bool:
        """Whether the first attempt to connect has ended, either way."""
        return self.keeper.state is not ServerState.CONNECTING

    async def carry(
        self, method: str, params: Mapping[str, Any], context: Context, *, repeatable: bool = False
    ) -> dict[str, Any]:
        """A request on behalf of a call. Raises ToolError(UPSTREAM)."""
        call, keeper, deadline = context.call, self.keeper, context.deadline
        peer = as_mcp_peer(call.peer)
        era = None if peer is None or peer is not call.peer else peer.era
        try:
            session = keeper.find(era) or await keeper.reach(era, self._seconds(call))
            try:
                return await era_bridge.ask(session, method, params, peer, deadline)
            except ServerUnavailable:
                if not repeatable:
                    raise
            session = keeper.find(era) or await keeper.reach(era, self._seconds(call))
            return await era_bridge.ask(session, method, params, peer, deadline)
        except (RemoteError, ServerUnavailable) as problem:
            raise self._failure(problem) from None

    async def subscribe(self, params: Mapping[str, Any], call: ToolCall, *, ends: bool = False) -> dict[str, Any]:
        """Begin or end to hear of a resource's changes. Raises ToolError(UPSTREAM)."""
        try:
            if self.keeper.main is None:
                await self.keeper.reach(None, self._seconds(call))
            wanted = self.keeper.subscriptions
            return await (wanted.remove(params) if ends else wanted.add(params))
        except (RemoteError, ServerUnavailable) as problem:
            raise self._failure(problem) from None

    def note_odd(self, tool: str, diagnostics: Mapping[str, Any]) -> None:
        """Tell whoever watches that an answer was not what it should be."""
        self._tell("answer_odd", {"server": self.name, "tool": tool, **diagnostics})

    def _failure(self, problem: RemoteError | ServerUnavailable) -> ToolError:
        if isinstance(problem, RemoteError):
            return failure_of(problem, self.name)
        return ToolError(
            ErrorCode.UPSTREAM,
            f"the server {self.name!r} is away: {self.veil.text(str(problem))}",
            suggestions=(f"toolreeve servers test {self.name}",),
        )

    def _seconds(self, call: ToolCall) -> float:
        return float(call.timeout or self.spec.timeout or self._timeout)

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method.endswith("/list_changed"):
            self._lists.clear()
        self._notice(method, params)

    def lists(self, uri: object) -> bool:
        """Whether the server has listed this very resource."""
        return any(isinstance(each, Mapping) and each.get("uri") == uri for each in self._lists.get("resources", ()))

    def uris(self) -> Sequence[str]:
        """Of its resources, as it has last listed them."""
        listed = [each.get("uri") for each in self._lists.get("resources", ()) if isinstance(each, Mapping)]
        return [uri for uri in listed if isinstance(uri, str)]

    async def offers(self, listed: Listed) -> Sequence[Any]:
        """Its resources, templates or prompts, as it lists them. Raises RemoteError, ServerAway, TimeoutError."""
        main = self.keeper.main
        if main is None or CAPABILITIES[listed] not in main.server_capabilities:
            return ()
        if self._listed_by is not main:
            self._lists, self._listed_by = {}, main
        if listed not in self._lists:
            async with asyncio.timeout(self.spec.connect_timeout):
                self._lists[listed] = await list_all(main.request, listed)
        return self._lists[listed]
