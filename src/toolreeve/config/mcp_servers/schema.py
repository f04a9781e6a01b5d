"""How is a server written down in `toolreeve.toml`? One JSON Schema, for editors and for checking entries alike."""

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
    "${userHome} stand for values in command, args, env, cwd, url, headers and oauth.",
    "additionalProperties": False,
    "properties": {
        "type": {
            "enum": ["stdio", "http", "sse"],
            "description": "How it is spoken to; told by command and url if not said.",
        },
        "command": _text("The program that is the server."),
        "args": _texts("Its arguments."),
        "env": _named_texts("Variables it is given. Nothing else of your environment but the plain base reaches it."),
        "env_pass": _texts("Names of variables that it is given as they are, where they are set."),
        "env_file": _text("A file of NAME=value lines that it is given as well."),
        "cwd": _text("Where it is started; if not said, in your home, a project's own server in the workspace."),
        "url": _text("Where the server is."),
        "headers": _named_texts("Headers of every request to it."),
        "timeout": _seconds("Seconds that a call may take."),
        "connect_timeout": _seconds("Seconds that starting, greeting and listing its tools may take."),
        "allow": _texts("The only tools of it that are offered; patterns are fine."),
        "deny": _texts("Tools of it that are not offered."),
        "danger": {
            "description": "How dangerous its tools are: one level, or a level by name or pattern.",
            "anyOf": [_LEVEL, {"type": "object", "additionalProperties": _LEVEL}],
        },
        "trusted": _switch("Whether what it says about the danger of its tools is believed."),
        "prefix": {"type": "string", "description": "What stands before the names of its tools; its name if not said."},
        "sandbox": {"type": "object", "description": "Start it inside the sandbox, with these limits."},
        "oauth": {"type": "object", "description": "How to sign in where it asks for it."},
        "enabled": _switch("Whether it is used."),
    },
}
