"""JSON Schemas of the settings that are made of tables."""

from collections.abc import Mapping
from typing import Any

from toolreeve.config.mcp_servers.schema import SERVER
from toolreeve.core.call import Role

REFERENCE = r"^\$\{secret:[A-Za-z_][A-Za-z0-9_]*\}$"
"""A settings file never holds a credential, only a reference to it."""

SERVERS: Mapping[str, Any] = {"type": "object", "additionalProperties": SERVER}


def _paths(description: str) -> Mapping[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


ACP_AGENTS: Mapping[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-z][a-z0-9_-]{0,39}$"},
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "required": ["command"],
        "properties": {
            "command": {"type": "string", "minLength": 1, "description": "The program."},
            "args": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Its arguments; the profile's if not set.",
            },
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Its environment; values may refer to ${secret:NAME}.",
            },
            "profile": {
                "enum": [
                    "goose",
                    "fast-agent",
                    "gemini",
                    "qwen",
                    "claude",
                    "codex",
                    "opencode",
                    "vibe",
                    "hermes",
                    "generic",
                ],
                "description": "Which agent it is; by default the one of this name, else generic.",
            },
            "mode": {
                "type": "string",
                "description": "The mode in which it asks for everything; the profile's if not set.",
            },
            "hosts": _paths("The hosts of its model; it reaches no others, and without any it has no network."),
            "home": {"type": "string", "description": "Its home directory; one of its own if not set."},
            "writable": _paths("Further paths that it may change."),
            "readable": _paths("Further paths that it may read."),
            "description": {"type": "string", "description": "What it is good at, for those who choose it."},
            "start_timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds for its handshake; 60."},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "description": "Seconds for one turn; 1800."},
            "tools": {"type": "boolean", "description": "Offer our tools to it as an MCP server; true."},
            "sandbox": {"type": "object", "description": "Limits of its sandbox, such as max_memory_mb."},
        },
    },
}

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
                "description": "A reference to the token: ${secret:NAME}.",
            },
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The token's SHA-256, in hex."},
            "user": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The user it authenticates."},
            "role": {"enum": [role.value for role in Role], "description": "The user's role; viewer if not set."},
            "tools": {"type": "array", "items": {"type": "string"}, "description": "Visible tools, as in mcp.tools."},
            "scopes": {
                "type": "array",
                "minItems": 1,
                "items": {"enum": ["read", "call", "approve", "manage", "metrics"]},
                "description": "What it may do; if not set, viewer: read; operator: read, call; admin: all.",
            },
        },
    },
}

_WORDS = {"type": "array", "items": {"type": "string"}}
_PRIORITY = {"type": "integer", "minimum": 0, "maximum": 4}
WEBHOOKS: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "url", "secret"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z][a-z0-9_-]{0,39}$", "description": "Its name in lists."},
            "url": {"type": "string", "pattern": "^https?://", "description": "Where events are sent, by POST."},
            "secret": {"type": "string", "pattern": REFERENCE, "description": "Signs deliveries: ${secret:NAME}."},
            "events": {**_WORDS, "description": "Only these kinds of events; all if not set."},
            "without": {**_WORDS, "description": "Kinds of events that are left out."},
            "quiet_start": {"type": "string", "description": "From when deliveries wait, HH:MM."},
            "quiet_end": {"type": "string", "description": "Until when deliveries wait, HH:MM."},
            "timezone": {"type": "string", "description": "Of the quiet hours, such as Europe/Berlin; UTC."},
            "min_priority": {**_PRIORITY, "description": "Of the danger of the call: 0 safe to 4 critical; others 2."},
            "max_priority": {**_PRIORITY, "description": "As min_priority."},
        },
    },
}

OIDC: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["issuer", "client_id", "client_secret", "roles"],
    "properties": {
        "issuer": {"type": "string", "pattern": "^https?://", "description": "The provider's URL."},
        "client_id": {"type": "string", "minLength": 1, "description": "The id of this client at the provider."},
        "client_secret": {"type": "string", "pattern": REFERENCE, "description": "A reference: ${secret:NAME}."},
        "roles": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"enum": [role.value for role in Role]},
            "description": "The role of each group; the highest one counts, and without any there is no login.",
        },
        "user_claim": {"type": "string", "description": "The claim that names the user; email if not set."},
        "groups_claim": {"type": "string", "description": "The claim that lists the groups; groups if not set."},
        "scope": {"type": "string", "description": "The scopes to ask for; openid email profile groups if not set."},
    },
}

POOLS: Mapping[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": "^[a-z][a-z0-9_-]{0,39}$"},
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "required": ["key"],
        "properties": {
            "tools": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string"},
                "description": "Tools that run here: categories, servers, names and globs, as in mcp.tools.",
            },
            "tags": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string"},
                "description": "Tools with one of these tags run here as well.",
            },
            "key": {
                "type": "string",
                "pattern": REFERENCE,
                "description": "A reference to the key that signs its calls, ${secret:NAME}; on a worker with ed25519 "
                "the public key. `toolreeve workers key` makes one.",
            },
            "old_keys": {
                "type": "array",
                "items": {"type": "string", "pattern": REFERENCE},
                "description": "Keys that a worker accepts as well, while keys are replaced.",
            },
        },
    },
}
