"""The HTTP tools: five requests over `Context.http`. Every response is untrusted.

A status of 400 or more is a result, not a failure: `success` in the data says which it was.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core import json
from toolreeve.core.charset import decode_text, is_text
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.http import METHOD_DANGERS, READING_METHODS, HttpReply, HttpRequest, request_method
from toolreeve.core.labels import UNTRUSTED
from toolreeve.core.result import Output
from toolreeve.core.tool import Arguments, Screen, ToolDecorator, tool
from toolreeve.core.urls import encode_form, parse_url

SHOWN_BY_REQUEST = 10 * 1024
MAX_TIMEOUT = 300
_MARGIN = 5  # seconds that the runtime waits beyond the request's own timeout
_URL = {"type": "string", "description": "An http:// or https:// URL."}
_HEADERS = {
    "type": ["object", "null"],
    "additionalProperties": {"type": "string"},
    "default": None,
    "description": "Request headers.",
}
_DATA = {
    "type": ["object", "array", "string", "null"],
    "default": None,
    "description": "The body: an object is sent as JSON (or as a form, if Content-Type says so), a string unchanged.",
}
TIMEOUT = {
    "type": ["number", "null"],
    "minimum": 1,
    "maximum": MAX_TIMEOUT,
    "default": None,
    "description": "Seconds for the whole exchange, redirects and body included; 30 unless configured otherwise.",
}
_METHOD = {"type": "string", "default": "GET", "description": f"One of {', '.join(METHOD_DANGERS)}."}


def object_schema(required: Sequence[str], **properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def host_of(url: Any) -> str:
    """The host for effect rules, or the text itself if it is not a URL."""
    try:
        return parse_url(str(url)).host
    except ToolError:
        return str(url)[:200]


def network_effects(args: Mapping[str, Any], _: Files) -> Sequence[Effect]:
    return (Effect(EffectKind.NET, host_of(args.get("url"))),)


def send_effects(args: Mapping[str, Any], _: Files) -> Sequence[Effect]:
    host = host_of(args.get("url"))
    return Effect(EffectKind.NET, host), Effect(EffectKind.SEND, host)


def _request_effects(args: Mapping[str, Any], files: Files) -> Sequence[Effect]:
    return network_effects(args, files) if request_method(args) in READING_METHODS else send_effects(args, files)


def _request_danger(args: Mapping[str, Any]) -> DangerLevel:
    """An unsupported method is refused before anything is sent, so it needs no approval."""
    return METHOD_DANGERS.get(request_method(args), DangerLevel.SAFE)


def network_screen(method: str | None = None) -> Screen:
    """Refuses, before anyone is asked for approval, a request that the network guard would refuse anyway."""

    def screen(args: Arguments, ctx: Context) -> None:
        ctx.http.screen(args["url"], method or request_method(args))

    return screen


def _sends(method: str, **more: Any) -> ToolDecorator:
    """The tool that sends this method, with a body."""
    return tool(
        danger=METHOD_DANGERS[method],
        category="http",
        effects=send_effects,
        screen=network_screen(method),
        inline=True,
        timeout=MAX_TIMEOUT + _MARGIN,
        source="toolreeve",
        input_schema=object_schema(["url"], url=_URL, data=_DATA, headers=_HEADERS, timeout=TIMEOUT),
        **more,
    )


@tool(
    danger=DangerLevel.SAFE,
    category="http",
    effects=network_effects,
    inline=True,
    timeout=MAX_TIMEOUT + _MARGIN,
    source="toolreeve",
    input_schema=object_schema(["url"], url=_URL, headers=_HEADERS, timeout=TIMEOUT),
)
async def http_get(
    ctx: Context, url: str, headers: dict[str, str] | None = None, timeout: float | None = None
) -> Output:
    """Send an HTTP GET request and return status, headers and body."""
    return await _send(ctx, "GET", url, headers, None, timeout)


@_sends("POST")
async def http_post(
    ctx: Context, url: str, data: Any = None, headers: dict[str, str] | None = None, timeout: float | None = None
) -> Output:
    """Send an HTTP POST request with a JSON or text body."""
    return await _send(ctx, "POST", url, headers, data, timeout)


@_sends("PUT", idempotent=True)
async def http_put(
    ctx: Context, url: str, data: Any = None, headers: dict[str, str] | None = None, timeout: float | None = None
) -> Output:
    """Send an HTTP PUT request with a JSON or text body."""
    return await _send(ctx, "PUT", url, headers, data, timeout)


@_sends("DELETE", idempotent=True)
async def http_delete(
    ctx: Context, url: str, data: Any = None, headers: dict[str, str] | None = None, timeout: float | None = None
) -> Output:
    """Send an HTTP DELETE request."""
    return await _send(ctx, "DELETE", url, headers, data, timeout)


@tool(
    danger=_request_danger,
    category="http",
    effects=_request_effects,
    screen=network_screen(),
    inline=True,
    timeout=MAX_TIMEOUT + _MARGIN,
    source="toolreeve",
    input_schema=object_schema(["url"], url=_URL, method=_METHOD, data=_DATA, headers=_HEADERS, timeout=TIMEOUT),
)
async def http_request(
    ctx: Context,
    url: str,
    method: str = "GET",
    data: Any = None,
    headers: dict[str, str] | None = None,
    timeout: float | None = None,
) -> Output:
    """Send an HTTP request with any common method. Returns the first 10 KB of the body; `http_get` returns more."""
    verb = method.strip().upper()
    if verb not in METHOD_DANGERS:
        raise ToolError(
            ErrorCode.HTTP_METHOD,
            f"the method {method[:40]!r} is not supported; use one of {', '.join(METHOD_DANGERS)}",
        )
    return await _send(ctx, verb, url, headers, data, timeout, shown=SHOWN_BY_REQUEST)


async def _send(
    ctx: Context,
    method: str,
    url: str,
    headers: Mapping[str, str] | None,
    data: Any,
    timeout: float | None,
    *,
    shown: int | None = None,
) -> Output:
    given = dict(headers or {})
    body = _encode(method, data, given)
    reply = await ctx.http.send(HttpRequest(method=method, url=url, headers=given, body=body, timeout=timeout))
    return _output(reply, method, shown)


def _encode(method: str, data: Any, headers: dict[str, str]) -> bytes | None:
    """The body's bytes; sets their type in the headers unless the caller did."""
    if data is None:
        return None
    if method in ("GET", "HEAD"):
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/data: {method} has no body; put the data into the URL's query")
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if isinstance(data, str):
        if not kind:
            headers["content-type"] = "application/json" if _is_json(data) else "text/plain; charset=utf-8"
        return data.encode()
    if isinstance(data, Mapping) and kind.startswith("application/x-www-form-urlencoded"):
        return encode_form(data)
    if not kind:
        headers["content-type"] = "application/json"
    return json.dumps(data)


