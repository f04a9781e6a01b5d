"""Era selection: the first served request decides the era of a connection.

In the legacy era one `initialize` identifies the client; in the modern era every request does.
"""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, cast

from toolreeve.core.call import Principal
from toolreeve.core.mcp import Era
from toolreeve.rpc.errors import INVALID_REQUEST, METHOD_NOT_FOUND
from toolreeve.serve.mcp.protocol import Params, WireError, is_modern, read_envelope, unsupported
from toolreeve.serve.mcp.request_context import Asker, ClientInfo

if TYPE_CHECKING:
    from toolreeve.serve.mcp.tool_view import ToolView

MAX_ECHOED = 1024


class EraSelector:
    """`era` is None until it is decided. `legacy_client` is the client of the legacy era. `asker` gives the peer that
    is asked for approvals instead of the client."""

    def __init__(
        self, session: str, principal: Principal, view: "ToolView | None", *, asker: Asker | None = None
    ) -> None:
        self._asker = asker
        self._session = session
        self._principal = principal
        self._view = view
        self.era: Era | None = None
        self.legacy_client = self._client(Era.LEGACY, log_level="debug")

    def set_view(self, view: "ToolView") -> None:
        self._view = self.legacy_client.view = view

    def client_for(self, method: str, params: Params, known: Callable[[Era], Collection[str]]) -> ClientInfo:
        """The client of a request that may be served now; `known` gives the methods of an era. Raises WireError."""
        modern = method != "initialize" and is_modern(params)
        if self.era is Era.MODERN and method == "initialize":
            raise unsupported(str(params.get("protocolVersion", ""))[:MAX_ECHOED])
        if self.era is Era.MODERN or (self.era is None and modern):
            return self._by_envelope(params)
        if modern:
            raise WireError(
                INVALID_REQUEST, "this connection began with `initialize`; it takes no requests of 2026-07-28"
            )
        if self.era is None and method not in ("initialize", "ping"):
            if method not in known(Era.LEGACY):
                raise WireError(METHOD_NOT_FOUND, "Method not found", method[:MAX_ECHOED])
            raise WireError(INVALID_REQUEST, "Invalid Request: send `initialize` first")
        return self.legacy_client

    def _by_envelope(self, params: Params) -> ClientInfo:
        envelope = read_envelope(params)
        self.era = Era.MODERN
        return self._client(
            Era.MODERN,
            version=envelope.version,
            capabilities=envelope.capabilities,
            info=envelope.info,
            log_level=envelope.log_level,
        )

    def _client(self, era: Era, **details: Any) -> ClientInfo:
        view = cast("ToolView", self._view)  # unused until the runtime is up
        return ClientInfo(
            view=view, era=era, session=self._session, principal=self._principal, asker=self._asker, **details
        )
