"""Lists what a server offers, over all pages.

The bounds are beyond what any honest server lists.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from toolreeve.upstream.transports.transport import ServerUnavailable

MAX_ITEMS = 10_000
MAX_PAGES = 1_000

Listed = Literal["tools", "resources", "resourceTemplates", "prompts"]
METHODS: Mapping[Listed, str] = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}
CAPABILITIES: Mapping[Listed, str] = {
    "tools": "tools",
    "resources": "resources",
    "resourceTemplates": "resources",
    "prompts": "prompts",
}
Request = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]


async def list_all(request: Request, listed: Listed) -> list[Any]:
    """Every item, as it came. Raises ServerUnavailable for a list that is malformed or does not end."""
    items: list[Any] = []
    cursors: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(MAX_PAGES):
        page = await request(METHODS[listed], params)
        found = page.get(listed)
        if not isinstance(found, list):
            raise ServerUnavailable(f"the server's {METHODS[listed]} result has no list of {listed}")
        items += found
        if len(items) > MAX_ITEMS:
            raise ServerUnavailable(f"the server lists more than {MAX_ITEMS} {listed}")
        cursor = page.get("nextCursor")
        if cursor is None:
            return items
        if not isinstance(cursor, str) or cursor in cursors:
            raise ServerUnavailable(f"the server's list of {listed} repeats a cursor")
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise ServerUnavailable(f"the server's list of {listed} has more than {MAX_PAGES} pages")
