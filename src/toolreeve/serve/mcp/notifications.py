"""Who must hear that something changed? Whoever listens, once per change however often it happens in a moment.

News only say that something is different now: a listener that is slow misses repetitions, never the fact.
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
"""Asked with the method, and the URI where one resource is meant."""
End = Callable[[], None]


def _do_nothing() -> None:
    """The end of the news changes nothing."""


class Notifications:
    """Must be made inside the loop in which it is listened to."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[object, tuple[Wants, Notify, End]] = {}
        self._changes: dict[tuple[str, str | None], None] = {}
        self._unwatch = registry.watch(lambda: self.publish(TOOLS))

    def listen(self, wants: Wants, notify: Notify, end: End = _do_nothing) -> Callable[[], None]:
        """Call `tell` with what `wants` wants to hear, and `end` when no more will come; what is returned ends it."""
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
        """A server elsewhere told us that something changed there."""
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
