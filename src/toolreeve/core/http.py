"""The HTTP capability of a tool, and the danger of methods.

The capability is implemented by `guard/network/client.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolreeve.core.charset import decode_text
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError

METHOD_DANGERS: Mapping[str, DangerLevel] = {
    "GET": DangerLevel.SAFE,
    "HEAD": DangerLevel.SAFE,
    "OPTIONS": DangerLevel.SAFE,
    "POST": DangerLevel.MEDIUM,
    "PUT": DangerLevel.MEDIUM,
    "PATCH": DangerLevel.MEDIUM,
    "DELETE": DangerLevel.HIGH,
}
"""The methods that tools send, and what they may do."""
READING_METHODS = frozenset(name for name, danger in METHOD_DANGERS.items() if danger is DangerLevel.SAFE)


def request_method(args: Mapping[str, Any]) -> str:
    """The method that a call names, GET if it names none."""
    return str(args.get("method") or "GET").strip().upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """`timeout` is for the whole exchange, redirects and body included, `max_body` cuts the response after so many
    bytes; None means the configured ones."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float | None = None
    max_body: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpReply:
    """`url` is the final one after redirects. A body cut at the size limit is `truncated`."""

    status: int
    headers: Mapping[str, str]
    body: bytes | bytearray
    url: str
    truncated: bool = False

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "")

    def text(self) -> str:
        return decode_text(self.body, self.content_type, cut=self.truncated)


class Http(Protocol):
    def screen(self, url: str, method: str) -> None:
        """Raises ToolError(URL_FORBIDDEN) for a URL that is refused whatever its name resolves to."""
        ...

    async def send(self, request: HttpRequest) -> HttpReply:
        """Raises ToolError: URL_FORBIDDEN, HTTP_TIMEOUT, HTTP_ERROR. A status of 400 or more is still a reply."""
        ...


class _NoHttp:
    def screen(self, url: str, method: str) -> None:  # noqa: ARG002
        raise ToolError(ErrorCode.URL_FORBIDDEN, f"{url!r} cannot be reached: this runtime has no network guard")

    async def send(self, request: HttpRequest) -> HttpReply:
        self.screen(request.url, request.method)
        raise AssertionError("without a guard every URL is refused")


NO_HTTP: Http = _NoHttp()
