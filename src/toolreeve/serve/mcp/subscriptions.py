"""`subscriptions/listen` of the modern era: only the requested notifications.

The first notification acknowledges the honoured subscriptions. The request is answered when the subscription ends.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.rpc.errors import INVALID_PARAMS, INVALID_REQUEST
from toolreeve.serve.mcp.gateway import Gateway
from toolreeve.serve.mcp.notifications import PROMPTS, RESOURCES, TOOLS, UPDATED, Notifications
from toolreeve.serve.mcp.protocol import SUBSCRIPTION_KEY, Params, WireError
from toolreeve.serve.mcp.request_context import RequestContext

MAX_RESOURCES = 1000
UNSUBSCRIBE_TIMEOUT = 5.0
"""Seconds for unsubscribing at the upstream servers."""
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_KINDS = {"toolsListChanged": TOOLS, "promptsListChanged": PROMPTS, "resourcesListChanged": RESOURCES}


class _Inbox:
    """Undelivered notifications, each once: bounded by the number of subscriptions."""

    def __init__(self, kinds: Sequence[str], uris: Sequence[str]) -> None:
        self._methods = {_KINDS[kind] for kind in kinds}
        self._uris = frozenset(uris)
        self._waiting: dict[tuple[str, str | None], None] = {}
        self._woken = asyncio.Event()
        self._ended = False

    def wants(self, method: str, uri: str | None) -> bool:
        return uri in self._uris if method == UPDATED else method in self._methods

    def put(self, method: str, params: Mapping[str, Any]) -> None:
        self._waiting[method, params.get("uri")] = None
        self._woken.set()

    def end(self) -> None:
        self._ended = True
        self._woken.set()

    async def next(self) -> tuple[str, str | None] | None:
        while not self._waiting:
            if self._ended:
                return None
            self._woken.clear()
            await self._woken.wait()
        first = next(iter(self._waiting))
        del self._waiting[first]
        return first


async def listen(
    params: Params, context: RequestContext, notifications: Notifications, gateway: Gateway | None
) -> dict[str, Any]:
    """Runs until it is cancelled or the notifications are closed."""
    if context.request_id is None:
        raise WireError(INVALID_REQUEST, "subscriptions/listen needs an id")
    kinds, uris = _read_wanted(params)
    meta = {SUBSCRIPTION_KEY: context.request_id}
    honored = [uri for uri in uris if gateway is not None and await _subscribed(gateway, uri, context)]
    inbox = _Inbox(kinds, honored)
    unlisten = notifications.listen(inbox.wants, inbox.put, inbox.end)
    try:
        honors = dict.fromkeys(kinds, True) | ({"resourceSubscriptions": honored} if honored else {})
        await context.notify(ACKNOWLEDGED, {"notifications": honors, "_meta": meta})
        while (heard := await inbox.next()) is not None:
            method, uri = heard
            await context.notify(method, {"_meta": meta} if uri is None else {"uri": uri, "_meta": meta})
    finally:
        unlisten()
        if gateway is not None and honored:
            await _unsubscribe(gateway, honored, context)
    return {"_meta": meta}


def _read_wanted(params: Params) -> tuple[list[str], list[str]]:
    asked = params.get("notifications")
    if not isinstance(asked, Mapping):
        raise WireError(INVALID_PARAMS, "params.notifications must be an object")
    uris = asked.get("resourceSubscriptions") or []
    if not isinstance(uris, list) or len(uris) > MAX_RESOURCES or not all(isinstance(uri, str) for uri in uris):
        raise WireError(INVALID_PARAMS, f"resourceSubscriptions must be a list of at most {MAX_RESOURCES} URIs")
    return [kind for kind in _KINDS if asked.get(kind) is True], list(dict.fromkeys(uris))


async def _subscribed(gateway: Gateway, uri: str, context: RequestContext) -> bool:
    try:
        await gateway.subscribe(uri, context)
    except WireError:
        return False  # left out of the acknowledgement
    return True


async def _unsubscribe(gateway: Gateway, uris: Sequence[str], context: RequestContext) -> None:
    try:
        async with asyncio.timeout(UNSUBSCRIBE_TIMEOUT):
            for uri in uris:
                await gateway.unsubscribe(uri, context)
    except (TimeoutError, WireError):
        return  # the server is down, and the subscription with it
