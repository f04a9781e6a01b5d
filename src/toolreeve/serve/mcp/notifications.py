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

Tell = Callable[[str, Mapping[str, Any]], None]
Wants = Callable[[str, str | None], bool]
"""Asked with the method, and the URI where one resource is meant."""
End = Callable[[], None]


def _unmoved() -> None:
    """The end of the news changes nothing."""


class Notifications:
    """Must be made inside the loop in which it is listened to."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[object, tuple[Wants, Tell, End]] = {}
        self._fresh: dict[tuple[str, str | None], None] = {}
        self._unwatch = registry.watch(lambda: self.report(TOOLS))

    def listen(self, wants: Wants, tell: Tell, end: End = _unmoved) -> Callable[[], None]:
        """Call `tell` with what `wants` wants to hear, and `end` when no more will come; what is returned ends it."""
        token = object()
        self._listeners[token] = (wants, tell, end)
        return lambda: self._listeners.pop(token, None) and None

    def report(self, method: str, uri: str | None = None) -> None:
        if not self._listeners:
            return
        if not self._fresh:
            self._loop.call_soon_threadsafe(self._deliver)
        self._fresh[method, uri] = None

    def hear(self, _: str, method: str, params: Mapping[str, Any]) -> None:
        """A server elsewhere told us that something changed there."""
        if method in (TOOLS, PROMPTS, RESOURCES):
            self.report(method)
        elif method == UPDATED and isinstance(uri := params.get("uri"), str):
            self.report(method, uri)

    def close(self) -> None:
        self._unwatch()
        listeners, self._listeners = self._listeners, {}
        for _, _, end in listeners.values():
            end()

    def _deliver(self) -> None:
        fresh, self._fresh = self._fresh, {}
        for method, uri in fresh:
            for wants, tell, _ in list(self._listeners.values()):
                if wants(method, uri):
                    tell(method, {} if uri is None else {"uri": uri})
