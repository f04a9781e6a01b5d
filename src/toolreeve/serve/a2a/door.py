"""A2A door: agent card, JSON-RPC and REST, protocols 1.0 and 0.3.

Media type, size and version are checked here, before the SDK reads the request.
"""

import asyncio
import hashlib
import importlib.util
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from email.utils import formatdate
from typing import TYPE_CHECKING, Any

from a2a.auth.user import UnauthenticatedUser
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.response_helpers import agent_card_to_dict, build_error_response
from a2a.server.routes import create_rest_routes
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.utils.error_handlers import build_rest_error_payload
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    VersionNotSupportedError,
)
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import toolreeve
from toolreeve.core import json
from toolreeve.core.errors import ConfigError, ToolError
from toolreeve.serve.a2a.board import TaskBoard
from toolreeve.serve.a2a.card import REST, RPC, VERSION
from toolreeve.serve.a2a.card_signature import JWKS, MAX_CARDS, CardSigner
from toolreeve.serve.a2a.handler import TaskHandler
from toolreeve.serve.a2a.methods import OwnMethods
from toolreeve.serve.a2a.push import PushConfigs
from toolreeve.serve.a2a.push_settings import refuse_ignored_keys
from toolreeve.serve.a2a.rate import RequestRates
from toolreeve.serve.a2a.turns import Turns
from toolreeve.serve.access import AccessControl, AccessRefused
from toolreeve.serve.api.endpoint import MAX_BODY_BYTES, read_bounded
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.tokens import Credential

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.mcp.http import ToolViews

WELL_KNOWN = "/.well-known/agent-card.json"
MEDIA_TYPES = ("application/json", "application/a2a+json")
VERSIONS = ("", "0.3", "1.0")
SWEEP_SECONDS = 30.0
GRPC_MISSING = "pip install 'toolreeve[a2a,grpc]'"
UNSUPPORTED_MEDIA_TYPE = 415
"""What the specification wants where the SDK has 400."""
_logger = logging.getLogger(__name__)
logging.getLogger("a2a.server.routes.jsonrpc_dispatcher").setLevel(logging.ERROR)  # callers are told their own mistakes

Answer = Callable[[Request], Awaitable[Response]]
Refuse = Callable[[A2AError], Response]


