"""Importer of `auto_approval_policies.yaml`, as permanent rules."""

import posixpath
from collections.abc import Mapping
from typing import Any

from toolreeve.policy.importers.imported import ImportedRules, command_rule
from toolreeve.policy.known_tools import NAMESAKES, canonical

_DECISIONS = {"approve": "allow", "reject": "deny", "manual": "ask"}
_KINDS = {"edit": "edit_file", "read": "read_file", "delete": "delete_file", "execute": "bash", "fetch": "fetch_url"}
_KNOWN = frozenset({"id", "applies_to", "include_paths", "exclude_paths", "parameters", "decision"})


def import_auto_approval(value: Any, *, root: str) -> ImportedRules:
    found = ImportedRules()
    listed = value.get("policies", value) if isinstance(value, Mapping) else value
    for entry in listed if isinstance(listed, list) else []:
        if isinstance(entry, Mapping):
            _import(entry, found, root)
    return found


def _import(entry: Mapping[str, Any], found: ImportedRules, root: str) -> None:
    shown = str(entry.get("id") or dict(entry))
    decided = entry.get("decision")
    decision = _DECISIONS.get(str(decided.get("type"))) if isinstance(decided, Mapping) else None
    if decision is None or not isinstance(decided, Mapping):
        found.skip(shown, "its decision is not approve, reject or manual")
        return
    if unknown := sorted(entry.keys() - _KNOWN):
        found.skip(shown, f"{', '.join(unknown)} is not known")
        return
    if decided.get("skipGovernors"):
        found.skip(shown, "skipGovernors: a rule of the policy decides before governors; leave it in its file")
        return
    reason = decided.get("reason")
    common = {"reason": reason} if isinstance(reason, str) and reason else {}
    for rule in _rules(entry, decision, root):
        if rule is None:
            found.skip(shown, "its parameters have no counterpart, but command_prefix")
        else:
            found.add(shown, rule | common, root=root)


def _rules(entry: Mapping[str, Any], decision: str, root: str) -> list[dict[str, Any] | None]:
    applies = [_tool(str(each)) for each in entry.get("applies_to") or []]
    parameters = entry.get("parameters") or {}
    if parameters and (not isinstance(parameters, Mapping) or set(parameters) != {"command_prefix"}):
        return [None]
    if parameters:
        return [command_rule(str(each), decision) for each in parameters["command_prefix"]]
    target: dict[str, Any] = {}
    if include := entry.get("include_paths"):
        target["glob"] = [_below(str(each), root) for each in include]
    if exclude := entry.get("exclude_paths"):
        target["not"] = {"glob": [_below(str(each), root) for each in exclude]}
    if not applies or (decision == "allow" and not target):
        return [None]
    return [{"tool": applies, "decision": decision} | ({"target": target} if target else {})]


def _below(path: str, root: str) -> str:
    return path if path.startswith(("/", "**")) else posixpath.join(root, path)


def _tool(name: str) -> str:
    name = _KINDS.get(name, name)
    return NAMESAKES.get(canonical(name), canonical(name))
