"""Who sent this request, and how do we talk back to them while it runs?

A client may be asked only for what it declared, told only what it wanted to hear, and nothing more once its request is
answered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from toolreeve.core.call import LOCAL, Principal
from toolreeve.core.peer import Decided, Era, PeerError
from toolreeve.serve.mcp.protocol import LOG_LEVELS, METHOD_NOT_FOUND

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

_NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class Outbound(Protocol):
    """How a door sends things to the client that a request came from."""

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PeerError for an error answer, and where nothing can be asked."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...


@dataclass(slots=True, kw_only=True)
class ClientInfo:
    """One connection of the legacy era; in the modern era, the sender of one request.

    `credential` names what it showed to be let in. `log_level` is the least severe line it wants; None for none.
    """

    view: "ToolView"
    era: Era
    session: str
    version: str = str(Era.LEGACY)
    principal: Principal = LOCAL
    credential: str = ""
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    log_level: str | None = None
    subscribed: set[str] = field(default_factory=set)


class RequestContext:
    """One request of a client: the `Peer` of the call that it makes. `fragments` says that the door can send JSON that
    is encoded already."""

    __slots__ = (
        "_last",
        "_outbound",
        "_token",
        "call_id",
        "client",
        "closed",
        "decision",
        "fragments",
        "question",
        "request_id",
        "responses",
        "state",
    )

    def __init__(
        self,
        client: ClientInfo,
        outbound: Outbound,
        *,
        request_id: str | int | None = None,
        progress_token: str | int | None = None,
        fragments: bool = False,
    ) -> None:
        self.client, self._outbound, self._token = client, outbound, progress_token
        self.request_id, self.fragments = request_id, fragments
        self._last: float | None = None
        self.closed = False
        self.call_id: str | None = None
        self.question: Any = None
        self.responses: Mapping[str, Any] | None = None
        self.state: str | None = None
        self.decision: Decided | None = None

    @property
    def view(self) -> "ToolView":
        return self.client.view

    @property
    def principal(self) -> Principal:
        return self.client.principal

    @property
    def era(self) -> Era:
        return self.client.era

    @property
    def session(self) -> str:
        return self.client.session

    @property
    def credential(self) -> str:
        return self.client.credential

    @property
    def capabilities(self) -> Mapping[str, Any]:
        return self.client.capabilities

    @property
    def log_level(self) -> str | None:
        return self.client.log_level

    @property
    def wants_progress(self) -> bool:
        return self._token is not None

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if self.era is Era.MODERN:
            raise PeerError(METHOD_NOT_FOUND, "a client of this protocol version cannot be asked during a call")
        if self.closed:
            raise PeerError(METHOD_NOT_FOUND, "the request is answered already")
        if (need := _NEEDS.get(method)) is not None and self.capabilities.get(need) is None:
            raise PeerError(METHOD_NOT_FOUND, f"the client does not support {need}")
        return await self._outbound.request(method, params)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self.closed:
            return
        if method == "notifications/progress":
            if self._token is None:
                return
            params = self._numbered(params)
        elif method == "notifications/message" and not self._wants(params.get("level")):
            return
        await self._outbound.notify(method, params)

    def defer(self, question: Any) -> None:
        self.question = question

    def _numbered(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Progress must grow, whoever reports it; what has no number of its own is counted."""
        given = params.get("progress")
        grows = isinstance(given, int | float) and (self._last is None or given > self._last)
        self._last = number = given if grows else (self._last or 0) + 1
        return {**params, "progressToken": self._token, "progress": number}

    def _wants(self, level: Any) -> bool:
        least = self.log_level
        return least is not None and level in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)
