"""JSON Schema of policy files, for validation and for editors."""

from collections.abc import Mapping
from typing import Any

from toolreeve.core.call import Role
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import EffectKind
from toolreeve.core.trial import Confinement
from toolreeve.core.verdict import Decision
from toolreeve.policy.flow.declarations import FLOW_SCHEMA
from toolreeve.policy.flow.label_rules import LABELS_SCHEMA
from toolreeve.policy.mode import PermissionMode

MAX_RULES = 1000


def policy_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Toolreeve policy",
        "description": "Rules that allow, ask or deny calls. A matching deny always wins; then the highest priority.",
        "type": "object",
        "properties": {
            "version": {"enum": [1], "description": "The version of this format."},
            "enforce": {"type": "boolean", "description": _ENFORCE + " Holds for every rule that does not say itself."},
            **FLOW_SCHEMA,
            "rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}, "maxItems": MAX_RULES},
        },
        "additionalProperties": False,
        "$defs": {"rule": _RULE, "condition": _CONDITION, "example": _EXAMPLE},
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description}


def _words(words: list[str], description: str) -> dict[str, Any]:
    return {"enum": words, "description": description}


def _one_or_more(item: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"anyOf": [dict(item), {"type": "array", "items": dict(item), "minItems": 1}], "description": description}


_ENFORCE = "false: shadow mode, which decides nothing and records what would have been decided."
_DANGERS = [level.value for level in DangerLevel]
_SCALAR_TEXT = {"type": "string", "minLength": 1}
_CONDITIONS = {"$ref": "#/$defs/condition"}
_EXAMPLES = {"type": "array", "items": {"$ref": "#/$defs/example"}}

_RULE: dict[str, Any] = {
    "type": "object",
    "required": ["decision"],
    "additionalProperties": False,
    "properties": {
        "id": _text("A name for the rule, unique in the file; verdicts and the audit log use it."),
        "decision": _words([decision.word for decision in Decision], "The decision for a call that the rule matches."),
        "tool": _one_or_more(_SCALAR_TEXT, "The tool, by any of its names; * and ? are wildcards."),
        "server": _text("The MCP server the tool comes from; * and ? are wildcards."),
        "effect": _one_or_more({"enum": [str(kind) for kind in EffectKind]}, "What the call would do."),
        "target": _CONDITIONS | {"description": "What the effect touches: a resolved path, a host, a recipient."},
        "program": _one_or_more(
            _SCALAR_TEXT,
            "A program, with subcommands (git add). Ask and deny match every command that may run it; "
            "allow rules together must explain each simple command of the whole command.",
        ),
        "programs": _one_or_more(_SCALAR_TEXT, "The same, for several programs."),
        "args": {
            "type": "array",
            "items": _SCALAR_TEXT,
            "description": "In an allow: a pattern for each word after the program; a last * means any further words.",
        },
        "command": _one_or_more(
            _SCALAR_TEXT, "In an allow: a command by its words, such as npm run test *; * and ? stay within a word."
        ),
        "confined": _words(
            [Confinement.LOOK.value, Confinement.TRY.value],
            "In an allow: it holds for calls that run so confined. look: nothing can be written; try: changes are "
            "made in a layer without network, and kept if the rule covers them.",
        ),
        "writes": _one_or_more(
            _SCALAR_TEXT,
            "In an allow on programs: all that the command changes must lie below these directories; "
            "without it, in the workspace.",
        ),
        "labels": dict(LABELS_SCHEMA),
        "when": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": _CONDITIONS,
            "description": "Conditions on arguments by their path, such as path, headers.Accept, edits[*].new or $.",
        },
        "min_danger": _words(_DANGERS, "Only calls at least this dangerous."),
        "max_danger": _words(_DANGERS, "Only calls at most this dangerous."),
        "user": _text("The user of the call; * and ? are wildcards."),
        "role": _one_or_more({"enum": [role.value for role in Role]}, "The role of the caller."),
        "mode": _one_or_more({"enum": [mode.value for mode in PermissionMode]}, "The modes in which the rule applies."),
        "session": _text("The sessions in which the rule applies; * and ? are wildcards."),
        "origin": _text("The door the call came through, such as python, cli or mcp."),
        "enforce": {"type": "boolean", "description": _ENFORCE},
        "priority": {"type": "integer", "description": "Of ask and allow rules that match, the highest decides."},
        "expires": _text("The last day of the rule (2030-12-31) or its last moment (2030-12-31T12:00:00Z)."),
        "approvals": {
            "type": "integer",
            "minimum": 1,
            "maximum": 5,
            "description": "In an ask: how many different people must allow the call; its own caller does not count.",
        },
        "reason": _text("Why, for people and for the model."),
        "advice": _text("What the model should do instead."),
        "matches": _EXAMPLES | {"description": "Calls that the rule must match; checked when the file is read."},
        "not_matches": _EXAMPLES | {"description": "Calls that the rule must not match."},
    },
}

_CONDITION: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "equals": {"description": "Exactly this value."},
        "one_of": {"type": "array", "minItems": 1, "description": "One of these values."},
        "glob": _one_or_more(
            _SCALAR_TEXT, "A path, links followed; ** crosses directories; relative to the workspace."
        ),
        "under": _one_or_more(_SCALAR_TEXT, "A path at or below one of these, links followed."),
        "regex": _text("RE2. An allow must match the whole value; an ask or a deny matches any part."),
        "min": {"type": "number"},
        "max": {"type": "number"},
        "host": _one_or_more(_SCALAR_TEXT, "The host of a URL; *.example.com means its subdomains, * every host."),
        "present": {"type": "boolean", "description": "Whether the argument is given at all."},
        "not": _CONDITIONS | {"description": "The opposite of these conditions."},
    },
}

_EXAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["tool"],
    "additionalProperties": False,
    "properties": {
        "tool": _text("The tool that is called."),
        "args": {"type": "object"},
        "role": _words([role.value for role in Role], "The role of the caller; default: operator."),
        "user": _text("The user of the call."),
        "session": _text("The session of the call."),
        "origin": _text("The door of the call."),
        "mode": _words([mode.value for mode in PermissionMode], "The permission mode; default: default."),
    },
}
