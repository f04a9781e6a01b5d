"""Tools of agent clients as our calls: names, arguments, effects.

One call of a client may be several of ours: a patch changes several files, and each is judged, as is each of several
keys that may name the file. A call that cannot be read is judged as an unknown tool besides, which no default allows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from posixpath import expanduser, join
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
UNKNOWN = "unknown"
_PATHS = ("path", "file_path", "absolute_path", "notebook_path", "dir_path", "target_file")
_REQUIRED = {
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "delete_file": "path",
    "fetch_url": "url",
    "search_files": "pattern",
    "search_text": "pattern",
}
"""The argument without which a call says nothing."""
_OPENINGS = ("apply_patch", "read_many_files", "web_fetch")
"""Tools of clients that have no counterpart of one call."""
_DIRECTORIES = ("dir_path", "directory", "workdir", "cwd")
_WILD = frozenset("*?[{")
_URL = re.compile(r"https?://[^\s\"'<>)\]}]+", re.IGNORECASE)
_PATCHED = re.compile(r"^\*\*\* (Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)


class ClientCall(NamedTuple):
    tool: str
    args: Mapping[str, Any]


def translate(name: str, given: Mapping[str, Any], *, cwd: str) -> list[ClientCall]:
    """`cwd` is where the client resolves relative paths; never empty."""
    if found := list(_translate(name, given, cwd)):
        return found
    known = NAMESAKES.get(canonical(name), canonical(name)) in ("bash", *_REQUIRED) or name in _OPENINGS
    return [ClientCall(name, given), *([ClientCall(UNKNOWN, given)] if known else [])]


def _translate(name: str, given: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    tool = NAMESAKES.get(canonical(name), canonical(name))
    match tool:
        case "bash":
            yield from _command(given if name != "Bash" else client_arguments(name, given), cwd)
        case _ if name == "apply_patch":
            yield from _patched(given, cwd)
        case _ if name == "read_many_files":
            values = [given[key] for key in ("include", "paths") if key in given]
            paths = [path for value in values for path in (value if isinstance(value, list) else [value])]
            if all(isinstance(path, str) for path in paths):
                yield from (ClientCall("read_file", {"path": place}) for path in paths for place in _places(path, cwd))
        case _ if name == "web_fetch" and "url" not in given:
            yield from (ClientCall("fetch_url", {"url": url}) for url in _URL.findall(str(given.get("prompt", ""))))
        case _ if tool != name or name in ("read_file", "write_file", "list_directory"):
            yield from _with_paths(tool, client_arguments(name, given), given, cwd)


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


def _with_paths(tool: str, args: Mapping[str, Any], given: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    """A model may name several paths under keys of which the client reads one: each is judged."""
    rest = {key: value for key, value in args.items() if key not in _PATHS}
    values = [given[key] for key in _PATHS if key in given]
    named = {**rest, "path": values[0]} if values else rest
    required = _REQUIRED.get(tool)
    if not all(isinstance(value, str) for value in (*values, "" if required is None else named.get(required))):
        return
    if not values:
        yield ClientCall(tool, rest)
    places = [place for value in values for place in _places(value, cwd)]
    if tool == "search_files":
        places += _searched(rest["pattern"], values, cwd)
    yield from (ClientCall(tool, {**rest, "path": place}) for place in dict.fromkeys(places))


def _places(path: str, cwd: str) -> list[str]:
    """Clients may take `~` for the home or for a name."""
    return [join(cwd, path), *([expanduser(path)] if path.startswith("~") else [])]


def _searched(pattern: str, bases: Sequence[str], cwd: str) -> Iterator[str]:
    """Where a pattern leads that is not below its base: up to its first wildcard."""
    parts = pattern.split("/")
    if not pattern.startswith(("/", "~")) and ".." not in parts:
        return
    fixed = "/".join(takewhile(lambda part: not _WILD & set(part), parts)) or "/"
    for base in bases or (".",):
        yield from _places(fixed, join(cwd, base))


def _patched(given: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    """The files of a patch in the format of `apply_patch`: each is a write or a deletion."""
    texts = [value for value in given.values() if isinstance(value, str)]
    for action, path in (found for text in texts for found in _PATCHED.findall(text)):
        tool = "delete_file" if action == "Delete File" else "write_file"
        yield ClientCall(tool, {"path": join(cwd, path)})
