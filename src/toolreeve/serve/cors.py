"""CORS for the configured origins. Preflights need no token.

Only configured origins get CORS headers. The request that follows a preflight is checked like any other.
"""

from starlette.types import Message, Scope, Send

_ALLOWED_HEADERS = (
    b"authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name"
)
_EXPOSED_HEADERS = b"mcp-session-id, www-authenticate"
_MAX_AGE = b"600"


def is_preflight(scope: Scope) -> bool:
    return scope["method"] == "OPTIONS" and any(
        name == b"access-control-request-method" for name, _ in scope["headers"]
    )


async def answer_preflight(origin: bytes, send: Send) -> None:
    headers = [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", _ALLOWED_HEADERS),
        (b"access-control-max-age", _MAX_AGE),
        (b"vary", b"origin"),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def with_cors_headers(origin: bytes, send: Send) -> Send:
    """Wraps `send` so that a page of this origin may read the response."""
    more = [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED_HEADERS),
        (b"vary", b"origin"),
    ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return send_with_headers
