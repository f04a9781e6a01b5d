"""HTTP headers: the caller's, except those that Toolreeve sets itself.

Headers that decide where a request goes or how it is framed are refused. Across origins only headers that say nothing
about the caller are kept: no credentials, keys or cookies.
"""

import re
from collections.abc import Iterable, Mapping

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.guard.network.body import ACCEPT_ENCODING

USER_AGENT = "Toolreeve"
MAX_HEADERS = 100
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")
_OURS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "proxy-authorization",
        "proxy-connection",
    }
)
_HARMLESS = frozenset({"accept", "accept-language", "accept-encoding", "user-agent", "range", "dnt"})
_DEFAULTS = {"accept": "*/*", "accept-encoding": ACCEPT_ENCODING, "user-agent": USER_AGENT}


def outgoing(given: Mapping[str, str]) -> dict[str, str]:
    """Lower-case names, defaults added. Raises ToolError(INVALID_PARAMS)."""
    if not given:
        return dict(_DEFAULTS)
    if len(given) > MAX_HEADERS:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/headers: more than {MAX_HEADERS} headers")
    headers = dict(_DEFAULTS)
    for name, value in given.items():
        lowered = name.lower()
        if lowered in _OURS:
            raise ToolError(ErrorCode.INVALID_PARAMS, f"/headers/{name}: is set by Toolreeve; leave it out")
        if not _NAME.fullmatch(name):
            raise ToolError(ErrorCode.INVALID_PARAMS, f"/headers: {name[:80]!r} is not a header name")
        stripped = value.strip(" \t")
        if not _VALUE.fullmatch(stripped):
            raise ToolError(
                ErrorCode.INVALID_PARAMS, f"/headers/{name}: contains characters that a header value cannot have"
            )
        headers[lowered] = stripped
    return headers


def for_another_origin(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in _HARMLESS}


def without_body(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if not name.startswith("content-")}


def incoming(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names; a repeated header is joined by commas, cookies by line breaks."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        if name in headers:
            separator = "\n" if name == "set-cookie" else ", "
            value = f"{headers[name]}{separator}{value}"
        headers[name] = value
    return headers
