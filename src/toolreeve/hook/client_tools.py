"""Tools of agent clients as our calls: names, arguments, effects.

One call of a client may be several of ours: a patch changes several files, and each is judged. A call that cannot be
read is judged as an unknown tool under its own name, which no default allows.
"""

import re
from collections.abc import Iterator, Mapping
from posixpath import join
from typing import Any, NamedTuple

from toolreeve.core.names import client_arguments
from toolreeve.policy.known_tools import NAMESAKES, canonical

HARMLESS = frozenset(
    {
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
        "ask_user",
        "enter_plan_mode",
        "exit_plan_mode",
        "update_plan",
        "write_todos",
    }
)
"""Tools that reach nothing outside their client: left to it."""
_PATHS = ("file_path", "absolute_path", "notebook_path", "dir_path", "target_file")
_DIRECTORIES = ("dir_path", "directory", "workdir", "cwd")
_URL = re.compile(r"https?://[^\s\"'<>)\]}]+", re.IGNORECASE)
_PATCHED = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)


class ClientCall(NamedTuple):
    tool: str
    args: Mapping[str, Any]


def translate(name: str, given: Mapping[str, Any], *, cwd: str) -> list[ClientCall]:
    """`cwd` is where the client resolves relative paths; never empty."""
    found = list(_translate(name, given, cwd))
    return found or [ClientCall(name, given)]


def _translate(name: str, given: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    tool = NAMESAKES.get(canonical(name), canonical(name))
    match tool:
        case "bash":
            yield from _command(given if name != "Bash" else client_arguments(name, given), cwd)
        case _ if name == "apply_patch":
            yield from _patched(given, cwd)
        case _ if name == "read_many_files":
            listed = given.get("include") or given.get("paths")
            paths = listed if isinstance(listed, list) else [listed]
            yield from (ClientCall("read_file", {"path": join(cwd, path)}) for path in paths if isinstance(path, str))
        case _ if name == "web_fetch" and "url" not in given:
            yield from (ClientCall("fetch_url", {"url": url}) for url in _URL.findall(str(given.get("prompt", ""))))
        case _ if tool != name or name in ("read_file", "write_file", "list_directory"):
            yield ClientCall(tool, _with_path(client_arguments(name, given), cwd))


def _command(given: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    """Whichever key the client runs: a model may add the other one, and arguments apart from the command."""
    lines = [_line(given[key], given.get("args")) for key in ("command", "cmd") if key in given]
    directory = next((given[key] for key in _DIRECTORIES if isinstance(given.get(key), str)), ".")
    if None not in lines:
        yield from (ClientCall("bash", {"command": line, "working_dir": join(cwd, directory)}) for line in lines)


def _line(command: Any, args: Any) -> str | None:
    """The command as a line for the shell; None if it is no text."""
    from shlex import join as quote

    words = [] if args is None else args if isinstance(args, list) else [args]
    if isinstance(command, list) and all(isinstance(word, str) for word in command):
        return quote([*command, *map(str, words)])
    if not isinstance(command, str):
        return None
    return f"{command} {quote(map(str, words))}" if words else command


def _with_path(given: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    args = dict(given)
    for key in _PATHS:
        if key in args and "path" not in args:
            args["path"] = args.pop(key)
    if isinstance(path := args.get("path"), str):
        args["path"] = join(cwd, path)
    return args


def _patched(given: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    """The files of a patch in the format of `apply_patch`: each is a write or a deletion."""
    texts = [value for value in given.values() if isinstance(value, str)]
    for action, path in (found for text in texts for found in _PATCHED.findall(text)):
        tool = "delete_file" if action == "Delete File" else "write_file"
        yield ClientCall(tool, {"path": join(cwd, path)})
