"""The context of one MCP request: its client, the way back.

A client is asked only for what it declared, notified only of what it requested, and sent nothing more about a request
that is answered.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from toolreeve.core.call import LOCAL, Principal
from toolreeve.core.mcp import Era, PeerError
from toolreeve.core.peer import DEFERRED, Deferred, Peer, PeerUnavailable, PriorAnswer, PriorApproval
from toolreeve.rpc.errors import METHOD_NOT_FOUND
from toolreeve.serve.mcp.protocol import LOG_LEVELS

if TYPE_CHECKING:
    from toolreeve.approval.request import Answer, Request
    from toolreeve.serve.mcp.tool_view import ToolView

Asker = Callable[[], Peer | None]
MAX_CLIENT_NAME = 200
_NEEDS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class Outbound(Protocol):
    """Sends requests and notifications to the client of a request."""

    async def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Raises PeerError for an error response, and if the client cannot be asked."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...


@dataclass(slots=True, kw_only=True)
class ClientInfo:
    """A connection of the legacy era; in the modern era, the client of one request.

    `credential` is the id of its token. `log_level` is the least severe level that it wants; None for no log lines.
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
    asked: bool = True
    """Whether the client itself is asked for approvals."""
    inbox: str | None = None
    """The console's page of questions, for a client that opens links and shows no forms."""
    asker: Asker | None = None
    """Gives the peer that is asked instead of the client, which then answers for nobody."""


class RequestContext:
    """One request: the `Peer` of its call. `fragments` says that the transport can send pre-encoded JSON."""

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
        self.client = client
        self._outbound = outbound
        self._token = progress_token
        self.request_id = request_id
        self.fragments = fragments
        self._last: float | None = None
        self.closed = False
        self.call_id: str | None = None
        self.question: Request | None = None
        self.responses: Mapping[str, Any] | None = None
        self.state: str | None = None
        self.decision: PriorApproval | PriorAnswer | None = None

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
    def client_name(self) -> str:
        """The name and version that the client gives itself, for the record."""
        info = self.client.info
        words = (info.get("name"), info.get("version"))
        return " ".join(word for word in words if isinstance(word, str) and word)[:MAX_CLIENT_NAME]

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
            raise PeerError(METHOD_NOT_FOUND, "the request is already answered")
        need = _NEEDS.get(method)
        if need is not None and (self.capabilities.get(need) is None or self.client.asker is not None):
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

    @property
    def can_ask(self) -> bool:
        """Whether the client is to be asked, and can be: by a form, or by a link to the console."""
        if self.client.asker is not None:
            peer = self.client.asker()
            return peer is not None and peer.can_ask
        if self.opens_links:
            return self.client.asked and self.client.inbox is not None
        return self.client.asked and isinstance(self.client.capabilities.get("elicitation"), Mapping)

    @property
    def opens_links(self) -> bool:
        """Whether the client declares links and no forms; elicitation declared without a mode means forms."""
        declared = self.client.capabilities.get("elicitation")
        return isinstance(declared, Mapping) and "url" in declared and "form" not in declared

    @property
    def defers(self) -> bool:
        return self.client.era is Era.MODERN and self.client.asker is None

    async def ask(self, request: "Request") -> "Answer | Deferred":
        from toolreeve.serve.mcp.elicitation import METHOD, elicitation, read_answer

        if self.client.asker is not None:
            if (peer := self.client.asker()) is None:
                raise PeerUnavailable
            answer: Answer | Deferred = await peer.ask(request)
            return answer
        if self.defers:
            self.question = request
            return DEFERRED
        began = time.monotonic()
        try:
            lists = self.client.version >= str(Era.LEGACY)
            result = await self.request(METHOD, elicitation(request, self.client.inbox, lists=lists))
        except PeerError as problem:
            raise PeerUnavailable(problem.message) from None
        if self.client.inbox is not None and result.get("action") == "accept":
            await self._until_answered(request)
        return read_answer(request, result, seconds=time.monotonic() - began)

    async def _until_answered(self, request: "Request") -> None:
        """The person opens the page, and answers there: whoever waits for the answer cancels this."""
        try:
            await asyncio.Event().wait()
        finally:
            await self.notify("notifications/elicitation/complete", {"elicitationId": request.id})

    async def progress(self, text: str) -> None:
        await self.notify("notifications/progress", {"message": text})

    def _numbered(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Progress must increase; a report without a number, or with a smaller one, is counted up."""
        given = params.get("progress")
        grows = isinstance(given, int | float) and (self._last is None or given > self._last)
        self._last = given if grows else (self._last or 0) + 1
        return {**params, "progressToken": self._token, "progress": self._last}

    def _wants(self, level: Any) -> bool:
        least = self.log_level
        return least is not None and level in LOG_LEVELS and LOG_LEVELS.index(level) >= LOG_LEVELS.index(least)
