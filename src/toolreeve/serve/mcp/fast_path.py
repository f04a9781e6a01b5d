"""Fast path for plain tool calls; the SDK answers the rest.

Plain means: the modern era, headers that agree with the body, a tool that the client sees, nothing that needs a stream.
In doubt a request is not plain. The SDK then gets it byte for byte.
"""

import re
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

import orjson
from mcp.shared.inbound import x_mcp_header_map

from toolreeve.serve.access import Header
from toolreeve.serve.exchange import FastHandler, HttpExchange
from toolreeve.serve.mcp.client_session import find_session
from toolreeve.serve.mcp.handlers import Handlers
from toolreeve.serve.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    VERSION_KEY,
    Envelope,
)
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.serve.mcp.responses import Reply
from toolreeve.serve.mcp.sdk_server import NO_CLIENT, ViewOf, new_modern_client
from toolreeve.serve.mcp.tool_view import ToolView
from toolreeve.serve.tokens import Credential

_VERSION = MODERN_VERSIONS[-1]
_REQUEST = {"jsonrpc", "id", "method", "params"}
_PARAMS = {"name", "arguments", "_meta"}
_NO_CLIENT_INFO = {"name": "", "version": ""}
_UNUSUAL = {"progressToken", LOG_LEVEL_KEY}
_ROUNDED = re.compile(rb"\d{19}")
"""Numbers that orjson might round, and the SDK's parser does not."""

Headers = Mapping[bytes, bytes]


class FastPath:
    def __init__(self, handlers: Handlers, view_of: ViewOf, keepalive: float) -> None:
        self._handlers = handlers
        self._view_of = view_of
        self._keepalive = keepalive
        self._mirrors_headers: dict[str, bool] = {}
        self._version = -1

    def find_fast_handler(self, headers: Sequence[Header], credential: Credential) -> FastHandler | None:
        """The handler for the body of a POST with these headers; None if it is not a plain call."""
        name = _plain_name(headers)
        return None if name is None else partial(self._take, name, credential, self._view_of(credential))

    def _take(
        self, name: str, credential: Credential, view: ToolView, body: bytes, exchange: HttpExchange
    ) -> Coroutine[Any, Any, None] | None:
        request = _plain_request(body, name) if self._knows(name, view) else None
        if request is None:
            return None
        session = find_session(exchange.headers, exchange.connection, credential)
        exchange.extra_headers = session.headers
        exchange.connection.serving = credential.id
        client = new_modern_client(credential, view, _envelope(request["params"]["_meta"]), session.id)
        context = RequestContext(client, NO_CLIENT, request_id=request["id"])
        return Reply(self._handlers, context, exchange, keepalive=self._keepalive).send(request["params"])

    def _knows(self, name: str, view: ToolView) -> bool:
        """Whether the client sees the tool, and none of its arguments must be repeated in headers."""
        found = view.find(name)
        if found is None:
            return False
        if self._version != view.registry.version:
            self._version = view.registry.version
            self._mirrors_headers = {}
        if (mirrors := self._mirrors_headers.get(name)) is None:
            mirrors = self._mirrors_headers[name] = bool(x_mcp_header_map(found.spec.input))
        return not mirrors


def _plain_name(shown: Sequence[Header]) -> str | None:
    """The tool named by the headers, if they are those of a plain call."""
    headers: Headers = dict(shown)
    if len(headers) != len(shown) or b"content-encoding" in headers:
        return None
    if headers.get(b"mcp-protocol-version") != _VERSION.encode() or headers.get(b"mcp-method") != b"tools/call":
        return None
    tool = headers.get(b"mcp-name", b"")
    if not tool.isascii() or tool.startswith(b"=?") or not _accepts(headers):
        return None
    return tool.decode()


def _accepts(headers: Headers) -> bool:
    accepted = headers.get(b"accept", b"")
    both = b"application/json" in accepted and b"text/event-stream" in accepted
    return both and headers.get(b"content-type", b"").partition(b";")[0].strip() == b"application/json"


def _plain_request(body: bytes, name: str) -> dict[str, Any] | None:
    if _ROUNDED.search(body):
        return None
    try:
        request = orjson.loads(body)
    except ValueError:
        return None
    return request if _is_plain(request, name) else None


def _is_plain(request: Any, name: str) -> bool:
    if type(request) is not dict or request.keys() != _REQUEST or type(request["id"]) not in (int, str):
        return False
    if request["jsonrpc"] != "2.0" or request["method"] != "tools/call":
        return False
    params = request["params"]
    return type(params) is dict and params.keys() <= _PARAMS and _has_plain_params(params, name)


def _has_plain_params(params: dict[str, Any], name: str) -> bool:
    meta = params.get("_meta")
    if type(meta) is not dict or params.get("name") != name or type(params.get("arguments", {})) is not dict:
        return False
    return meta.get(VERSION_KEY) == _VERSION and type(meta.get(CAPABILITIES_KEY)) is dict and _has_plain_meta(meta)


def _has_plain_meta(meta: Mapping[str, Any]) -> bool:
    """No notifications are requested, and the client info is valid or absent."""
    if not _UNUSUAL.isdisjoint(meta):
        return False
    info = meta.get(CLIENT_KEY, _NO_CLIENT_INFO)
    return type(info) is dict and type(info.get("name")) is str and type(info.get("version")) is str


def _envelope(meta: Mapping[str, Any]) -> Envelope:
    return Envelope(version=_VERSION, info=meta.get(CLIENT_KEY, {}), capabilities=meta[CAPABILITIES_KEY])
