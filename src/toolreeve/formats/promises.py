"""What may a tool's structured answer be? What it promises, or why it failed.

Clients hold every answer against the schema that the tool declared, failures included, and show their model nothing of
what does not fit.
"""

from collections.abc import Mapping
from typing import Any

_PLAIN = frozenset({"type", "properties", "required", "title", "description"})
_FAILED = {"required": ["error"]}


def answer_schema(promised: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of both."""
    if promised.keys() <= _PLAIN and "error" not in promised.get("properties", ()):
        if not promised.get("required"):
            return dict(promised)
        kept = {key: value for key, value in promised.items() if key != "required"}
        return kept | {"anyOf": [{"required": list(promised["required"])}, _FAILED]}
    shared = {key: promised[key] for key in ("$schema", "$defs", "definitions") if key in promised}
    return {"type": "object", "anyOf": [dict(promised), _FAILED]} | shared
