"""Schema of a tool's structured result: its output, or an error.

Clients validate every result against the schema that the tool declared, failures included, and show their model nothing
of what does not match.
"""

from collections.abc import Mapping
from typing import Any

_PLAIN = frozenset({"type", "properties", "required", "title", "description"})
_ERROR = {"required": ["error"]}


def result_schema(output: Mapping[str, Any]) -> dict[str, Any]:
    if output.keys() <= _PLAIN and "error" not in output.get("properties", ()):
        if not output.get("required"):
            return dict(output)
        kept = {key: value for key, value in output.items() if key != "required"}
        return kept | {"anyOf": [{"required": list(output["required"])}, _ERROR]}
    shared = {key: output[key] for key in ("$schema", "$defs", "definitions") if key in output}
    return {"type": "object", "anyOf": [dict(output), _ERROR]} | shared