def _is_json(text: str) -> bool:
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _output(reply: HttpReply, method: str, shown: int | None) -> Output:
    body = reply.body if shown is None else reply.body[:shown]
    truncated = reply.truncated or len(body) < len(reply.body)
    text, encoding = readable(body, reply.content_type, cut=truncated)
    data: dict[str, Any] = {
        "status_code": reply.status,
        "headers": reply.headers,
        "body": text,
        "success": reply.status < 400,
        "url": reply.url,
        "encoding": encoding,
    }
    if truncated and method == "GET":
        data["next"] = _continue(reply, len(body), whole=shown is None)
    return Output(data=data, main=text, truncated=truncated, labels=UNTRUSTED)


def readable(body: bytes | bytearray, content_type: str, *, cut: bool) -> tuple[str, str]:
    """The body as text, or as base64 if it is not text, and which of the two."""
    if is_text(body, content_type):
        return decode_text(body, content_type, cut=cut), "text"
    return b64encode(body).decode(), "base64"


def _continue(reply: HttpReply, size: int, *, whole: bool) -> str:
    if not whole:
        return f"http_get(url={reply.url!r})"
    return f"http_get(url={reply.url!r}, headers={{'Range': 'bytes={size}-', 'Accept-Encoding': 'identity'}})"


HTTP_TOOLS = (http_get, http_post, http_put, http_delete, http_request)
