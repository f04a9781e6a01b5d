"""Importer of `permissions` in Claude Code's settings.json."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.names import CLIENT_NAMES
from toolreeve.policy.importers.imported import TEXT_MATCHED, ImportedRules, command_rule

_SPECIFIED = re.compile(r"(?P<tool>[A-Za-z_][\w-]*)(?:\((?P<what>.*)\))?", re.DOTALL)
_FILE_TOOLS: Mapping[str, Sequence[str]] = {
    "Read": ("read_file", "search_text", "search_files", "list_directory"),
    "Edit": ("edit_file", "write_file"),
    "Write": ("write_file",),
}
_WILD = frozenset("*?[{")


def import_claude_code(settings: Any, *, root: str, home: str) -> ImportedRules:
    """`root` is the folder that its paths are relative to, `home` the user's."""
    found = ImportedRules()
    permissions = settings.get("permissions") if isinstance(settings, Mapping) else None
    if not isinstance(permissions, Mapping):
        return found
    for decision in ("deny", "ask", "allow"):
        listed = permissions.get(decision, [])
        for written in listed if isinstance(listed, list) else []:
            _import(str(written), decision, found, root, home)
    for key in permissions.keys() - {"deny", "ask", "allow"}:
        found.skip(f"permissions.{key}", "is no rule; see policy.mode and workspace.extra_roots")
    return found


def _import(written: str, decision: str, found: ImportedRules, root: str, home: str) -> None:
    shown = f"{decision}: {written}"
    matched = _SPECIFIED.fullmatch(written.strip())
    if matched is None:
        found.skip(shown, "is not of the form Tool or Tool(specifier)")
        return
    tool, what = matched["tool"], matched["what"]
    if tool == "Bash" and what not in (None, "*"):
        _import_command(shown, what, decision, found, root)
    elif tool in _FILE_TOOLS and what:
        target = {"decision": decision, "target": {"glob": _path(what, root, home)}}
        found.add(shown, _file_rule(tool, decision) | target, root=root)
    elif tool == "WebFetch" and what and what.startswith("domain:"):
        rule = {"tool": "fetch_url", "decision": decision, "when": {"url": {"host": what.removeprefix("domain:")}}}
        found.add(shown, rule, root=root)
    elif what not in (None, "*"):
        found.skip(shown, "this specifier has no counterpart")
    else:
        _import_tool(shown, tool, decision, found, root)


def _file_rule(tool: str, decision: str) -> dict[str, Any]:
    """An ask or a deny is about the file, whichever tool or command reaches it."""
    if decision == "allow":
        return {"tool": list(_FILE_TOOLS[tool])}
    return {"effect": "read"} if tool == "Read" else {"effect": ["write", "delete"]}


def _import_command(shown: str, what: str, decision: str, found: ImportedRules, root: str) -> None:
    prefix = what.removesuffix(":*") if what.endswith(":*") else what.removesuffix(" *")
    if not _WILD.isdisjoint(prefix):
        found.skip(shown, TEXT_MATCHED)
        return
    found.add(shown, command_rule(prefix, decision, exact=prefix == what), root=root)


def _import_tool(shown: str, tool: str, decision: str, found: ImportedRules, root: str) -> None:
    server = tool.removeprefix("mcp__")
    if tool.startswith("mcp__") and "__" not in server:
        found.add(shown, {"server": server, "decision": decision}, root=root)
    elif tool == "Bash" and decision == "allow":
        found.skip(shown, "allows every command; choose the programs")
    elif tool.startswith("mcp__") or tool in CLIENT_NAMES:
        found.add(shown, {"tool": CLIENT_NAMES.get(tool, server), "decision": decision}, root=root)
    else:
        found.skip(shown, "this tool has no counterpart")


def _path(what: str, root: str, home: str) -> str:
    """`//` begins an absolute path, `~/` one in the home, `/` and anything else one in the folder."""
    if what.startswith("//"):
        return what[1:]
    if what.startswith("~/"):
        return posixpath.join(home, what[2:])
    return posixpath.join(root, what.removeprefix("./").lstrip("/"))
