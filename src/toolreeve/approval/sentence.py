"""The sentence of a question: who wants to do what, where.

Made once for every channel. What comes from the call stands in `code` marks, on one line, with nothing invisible, and
cannot end the marks; the verbs come from the effects, never from the call's own words.
"""

import posixpath
import re
from collections.abc import Sequence

from toolreeve.approval.request import Request
from toolreeve.core import json
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.visible import one_line

LONGEST = 100
MOST_NAMED = 3
CLIENTS = {
    "claude-code": "Claude Code",
    "claude-ai": "Claude Desktop",
    "codex-mcp-client": "Codex",
    "codex": "Codex",
    "gemini-cli-mcp-client": "Gemini CLI",
    "gemini-cli": "Gemini CLI",
    "cursor-vscode": "Cursor",
    "cursor": "Cursor",
    "visual studio code": "VS Code",
    "vscode": "VS Code",
    "qwen-cli-mcp-client": "Qwen Code",
    "zed": "Zed",
    "opencode": "opencode",
    "goose": "goose",
    "goose-desktop": "goose",
    "cline": "Cline",
    "roo-code": "Roo Code",
}
"""The names that clients give themselves in MCP, and those that people know them by."""
_DOORS = {"python": "A Python program", "cli": "The command line", "agent": "The agent", "mcp": "An MCP client"}
_VERBS = {"edit_file": "edit", "undo": "restore"}
_VERSION = re.compile(r" v?[0-9][^ ]*$")


def client_name(client: str, origin: str) -> str:
    """The program that called, as people know it."""
    name = _VERSION.sub("", client.strip())
    if not name:
        return _DOORS.get(origin, "A client")
    known = next((CLIENTS[each] for each in (name.lower(), name.lower().split(" (")[0]) if each in CLIENTS), None)
    return known or one_line(name).replace("`", "'")


def sentence(request: Request, *, home: str = "") -> str:
    """With `code` marks. `home` is the home directory, which is written as `~`."""
    subject = client_name(request.client, request.origin)
    if request.tried:
        count = len(request.effects)
        return f"{subject} ran {_code(_command(request) or request.tool)} on trial. Keep the {_changes(count)}?"
    place = f" in {_code(_short(request.workspace, home))}" if request.workspace and _is_local(request) else ""
    return f"{subject} wants to {_deed(request, home)}{place}{_size(request)}"


def short_sentence(request: Request, *, home: str = "") -> str:
    """For lists, beside the client and the workspace."""
    if request.tried:
        return f"Keep the {_changes(len(request.effects))} of {_code(_command(request) or request.tool)}"
    deed = _deed(request, home)
    return deed[:1].upper() + deed[1:]


def plain(text: str) -> str:
    """Without code marks, for channels that show none."""
    return text.replace("`", "")


def changed_lines(diff: str) -> tuple[int, int] | None:
    """Added and removed lines of one unified diff; None if the text is not one."""
    lines = diff.split("\n")
    if len(lines) < 3 or not lines[0].startswith("--- ") or not lines[1].startswith("+++ ") or lines[2][:2] != "@@":
        return None
    added = sum(line.startswith("+") for line in lines[2:])
    removed = sum(line.startswith("-") for line in lines[2:])
    return added, removed


def _deed(request: Request, home: str) -> str:
    if command := _command(request):
        return f"run {_code(command)}"
    kinds = {effect.kind for effect in request.effects}
    by_kind = {kind: [effect for effect in request.effects if effect.kind is kind] for kind in kinds}
    if sent := by_kind.get(EffectKind.SEND):
        return f"send to {_names(sent, request, home)} with {_code(request.tool)}"
    if moved := _moved(by_kind):
        source, target = moved
        return f"move {_code(_path(source.target, request, home))} to {_code(_path(target.target, request, home))}"
    if deleted := by_kind.get(EffectKind.DELETE):
        return f"delete {_names(deleted, request, home)}"
    if written := by_kind.get(EffectKind.WRITE):
        return f"{_write_verb(request)} {_names(written, request, home)}"
    if reached := by_kind.get(EffectKind.NET):
        method = str(request.args.get("method", "GET")).upper()
        verb = "read" if method in ("GET", "HEAD") else "post to"
        return f"{verb} {_names(reached, request, home)}"
    if kinds == {EffectKind.READ}:
        return f"read {_names(by_kind[EffectKind.READ], request, home)}"
    return _plain_deed(request)


def _plain_deed(request: Request) -> str:
    given = {name: value for name, value in request.args.items() if name not in request.defaults}
    main = next((value for value in given.values() if isinstance(value, str) and value), None)
    arguments = "" if main is None else f" with {_code(main)}"
    if main is None and given:
        arguments = f" with {_code(json.dumps(given).decode())}"
    return f"call {_code(request.tool)}{arguments}"


def _moved(by_kind: dict[EffectKind, list[Effect]]) -> tuple[Effect, Effect] | None:
    sources = by_kind.get(EffectKind.DELETE, [])
    targets = by_kind.get(EffectKind.WRITE, [])
    return (sources[0], targets[0]) if len(sources) == len(targets) == 1 else None


def _write_verb(request: Request) -> str:
    if request.preview.startswith("--- (nothing)"):
        return "create"
    if request.tool in _VERBS:
        return _VERBS[request.tool]
    return "overwrite" if changed_lines(request.preview) is not None else "write"


def _command(request: Request) -> str:
    command = request.args.get("command")
    if not any(effect.kind is EffectKind.EXEC for effect in request.effects) and not request.facts.get("parts"):
        return ""
    if isinstance(command, str):
        return command.strip()
    return " ".join(map(str, command)) if isinstance(command, list) else ""


def _is_local(request: Request) -> bool:
    kinds = {effect.kind for effect in request.effects}
    return bool(_command(request)) or bool(kinds & {EffectKind.WRITE, EffectKind.DELETE, EffectKind.EXEC})


def _size(request: Request) -> str:
    counted = changed_lines(request.preview)
    if counted is None or _command(request):
        return ""
    added, removed = counted
    if request.preview.startswith("--- (nothing)"):
        return f" ({added} {'line' if added == 1 else 'lines'})"
    lines = max(added, removed)
    return f" ({lines} {'line' if lines == 1 else 'lines'} changed)"


def _changes(count: int) -> str:
    return "change" if count == 1 else f"{count} changes"


def _names(effects: Sequence[Effect], request: Request, home: str) -> str:
    targets = list(dict.fromkeys(_path(effect.target, request, home) for effect in effects))
    named = [_code(target) for target in targets[:MOST_NAMED]]
    if len(targets) > MOST_NAMED:
        named.append(f"{len(targets) - MOST_NAMED} more")
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _path(target: str, request: Request, home: str) -> str:
    root = request.workspace.rstrip("/")
    if target.startswith(f"{root}/") and root:
        return posixpath.relpath(target, root)
    return _short(target, home)


def _short(path: str, home: str) -> str:
    home = home.rstrip("/")
    if home and (path == home or path.startswith(f"{home}/")):
        return f"~{path[len(home) :]}"
    return path


def _code(text: str) -> str:
    shown = one_line(text).replace("`", "‹U+0060›")
    if len(shown) > LONGEST:
        shown = f"{shown[: LONGEST // 2]}⋯{shown[-LONGEST // 2 :]}"
    return f"`{shown}`"
