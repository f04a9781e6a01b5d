"""What may stand in the settings that are made of tables? Their JSON Schemas."""

from collections.abc import Mapping
from typing import Any

from toolreeve.config.mcp_servers.schema import SERVER
from toolreeve.core.call import Role

REFERENCE = r"^\$\{secret:[A-Za-z_][A-Za-z0-9_]*\}$"
"""A credential is never written into a file of settings, only where it is kept."""

SERVERS: Mapping[str, Any] = {"type": "object", "additionalProperties": SERVER}

TOKENS: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["user"],
        "oneOf": [{"required": ["token"]}, {"required": ["sha256"]}],
        "properties": {
            "token": {
                "type": "string",
                "pattern": REFERENCE,
                "description": "Where the token is kept: ${secret:NAME}.",
            },
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The token's SHA-256, in hex."},
            "user": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Whom it stands for."},
            "role": {"enum": [role.value for role in Role], "description": "What they may do; viewer if not said."},
            "tools": {"type": "array", "items": {"type": "string"}, "description": "What they see, as for mcp.tools."},
        },
    },
}
