"""The console's files, and the security headers of every page.

They hold no data and need no credential. Only names that exist in the directory at start are served: no path of a
request is ever resolved. Any other page is the console's own route, and is answered with its first page.
"""

import mimetypes
import secrets
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

import toolreeve

DIRECTORY = Path(toolreeve.__file__).parent / "console"
INDEX = "index.html"
NONCE = "__CSP_NONCE__"
"""In `index.html`, replaced with the nonce of the response: styles that the console adds carry it."""
OIDC_LOGIN = "__OIDC_LOGIN__"
"""In `index.html`, replaced with where a login with the OpenID provider begins; empty without one."""
_YEAR = "public, max-age=31536000, immutable"
_OWN = ("/api", "/mcp", "/metrics", "/health", "/ready", "/login", "/approve", "/a2a", "/streaming", "/.well-known")
_NO_BUILD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Toolreeve</title></head><body>
<h1>Toolreeve is running</h1>
<p>This installation has no web console. Build it with <code>make web</code>, or install a released wheel.</p>
<ul>
<li>REST at <code>/api/v1</code>, described by <a href="/api/v1/openapi.json">its OpenAPI document</a></li>
<li>MCP at <code>/mcp</code></li>
<li>Metrics at <code>/metrics</code></li>
<li>Approvals: <code>toolreeve approvals</code></li>
</ul>
</body></html>
"""


def security_headers(nonce: str = "") -> dict[str, str]:
    styles = f"'self' 'nonce-{nonce}'" if nonce else "'self'"
    policy = (
        f"default-src 'none'; script-src 'self'; style-src {styles}; font-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }


class ConsoleFiles:
    def __init__(self, directory: Path = DIRECTORY, *, oidc_login: str = "") -> None:
        self._files = {
            f"/{path.relative_to(directory).as_posix()}": path
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        }
        index = self._files.pop(f"/{INDEX}", None)
        self._index = (_NO_BUILD if index is None else index.read_text()).replace(OIDC_LOGIN, oidc_login)

    def routes(self) -> list[BaseRoute]:
        """The last routes: they answer every path that is not another's."""
        return [Route("/{path:path}", self.answer, methods=["GET"])]

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        if (file := self._files.get(path)) is not None:
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            headers = {**security_headers(), "cache-control": _YEAR if path.startswith("/assets/") else "no-cache"}
            return Response(file.read_bytes(), headers=headers, media_type=kind)
        if not is_page(path) or "." in path.rpartition("/")[2]:
            return PlainTextResponse("Not Found", 404, security_headers())
        nonce = secrets.token_urlsafe(16)
        headers = {**security_headers(nonce), "cache-control": "no-store"}
        return HTMLResponse(self._index.replace(NONCE, nonce), headers=headers)


def is_page(path: str) -> bool:
    """Whether a path may be one of the console's own, rather than one of a door's."""
    return not any(path == own or path.startswith(f"{own}/") for own in _OWN)
