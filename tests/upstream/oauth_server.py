"""An MCP server that requires a login, with its authorization server, on one origin or two."""

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.upstream.http_servers import GREETING


@dataclass
class OAuthServer:
    """What it was asked is remembered; what it says can be set. `authority` is where the login is, "" for here."""

    authority: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    expires_in: int | None = 3600
    refuses: bool = False
    renews: bool = True
    scope: str = "tools"
    registered: list[dict[str, Any]] = field(default_factory=list)
    authorized: list[dict[str, str]] = field(default_factory=list)
    exchanged: list[dict[str, str]] = field(default_factory=list)
    shown: list[str | None] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    valid: set[str] = field(default_factory=set)
    renewal: str = ""
    tools: list[dict[str, Any]] = field(default_factory=list)
    revoked: list[dict[str, str]] = field(default_factory=list)
    revokes: bool = True

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self.resource),
                Route("/.well-known/oauth-authorization-server", self.server),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
                Route("/revoke", self.revoke, methods=["POST"]),
                Route("/mcp", self.mcp, methods=["GET", "POST", "DELETE"]),
            ]
        )

    async def resource(self, request: Request) -> Response:
        origin = str(request.base_url).rstrip("/")
        return JSONResponse({"resource": f"{origin}/mcp", "authorization_servers": [self.authority or origin]})

    async def server(self, request: Request) -> Response:
        origin = str(request.base_url).rstrip("/")
        told = {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        return JSONResponse(told | self.metadata)

    async def register(self, request: Request) -> Response:
        asked = await request.json()
        self.registered.append(asked)
        return JSONResponse(asked | {"client_id": f"client-{len(self.registered)}"}, status_code=201)

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.authorized.append(asked)
        answer = {"state": asked["state"], "iss": str(request.base_url).rstrip("/")}
        if self.refuses:
            answer |= {"error": "access_denied", "error_description": "the person said no"}
        else:
            code = secrets.token_hex(8)
            self.codes[code] = asked
            answer["code"] = code
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode(answer)}", status_code=302)

    async def token(self, request: Request) -> Response:
        asked = {name: str(value) for name, value in (await request.form()).items()}
        self.exchanged.append(asked | {"authorization": request.headers.get("authorization", "")})
        if asked["grant_type"] == "refresh_token":
            good = self.renews and asked["refresh_token"] == self.renewal
        elif asked["grant_type"] == "client_credentials":
            good = True
        else:
            begun = self.codes.pop(asked["code"], {})
            digest = hashlib.sha256(asked["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            good = begun.get("code_challenge") == challenge and begun["redirect_uri"] == asked["redirect_uri"]
        return JSONResponse(self.grant()) if good else JSONResponse({"error": "invalid_grant"}, status_code=400)

    async def revoke(self, request: Request) -> Response:
        asked = {name: str(value) for name, value in (await request.form()).items()}
        self.revoked.append(asked | {"authorization": request.headers.get("authorization", "")})
        if not self.revokes:
            return JSONResponse({"error": "server_error"}, status_code=503)
        self.valid.discard(asked["token"])
        return Response(status_code=200)

    def grant(self) -> dict[str, Any]:
        token, self.renewal = f"secret-access-{secrets.token_hex(8)}", f"secret-refresh-{secrets.token_hex(8)}"
        self.valid.add(token)
        granted = {"access_token": token, "token_type": "Bearer", "refresh_token": self.renewal, "scope": self.scope}
        return granted if self.expires_in is None else granted | {"expires_in": self.expires_in}

    async def mcp(self, request: Request) -> Response:
        shown = request.headers.get("authorization")
        self.shown.append(shown)
        if shown is None or shown.removeprefix("Bearer ") not in self.valid:
            place = f"{request.base_url}.well-known/oauth-protected-resource/mcp"
            challenge = {"WWW-Authenticate": f'Bearer resource_metadata="{place}", scope="{self.scope}"'}
            return Response("log in first", status_code=401, headers=challenge)
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        if message["method"] == "server/discover":
            error = {"code": -32601, "message": "no such method"}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error}, status_code=404)
        if message["method"] == "tools/call":
            return self.tell(message, shown)
        found = GREETING if message["method"] == "initialize" else {"tools": self.listed()}
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": found})

    def listed(self) -> Any:
        """Its tools, with what lets one in wherever RENEWAL stands."""
        return json.loads(json.dumps(self.tools).replace("RENEWAL", self.renewal))

    def tell(self, message: dict[str, Any], shown: str) -> Response:
        """It tells whoever calls a tool what we were let in with: as its answer or error, and as progress before it."""
        params, secret = message["params"], {"seen": [shown, self.renewal]}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if params["name"] == "fail":
            answer["error"] = {"code": -7, "message": f"not with {shown}", "data": secret}
        else:
            answer["result"] = {"content": [{"type": "text", "text": shown}], "structuredContent": secret}
        token = params.get("_meta", {}).get("progressToken")
        progress = {"progressToken": token, "progress": 1, "message": f"with {shown} and {self.renewal}"}
        notice = {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
        events = "".join(f"data: {json.dumps(each)}\n\n" for each in (notice, answer))
        return Response(events, media_type="text/event-stream")


class Browser:
    """Follows the login links that it gets. `urls` are those links."""

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.pages: list[str] = []

    async def __call__(self, url: str) -> None:
        self.urls.append(url)
        async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as client:
            self.pages.append((await client.get(url)).text)
