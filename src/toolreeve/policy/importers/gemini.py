"""Importer of Gemini CLI's policy files: `[[rule]]` tables in TOML."""

from collections.abc import Mapping
from typing import Any

from toolreeve.policy.importers.imported import TEXT_MATCHED, ImportedRules, command_rule
from toolreeve.policy.known_tools import KNOWN, NAMESAKES, canonical

_DECISIONS = {"allow": "allow", "ask_user": "ask", "deny": "deny"}
_UNMATCHED = {
    "argsPattern": TEXT_MATCHED,
    "commandRegex": TEXT_MATCHED,
    "toolAnnotations": "annotations are a server's own claim",
    "subagent": "there are no subagents here",
    "modes": "modes mean something else here",
    "interactive": "it depends on the client's terminal",
}
_SHELL = "run_shell_command"


def import_gemini(value: Any, *, root: str) -> ImportedRules:
    found = ImportedRules()
    listed = value.get("rule", []) if isinstance(value, Mapping) else []
    for table in listed if isinstance(listed, list) else []:
        if isinstance(table, Mapping):
            _import(table, found, root)
    return found


def _import(table: Mapping[str, Any], found: ImportedRules, root: str) -> None:
    shown = ", ".join(f"{key} = {value!r}" for key, value in table.items())
    decision = _DECISIONS.get(str(table.get("decision")))
    unmatched = next((key for key in _UNMATCHED if key in table), None)
    if decision is None:
        found.skip(shown, "its decision is not allow, ask_user or deny")
    elif unmatched is not None:
        found.skip(shown, f"{unmatched}: {_UNMATCHED[unmatched]}")
    else:
        for rule in _rules(table, decision):
            found.add(shown, rule | _common(table, decision), root=root)


def _common(table: Mapping[str, Any], decision: str) -> dict[str, Any]:
    priority = table.get("priority")
    common: dict[str, Any] = {"priority": priority} if isinstance(priority, int) and decision != "deny" else {}
    message = table.get("denyMessage")
    return common | ({"reason": message} if isinstance(message, str) and message else {})


def _rules(table: Mapping[str, Any], decision: str) -> list[dict[str, Any]]:
    if "commandPrefix" in table:
        prefixes = table["commandPrefix"]
        return [command_rule(str(each), decision) for each in (prefixes if isinstance(prefixes, list) else [prefixes])]
    names = table.get("toolName", "*")
    server = table.get("mcpName")
    tools = [_tool(str(each), server) for each in (names if isinstance(names, list) else [names])]
    where = {"server": str(server)} if server is not None else {}
    return [where | ({} if tool == "*" else {"tool": tool}) | {"decision": decision} for tool in tools]


def _tool(name: str, server: Any) -> str:
    if server is not None:
        return name if name == "*" else f"{server}__{name}"
    if name == _SHELL:
        return "bash"
    meant = NAMESAKES.get(canonical(name), canonical(name))
    return meant if meant in KNOWN else name