class A2aDoor:
    def __init__(self, reeve: "Toolreeve", views: "ToolViews", access: AccessControl, now: Callable[[], float]) -> None:
        self._reeve = reeve
        self._access = access
        own = reeve.configuration.settings.a2a
        self._rates = RequestRates(own.requests_per_minute, own.requests_per_hour, now)
        self._board = TaskBoard(reeve.internals.store.tasks, now)
        self._push = PushConfigs(reeve, self._board)
        self._board.published = self._push.deliver
        self._turns = Turns(reeve, self._board, self._is_valid)
        self._signer = CardSigner(own.card_key) if own.card_key else None
        self._handler = TaskHandler(
            reeve, views, self._board, self._turns, self._push, toolreeve.__version__, self._signer
        )
        self._methods = OwnMethods(self._handler)
        self._contexts = _Contexts(access)
        self._cards: dict[str, str] = {}  # when a card with this ETag was first seen
        self._rpc = JsonRpcDispatcher(self._handler, self._contexts, enable_v0_3_compat=True)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Follows answers and sends notifications meanwhile."""
        await self._push.load()
        since = await self._turns.recover()
        works = [asyncio.create_task(work) for work in (self._turns.follow_answers(since), self._maintain())]
        try:
            async with self._grpc():
                yield
        finally:
            for work in works:
                work.cancel()
            await asyncio.wait(works)
            await self._turns.close()

    def _grpc(self) -> AbstractAsyncContextManager[None]:
        """Raises ConfigError if it is wanted and cannot be."""
        settings = self._reeve.configuration.settings
        if not settings.a2a.grpc_port:
            return nullcontext()
        if importlib.util.find_spec("grpc") is None:
            raise ConfigError("the extra 'grpc' is missing", source="a2a.grpc_port", fix=GRPC_MISSING)
        from toolreeve.serve.a2a.grpc_server import serve_grpc

        return serve_grpc(self._handler, self._access, self._rates, settings.a2a, host=settings.serve.host)

    def routes(self) -> list[BaseRoute]:
        rest = create_rest_routes(self._handler, self._contexts, enable_v0_3_compat=True, path_prefix=REST)
        rpc = [Route(path, self._answer, methods=["POST"]) for path in (RPC, f"{RPC}/")]
        return [self._limited(route) for route in (*rpc, *(_guarded(each) for each in rest if isinstance(each, Route)))]

    def _limited(self, route: Route) -> Route:
        async def answer(request: Request) -> Response:
            credential: Credential = request.scope[CREDENTIAL]
            headers, refusal = self._rates.take(credential.principal.user)
            if refusal:
                return JSONResponse({"error": {"code": 429, "message": refusal}}, 429, headers)
            response: Response = await route.endpoint(request)
            response.headers.update(headers)
            return response

        return Route(route.path, answer, methods=sorted(route.methods or ()))

    def public_routes(self) -> list[BaseRoute]:
        keys = [] if self._signer is None else [Route(JWKS, self._keys)]
        return [Route(WELL_KNOWN, self._card), *keys]

    async def _keys(self, _: Request) -> Response:
        return JSONResponse(None if self._signer is None else self._signer.keys())

    async def _card(self, request: Request) -> Response:
        try:
            credential = self._access.admit(request.headers.raw)
        except AccessRefused:
            credential = None
        locked = bool(self._access.tokens)
        card = self._handler.card(_base(request), credential, requires_token=locked)
        asked = request.headers.get("a2a-version", "").strip()
        return self._cached(request, json.dumps(MessageToDict(card) if asked == VERSION else agent_card_to_dict(card)))

    def _cached(self, request: Request, body: bytes) -> Response:
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if tag not in self._cards:
            if len(self._cards) >= MAX_CARDS:
                self._cards.pop(next(iter(self._cards)))
            self._cards[tag] = formatdate(usegmt=True)
        headers = {
            "etag": tag,
            "last-modified": self._cards[tag],
            "cache-control": "private, max-age=60",
            "vary": "authorization, a2a-version",
        }
        known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
        if tag in known or "*" in known:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="application/json")

    async def _answer(self, request: Request) -> Response:
        try:
            body = await _read(request)
            value = json.loads(body) if body else None
        except A2AError as problem:
            return JSONResponse(build_error_response(None, problem))
        except ValueError:
            value = None  # the SDK answers it
        if isinstance(value, dict) and value.get("jsonrpc") == "2.0" and value.get("method") in self._methods.by_name:
            return await self._own(request, value)
        if isinstance(value, dict):
            try:
                refuse_ignored_keys(value.get("params"))
            except A2AError as problem:
                return JSONResponse(build_error_response(value.get("id"), problem))
        return await self._rpc.handle_requests(request)

    async def _own(self, request: Request, value: dict[str, Any]) -> Response:
        number = value.get("id")
        params = value.get("params", {})
        try:
            if not isinstance(params, dict):
                raise InvalidParamsError(message="params must be an object")
            result = await self._methods.by_name[value["method"]](params, self._contexts.build(request))
        except A2AError as problem:
            return JSONResponse(build_error_response(number, problem))
        except ToolError as problem:
            return JSONResponse(build_error_response(number, InternalError(message=problem.message)))
        return JSONResponse({"jsonrpc": "2.0", "id": number, "result": result})

    def _is_valid(self, credential: str) -> bool:
        return credential in self._access.tokens.valid_ids()

    async def _maintain(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            try:
                await self._push.sweep()
            except ToolError as problem:
                _logger.warning("push configurations cannot be swept just now: %s", problem.message)


class _Contexts(ServerCallContextBuilder):
    def __init__(self, access: AccessControl) -> None:
        self._access = access

    def build(self, request: Request) -> ServerCallContext:
        state = {
            "headers": dict(request.headers),
            "credential": request.scope[CREDENTIAL],
            "base": _base(request),
            "locked": bool(self._access.tokens),
        }
        return ServerCallContext(user=UnauthenticatedUser(), state=state)


def _base(request: Request) -> str:
    """Our own address, as the request names it: access control has checked its Host."""
    return str(request.base_url).rstrip("/")


async def _read(request: Request) -> bytes:
    """The body, which the request keeps for the SDK. Raises A2AError."""
    if (asked := request.headers.get("a2a-version", "").strip()) not in VERSIONS:
        raise VersionNotSupportedError(message=f"A2A version {asked!r:.40} is not supported; supported: 0.3, 1.0")
    if request.method == "POST":
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in MEDIA_TYPES:
            raise ContentTypeNotSupportedError(message=f"the content type must be application/json, not {kind!r:.80}")
        try:
            request._body = await read_bounded(request, MAX_BODY_BYTES)
        except Problem as problem:
            raise InvalidRequestError(message=problem.detail) from None
        return request._body
    return b""


def _guarded(route: Route) -> Route:
    async def answer(request: Request) -> Response:
        try:
            if request.headers.get("content-length", "0") != "0" or request.url.path.endswith((":send", ":stream")):
                await _read(request)
        except A2AError as problem:
            payload = build_rest_error_payload(problem)
            if isinstance(problem, ContentTypeNotSupportedError):
                payload["error"]["code"] = UNSUPPORTED_MEDIA_TYPE
            return JSONResponse(payload, payload["error"]["code"])
        response: Response = await route.endpoint(request)
        return response

    return Route(route.path, answer, methods=sorted(route.methods or ()))
