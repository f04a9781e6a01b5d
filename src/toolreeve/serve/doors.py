"""All doors as one HTTP application: MCP, REST, A2A, console."""

import asyncio
import contextlib
import importlib.util
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from toolreeve.approval.channels.inbox import InboxChannel
from toolreeve.core.errors import ToolError
from toolreeve.record.webhooks import Webhook
from toolreeve.serve.access import AccessControl
from toolreeve.serve.api.catalogue import ENDPOINTS
from toolreeve.serve.api.events import serve_events
from toolreeve.serve.api.router import ApiRouter
from toolreeve.serve.api.running import RunningCalls
from toolreeve.serve.api.services import ApiServices, LocalSetup
from toolreeve.serve.app import MCP, WEBSOCKETS, Application
from toolreeve.serve.approval_page import ApprovalPage
from toolreeve.serve.console_files import ConsoleFiles
from toolreeve.serve.event_feed import EventFeed
from toolreeve.serve.limits import ServerLimits
from toolreeve.serve.login import Login
from toolreeve.serve.mcp.door import new_handlers
from toolreeve.serve.mcp.http import McpHttpDoor, ToolViews, new_session_seal
from toolreeve.serve.mcp.sdk_server import CREDENTIAL
from toolreeve.serve.oidc import START as OIDC_START
from toolreeve.serve.oidc import OidcLogin, OidcSettings
from toolreeve.serve.tokens import AccessScope, Credential
from toolreeve.serve.webhook_dispatcher import WebhookDispatcher
from toolreeve.serve.webhook_settings import store_webhooks

if TYPE_CHECKING:
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.serve.a2a.door import A2aDoor

TOKEN_CHECK_SECONDS = 1.0
A2A_MISSING = "A2A is off: it needs the extra 'a2a': pip install 'toolreeve[a2a]'"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def new_application(
    reeve: "Toolreeve",
    access: AccessControl,
    views: ToolViews,
    limits: ServerLimits,
    *,
    inbox: InboxChannel | None = None,
    oidc: OidcSettings | None = None,
    setup: LocalSetup | None = None,
    configured_webhooks: Sequence[Webhook] = (),
) -> AsyncIterator[Application]:
    """For a started runtime. `inbox` is its channel to the console."""
    handlers = new_handlers(reeve)
    mcp = McpHttpDoor(handlers, views, limits.sessions, seal=new_session_seal(reeve.configuration))
    feed = EventFeed(reeve.audit, reeve.bus, reeve.approvals)
    services = ApiServices(
        reeve=reeve,
        views=views,
        tokens=access.tokens,
        feed=feed,
        running=RunningCalls(reeve),
        results=reeve.internals.events.keep_results(),
        now=time.time,
        started=time.time(),
        inbox=inbox or InboxChannel(),
        setup=setup or LocalSetup(),
    )
    webhooks = WebhookDispatcher(reeve, reeve.internals.store.webhooks, draw=random.random)
    _watch(services, webhooks)
    access.tokens.changed.append(lambda: reeve.internals.calls.refuse(access.tokens.ended))
    stops = [handlers.close, feed.close]

    def stop() -> None:
        while stops:
            stops.pop()()

    await store_webhooks(reeve, configured_webhooks, now=services.now())
    async with AsyncExitStack() as stack:
        await services.refresh_tokens()
        a2a = _new_a2a_door(services, access)
        if a2a is not None:
            await stack.enter_async_context(a2a.open())
        await stack.enter_async_context(mcp.open())
        for work in (feed.run(), webhooks.run(), _follow_tokens(services)):
            stack.push_async_callback(_end, asyncio.create_task(work))
        stack.push_async_callback(services.running.close)
        routes = _routes(mcp, services)
        public = _public_routes(services, oidc)
        if a2a is not None:
            routes += a2a.routes()
            public = [*a2a.public_routes(), *public]
        stack.callback(stop)
        yield Application(access, routes, stop, public)


def has_a2a() -> bool:
    """Whether the extra `a2a` is installed. Imports nothing of it."""
    return all(importlib.util.find_spec(name) is not None for name in ("a2a", "sse_starlette"))


