"""JSON Schema of a server entry, for editors and for checking."""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.danger import DangerLevel


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


def _texts(description: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "string"}, "description": description}


def _named_texts(description: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": {"type": "string"}, "description": description}


def _switch(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


def _seconds(description: str) -> dict[str, Any]:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400, "description": description}


_LEVEL = {"enum": [level.value for level in DangerLevel]}

SERVER: Mapping[str, Any] = {
    "type": "object",
    "description": "One MCP server. ${NAME}, ${NAME:-default}, ${env:NAME}, ${secret:NAME}, ${workspaceFolder} and "
    "${userHome} are expanded in command, args, env, cwd, url, headers and oauth.",
    "additionalProperties": False,
    "properties": {
        "type": {
            "enum": ["stdio", "http", "sse", "a2a"],
            "description": "Transport; by default stdio with a command, http with a url. a2a: an agent, not a server.",
        },
        "command": _text("The program that runs the server."),
        "args": _texts("Its arguments."),
        "env": _named_texts("Its environment variables. Of your own environment it gets only PATH, HOME and the like."),
        "env_pass": _texts("Variables of your environment that are passed on, where they are set."),
        "env_file": _text("A file of NAME=value lines with more variables."),
        "cwd": _text("Working directory; by default your home, for a project's own server the workspace."),
        "url": _text("URL of the server."),
        "headers": _named_texts("HTTP headers of every request to it."),
        "timeout": _seconds("Timeout of a call, in seconds."),
        "connect_timeout": _seconds("Timeout for starting it, the handshake and listing its tools, in seconds."),
        "allow": _texts("Offer only these of its tools; names or patterns."),
        "deny": _texts("Do not offer these of its tools; names or patterns."),
        "danger": {
            "description": "Danger of its tools: one level, or a level by name or pattern.",
            "anyOf": [_LEVEL, {"type": "object", "additionalProperties": _LEVEL}],
        },
        "trusted": _switch("Believe its own hints about the danger of its tools."),
        "prefix": {"type": "string", "description": "Prefix of the names of its tools; by default its own name."},
        "sandbox": {"type": "object", "description": "Run it inside the sandbox, with these limits."},
        "oauth": {"type": "object", "description": "How to log in, if it requires OAuth."},
        "enabled": _switch("Use it."),
    },
}
