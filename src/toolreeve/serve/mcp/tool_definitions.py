"""Tool definitions for `tools/list`: our own, or the upstream server's.

A server's claim that its tool is harmless is passed on only as far as our own assessment agrees.
"""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.tool import ToolSpec
from toolreeve.formats.result_schema import result_schema

CLOSED_WORLD = frozenset({"file", "system", "utility", "quality"})
"""Categories of built-in tools that touch only this machine."""


def describe(spec: ToolSpec, name: str) -> dict[str, Any]:
    """The definition of a tool under the name that the client uses."""
    if spec.declared is not None:
        return _declared(spec, name)
    described: dict[str, Any] = {
        "name": name,
        **({"title": spec.title} if spec.title else {}),
        "description": spec.description,
        "inputSchema": {"type": "object", "properties": {}} | dict(spec.input),
        "annotations": _judged(spec),
    }
    return described if spec.output is None else described | {"outputSchema": result_schema(spec.output)}


def _declared(spec: ToolSpec, name: str) -> dict[str, Any]:
    described = {**(spec.declared or {}), "name": name}
    claimed = described.get("annotations")
    if isinstance(claimed, Mapping):
        described["annotations"] = {**claimed, **_contradicted(claimed, _judged(spec))}
    return described


def _contradicted(claimed: Mapping[str, Any], judged: Mapping[str, bool]) -> dict[str, bool]:
    """Hints that claim less danger than our assessment. A missing hint already means the worst."""
    harmless = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False, "openWorldHint": False}
    return {
        hint: judged[hint]
        for hint, good in harmless.items()
        if hint in claimed and claimed[hint] == good and judged[hint] != good
    }


def _judged(spec: ToolSpec) -> dict[str, bool]:
    closed = spec.server is None and spec.category in CLOSED_WORLD
    return {
        "readOnlyHint": spec.read_only,
        "destructiveHint": not spec.read_only,
        "idempotentHint": spec.idempotent,
        "openWorldHint": not closed and not (spec.server is not None and spec.trusted),
    }
