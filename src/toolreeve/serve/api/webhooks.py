"""Endpoints of webhooks: add, list, remove, their dead letters and their replay."""

import re
import secrets
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.record.webhooks import HIGHEST, DeliveryStatistics, RetryConfig, Webhook, zone_of
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints, Query
from toolreeve.serve.api.problems import Problem, not_found
from toolreeve.serve.tokens import AccessScope

webhooks = Endpoints("webhooks")
CONFIGURED = "config-"
"""Begins the id of a webhook of the configuration."""
_TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
_RESERVED = frozenset({"connection", "content-length", "content-type", "host", "transfer-encoding"})
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")


class RetryBody(Body):
    max_attempts: Annotated[int, Field(ge=1, le=20)] = 5
    initial_delay: Annotated[float, Field(gt=0, le=3600, strict=False)] = 1.0
    max_delay: Annotated[float, Field(gt=0, le=86_400, strict=False)] = 300.0
    multiplier: Annotated[float, Field(ge=1, le=10, strict=False)] = 2.0
    jitter: bool = True


class WebhookBody(Body):
    """Without `secret`, one is made and returned. `headers` are sent with every delivery. Events about a call have its
    danger as their priority, from 0 (safe) to 4 (critical); others have 2."""

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    secret: Annotated[str | None, Field(min_length=16, max_length=200)] = None
    events: list[Annotated[str, Field(max_length=100)]] = Field(default_factory=list, max_length=50)
    without: list[Annotated[str, Field(max_length=100)]] = Field(default_factory=list, max_length=50)
    quiet_start: Annotated[str | None, Field(pattern=_TIME)] = None
    quiet_end: Annotated[str | None, Field(pattern=_TIME)] = None
    timezone: Annotated[str, Field(max_length=60)] = "UTC"
    task: Annotated[str, Field(max_length=100)] = ""
    min_priority: Annotated[int, Field(ge=0, le=HIGHEST)] = 0
    max_priority: Annotated[int, Field(ge=0, le=HIGHEST)] = HIGHEST
    headers: dict[str, str] = Field(default_factory=dict, max_length=20)
    retry: RetryBody = RetryBody()


class WebhookRow(TypedDict):
    """The secret and the headers are not shown."""

    id: str
    url: str
    events: list[str]
    without: list[str]
    quiet_start: str
    quiet_end: str
    timezone: str
    task: str
    min_priority: int
    max_priority: int
    enabled: bool
    delivered: int
    failed: int
    pending: int
    dead: int
    last_status: int | None
    last_at: float | None


class WebhookList(TypedDict):
    webhooks: list[WebhookRow]


class NewWebhook(TypedDict):
    id: str
    secret: str


class DeliveryQuery(Query):
    state: Literal["pending", "dead"] = "dead"
    limit: Annotated[int, Field(ge=1, le=500)] = 100


class DeliveryList(TypedDict):
    deliveries: list[dict[str, Any]]


class ReplayBody(Body):
    delivery: Annotated[int | None, Field(ge=1, le=2**62, description="Only this one; all dead ones if not set.")] = (
        None
    )


class Replayed(TypedDict):
    replayed: int


@webhooks.get("/webhooks", AccessScope.MANAGE)
async def list_webhooks(request: ApiRequest) -> WebhookList:
    """List the webhooks with their delivery statistics."""
    table = request.services.reeve.internals.store.webhooks
    statistics = await table.statistics()
    return {"webhooks": [_row(each, statistics.get(each.id)) for each in await table.list()]}


@webhooks.post("/webhooks", AccessScope.MANAGE)
async def add_webhook(request: ApiRequest, body: WebhookBody) -> NewWebhook:
    """Send events to a URL from now on, signed. A URL that the network guard refuses is refused here."""
    reeve = request.services.reeve
    reeve.internals.http.screen(body.url, "POST")
    hook = new_webhook(body, secret=body.secret or secrets.token_urlsafe(32))
    host = urlsplit(hook.url).hostname  # the rest may be a secret, and those who approve read the record
    await reeve.internals.store.webhooks.put(hook, now=request.services.now())
    await reeve.internals.journal.note(
        "webhook", {"added": hook.id, "host": host, "user": request.credential.principal.user}
    )
    return {"id": hook.id, "secret": hook.secret}


@webhooks.delete("/webhooks/{number}", AccessScope.MANAGE)
async def delete_webhook(request: ApiRequest, number: str) -> None:
    """Remove a webhook and its deliveries."""
    if number.startswith(CONFIGURED):
        raise Problem(409, f"{number!r:.100} is configured: remove it from serve.webhooks")
    if not await request.services.reeve.internals.store.webhooks.delete(number):
        raise not_found(f"no webhook {number!r:.100}")
    await request.services.reeve.internals.journal.note(
        "webhook", {"removed": number, "user": request.credential.principal.user}
    )


@webhooks.get("/webhooks/{number}/deliveries", AccessScope.MANAGE)
async def list_deliveries(request: ApiRequest, number: str, query: DeliveryQuery) -> DeliveryList:
    """List the deliveries that wait, or the dead letters."""
    found = await request.services.reeve.internals.store.webhooks.deliveries(
        number, state=query.state, limit=query.limit
    )
    return {"deliveries": [each.to_dict() for each in found]}


@webhooks.post("/webhooks/{number}/replay", AccessScope.MANAGE)
async def replay_deliveries(request: ApiRequest, number: str, body: ReplayBody) -> Replayed:
    """Send dead letters again."""
    table = request.services.reeve.internals.store.webhooks
    count = await table.replay(number, number=body.delivery, now=request.services.now())
    return {"replayed": count}


def new_webhook(body: WebhookBody, *, secret: str) -> Webhook:
    """Raises Problem."""
    bad = [name for name, value in body.headers.items() if not _HEADER.fullmatch(name) or not value.isprintable()]
    if bad or not all(value.isascii() for value in body.headers.values()):
        raise Problem(422, "headers: names are tokens, values are visible ASCII characters")
    if taken := sorted(_RESERVED & {name.lower() for name in body.headers}):
        raise Problem(422, f"headers: {taken[0]} is set by the delivery itself")
    try:
        zone_of(body.timezone)
    except ValueError as problem:
        raise Problem(422, f"timezone: {problem}") from None
    if (body.quiet_start is None) != (body.quiet_end is None):
        raise Problem(422, "quiet hours need both quiet_start and quiet_end")
    return Webhook(
        id=secrets.token_hex(6),
        url=body.url,
        secret=secret,
        events=tuple(body.events),
        without=tuple(body.without),
        quiet_start=body.quiet_start or "",
        quiet_end=body.quiet_end or "",
        timezone=body.timezone,
        task=body.task,
        min_priority=body.min_priority,
        max_priority=body.max_priority,
        headers=body.headers,
        retry=RetryConfig(**body.retry.model_dump()),
    )


def _row(hook: Webhook, statistics: DeliveryStatistics | None) -> WebhookRow:
    counted = statistics or DeliveryStatistics()
    return {
        "id": hook.id,
        "url": hook.url,
        "events": list(hook.events),
        "without": list(hook.without),
        "quiet_start": hook.quiet_start,
        "quiet_end": hook.quiet_end,
        "timezone": hook.timezone,
        "task": hook.task,
        "min_priority": hook.min_priority,
        "max_priority": hook.max_priority,
        "enabled": hook.enabled,
        "delivered": counted.delivered,
        "failed": counted.failed,
        "pending": counted.pending,
        "dead": counted.dead,
        "last_status": counted.last_status,
        "last_at": counted.last_at,
    }
