"""Lists tools by server, each under its full `mcp__server__tool` name."""

from collections.abc import Iterator, Sequence
from typing import Any

from toolreeve.core.names import BUILTIN_SERVER
from toolreeve.core.tool import BoundTool, ToolSpec

DOCUMENTED = (
    "read_file",
    "write_file",
    "delete_file",
    "list_directory",
    "file_exists",
    "http_get",
    "http_post",
    "http_put",
    "http_delete",
    "bash_command",
    "fetch_url",
    "extract_links",
)
"""What the builtin server offers; `bash_command` is its name for `bash`."""
_CATEGORIES = {"filesystem": ("file",), "qa": ("quality",), "network": ("http", "web")}
"""Other documented names of categories."""
_BUILTIN_NAMES = {"bash_command": "bash"}


def discover(tools: Sequence[BoundTool], *, server: str | None, category: str | None) -> list[dict[str, Any]]:
    """Of one server, or of all; of one category, or of all. Raises ValueError for a category that no tool has."""
    found = [*_builtin(tools), *_upstream(tools)]
    if server is not None:
        found = [each for each in found if each["server"] == server]
    if category is not None:
        categories = _CATEGORIES.get(category, (category,))
        known = {bound.spec.category for bound in tools}
        if known.isdisjoint(categories):
            raise ValueError(f"no tool has the category {category!r}; there are {', '.join(sorted(known))}")
        found = [each for each in found if each["category"] in categories]
    return found


def _builtin(tools: Sequence[BoundTool]) -> Iterator[dict[str, Any]]:
    known = {bound.spec.name: bound.spec for bound in tools if bound.spec.server is None}
    for name in DOCUMENTED:
        spec = known.get(_BUILTIN_NAMES.get(name, name))
        if spec is not None:
            yield _describe(spec, BUILTIN_SERVER, f"{BUILTIN_SERVER}__{name}")


def _upstream(tools: Sequence[BoundTool]) -> Iterator[dict[str, Any]]:
    for bound in tools:
        if bound.spec.server is not None:
            yield _describe(bound.spec, bound.spec.server, bound.spec.name)


def _describe(spec: ToolSpec, server: str, name: str) -> dict[str, Any]:
    return {
        "name": f"mcp__{name}",
        "description": spec.description,
        "inputSchema": dict(spec.input),
        "parameters": dict(spec.input),
        "server": server,
        "category": spec.category,
        "danger_level": spec.danger.value,
    }
