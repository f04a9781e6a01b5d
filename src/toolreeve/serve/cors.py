"""What must a browser be told before it lets a web page speak with us? That we know the page, and it may read answers.

Only pages that are configured are told so. A browser asks first, without a token: it is told what may be sent, and the
request itself is judged like any other.
"""

from starlette.types import Message, Scope, Send

_ALLOWED_HEADERS = (
    b"authorization, content-type, accept, last-event-id, mcp-session-id, mcp-protocol-version, mcp-method, mcp-name"
)
_EXPOSED_HEADERS = b"mcp-session-id, www-authenticate"
_MAX_AGE = b"600"


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks on behalf of a page what the page may send."""
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
    """The same way back, on which the page may read what is answered."""
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
