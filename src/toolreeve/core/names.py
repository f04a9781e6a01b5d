"""Tool names: one canonical name per tool, and the aliases of it.

`server__tool` is a tool of an upstream server, `mcp__server__tool` its long form; tools of the builtin server have bare
names.
"""

from collections.abc import Mapping
from typing import Any

BUILTIN_SERVER = "toolreeve_builtin"

CLIENT_NAMES = {
    "Read": "read_file",
    "Write": "write_file",
    "Edit": "edit_file",
    "MultiEdit": "edit_file",
    "Bash": "bash",
    "Grep": "search_text",
    "Glob": "search_files",
    "LS": "list_directory",
    "WebFetch": "fetch_url",
}
"""What agent clients call their own tools."""

ALIASES = {
    **CLIENT_NAMES,
    "bash_command": "bash",
    "shell": "bash",
    "fs/read_text_file": "read_file",
    "fs/write_text_file": "write_file",
}


def canonical(name: str) -> str:
    """A pure function of the name; whether such a tool exists is another question."""
    if name.startswith("mcp__"):
        name = name[5:]
    if name.startswith(BUILTIN_SERVER + "__"):
        name = name[len(BUILTIN_SERVER) + 2 :]
    return ALIASES.get(name, name)


def client_arguments(name: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a tool that was called by an agent client's name for it, under our names for them."""
    if name not in CLIENT_NAMES:
        return args
    renamed = {"path" if key == "file_path" else key: value for key, value in args.items()}
    if name == "Bash":
        renamed.pop("description", None)
        if isinstance(milliseconds := renamed.get("timeout"), int | float):
            renamed["timeout"] = milliseconds / 1000
    if name == "Edit" and "old_string" in renamed and "new_string" in renamed:
        renamed["edits"] = [{"old": renamed.pop("old_string"), "new": renamed.pop("new_string")}]
        if renamed.get("replace_all") is False:
            del renamed["replace_all"]
    if name == "MultiEdit" and isinstance(renamed.get("edits"), list):
        renamed["edits"] = [_renamed_edit(each) for each in renamed["edits"]]
    if name == "Grep" and "-i" in renamed:
        renamed["ignore_case"] = renamed.pop("-i")
    return renamed


def _renamed_edit(edit: Any) -> Any:
    if not isinstance(edit, Mapping) or not {"old_string", "new_string"} <= edit.keys():
        return edit
    rest = {key: value for key, value in edit.items() if key not in ("old_string", "new_string")}
    if rest.get("replace_all") is False:
        del rest["replace_all"]
    return {"old": edit["old_string"], "new": edit["new_string"], **rest}


def server_of(name: str) -> str | None:
    """The server part of a long name: the text between `mcp__` and the next `__`."""
    if not name.startswith("mcp__"):
        return None
    server, separator, tool = name[5:].partition("__")
    return server if separator and server and tool else None