def _new_a2a_door(services: ApiServices, access: AccessControl) -> "A2aDoor | None":
    if not has_a2a():
        return None
    from toolreeve.serve.a2a.door import A2aDoor

    return A2aDoor(services.reeve, services.views, access, services.now)


def _routes(mcp: McpHttpDoor, services: ApiServices) -> list[BaseRoute]:
    async def metrics(request: Request) -> Response:
        credential: Credential = request.scope[CREDENTIAL]
        if services.tokens and AccessScope.METRICS not in credential.scopes:
            return PlainTextResponse("the scope metrics is missing: toolreeve tokens add NAME --scope metrics\n", 403)
        await services.count_waiting()
        return PlainTextResponse(services.reeve.metrics.render(), media_type=METRICS_TYPE)

    async def events(socket: WebSocket) -> None:
        await serve_events(socket, services)

    api = ApiRouter(ENDPOINTS, services)
    sockets = [WebSocketRoute(path, events) for path in WEBSOCKETS]
    return [
        Route(MCP, mcp),
        Route("/metrics", metrics),
        *sockets,
        api.alias("/streaming/sse", "/events"),
        *api.routes(),
    ]


def _watch(services: ApiServices, webhooks: WebhookDispatcher) -> None:
    """The metrics of the server itself, besides those of the runtime."""
    reeve = services.reeve
    waiting = services.waiting
    watch = reeve.metrics.watch
    watch("toolreeve_approvals_pending", "Questions that wait for a person.", lambda: waiting["approvals"])
    watch("toolreeve_webhook_deliveries_pending", "Deliveries that wait.", lambda: waiting["deliveries"])
    watch("toolreeve_webhook_dead_letters", "Deliveries that were given up.", lambda: waiting["dead"])
    watch("toolreeve_event_listeners", "Open event streams.", lambda: services.feed.listeners)
    watch("toolreeve_budget_spent_dollars", "Spent of the budget.", lambda: reeve.budget.spent if reeve.budget else 0)
    watch(
        "toolreeve_budget_limit_dollars", "The budget; 0 for none.", lambda: reeve.budget.limit if reeve.budget else 0
    )
    each = reeve.metrics.watch_each
    each("toolreeve_webhook_attempts_total", "Attempts to deliver.", "outcome", lambda: webhooks.outcomes)
    each("toolreeve_upstream_up", "1 for a connected MCP server.", "server", lambda: _upstreams(reeve))


def _upstreams(reeve: "Toolreeve") -> dict[str, float]:
    return {status.name: float(status.state == "up") for status in reeve.fleet.status()}


def _public_routes(services: ApiServices, oidc: OidcSettings | None) -> list[BaseRoute]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_: Request) -> Response:
        """Names parts only: it is answered without a token."""
        missing = await services.reeve.internals.unready()
        status = 503 if missing else 200
        return JSONResponse({"status": "unavailable" if missing else "ready", "missing": missing}, status)

    login = Login(services.reeve.internals.store.credentials, services.now, services.refresh_tokens)
    logins = [*login.routes(), *ApprovalPage(services.reeve.approvals).routes()]
    if oidc is not None:
        logins += OidcLogin(oidc, login, services.reeve.internals.http, services.now).routes()
    return [
        Route("/health", health),
        Route("/ready", ready),
        *logins,
        *ConsoleFiles(oidc_login=OIDC_START if oidc else "").routes(),
    ]


async def _follow_tokens(services: ApiServices) -> None:
    """Apply what `toolreeve tokens` adds and revokes while we run, and what expires."""
    accepted = services.tokens.valid_ids()
    while True:
        await asyncio.sleep(TOKEN_CHECK_SECONDS)
        with contextlib.suppress(ToolError):  # the store cannot be read just now
            await services.refresh_tokens()
        if (now := services.tokens.valid_ids()) != accepted:
            accepted = now
            for tell in services.reeve.internals.on_credentials:
                tell(accepted)


async def _end(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})
