"""Change notifications: published to listeners, coalesced per turn of the event loop.

A notification says only that something changed: a slow listener misses repetitions, never the fact.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.registry import ToolRegistry

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"

Notify = Callable[[str, Mapping[str, Any]], None]
Wants = Callable[[str, str | None], bool]
"""Filters by method, and by URI if the notification is about one resource."""
End = Callable[[], None]


def _do_nothing() -> None:
    """The default `end`."""


class Notifications:
    """Must be created in the event loop of its listeners."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[object, tuple[Wants, Notify, End]] = {}
        self._changes: dict[tuple[str, str | None], None] = {}
        self._unwatch = registry.watch(lambda: self.publish(TOOLS))

    def listen(self, wants: Wants, notify: Notify, end: End = _do_nothing) -> Callable[[], None]:
        """Call `notify` for what `wants` accepts, and `end` on close; returns a function that unsubscribes."""
        token = object()
        self._listeners[token] = (wants, notify, end)
        return lambda: self._listeners.pop(token, None) and None

    def publish(self, method: str, uri: str | None = None) -> None:
        if not self._listeners:
            return
        if not self._changes:
            self._loop.call_soon_threadsafe(self._deliver)
        self._changes[method, uri] = None

    def on_upstream_notification(self, _: str, method: str, params: Mapping[str, Any]) -> None:
        """An upstream server has sent a notification."""
        if method in (TOOLS, PROMPTS, RESOURCES):
            self.publish(method)
        elif method == UPDATED and isinstance(uri := params.get("uri"), str):
            self.publish(method, uri)

    def close(self) -> None:
        self._unwatch()
        listeners, self._listeners = self._listeners, {}
        for _, _, end in listeners.values():
            end()

    def _deliver(self) -> None:
        changes, self._changes = self._changes, {}
        for method, uri in changes:
            for wants, notify, _ in list(self._listeners.values()):
                if wants(method, uri):
                    notify(method, {} if uri is None else {"uri": uri})
