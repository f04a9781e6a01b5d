"""What does a server offer? All pages of a list, up to bounds that no honest server meets."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from toolreeve.upstream.transports.transport import ServerUnavailable

MOST_ITEMS = 10_000
MOST_PAGES = 1_000

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
    """Every item, as it came. Raises ServerAway for a list without an end or of another shape."""
    items: list[Any] = []
    cursors: set[str] = set()
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = await request(METHODS[listed], params)
        items += _items(page, listed)
        if len(items) > MOST_ITEMS:
            raise ServerUnavailable(f"the server lists more than {MOST_ITEMS} {listed}")
        cursor = page.get("nextCursor")
        if cursor is None:
            return items
        if not isinstance(cursor, str) or cursor in cursors:
            raise ServerUnavailable(f"the server's list of {listed} goes round in circles")
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise ServerUnavailable(f"the server's list of {listed} has more than {MOST_PAGES} pages")


def _items(page: Mapping[str, Any], listed: Listed) -> list[Any]:
    found = page.get(listed)
    if not isinstance(found, list):
        raise ServerUnavailable(f"the server's list of {listed} holds no list")
    return found
