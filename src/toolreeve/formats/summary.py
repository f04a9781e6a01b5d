"""One-line summary of a tool: name, parameters, first sentence of its description."""

from collections.abc import Mapping
from typing import Any

LONGEST_SUMMARY = 160


def summary_line(name: str, description: str, schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    parameters = [
        f"{key}{'' if key in required else '?'}: {_kind(each)}" for key, each in schema.get("properties", {}).items()
    ]
    summary = " ".join(description.split()).partition(". ")[0]
    return f"{name}({', '.join(parameters)}): {summary[:LONGEST_SUMMARY]}"


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if isinstance(schema.get("enum"), list):
        return "|".join(map(str, schema["enum"][:8]))
    kind = schema.get("type", "any")
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind)
