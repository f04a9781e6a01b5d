"""Adds our hook to agent clients' settings, and removes it again.

Only the user's own files are touched, never those of a workspace. Everything else in a file stays as it is. The command
ends in a refusal if it cannot be started: a client takes any other failure for consent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

from toolreeve.adopt.json_edit import Swap, apply_swaps
from toolreeve.adopt.json_style import NewMember
from toolreeve.adopt.plan import FileChange
from toolreeve.config.jsonc import json_document
from toolreeve.core.errors import ConfigError

SECTION = "hooks"
SECONDS = 30
_OURS = " hook "


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedClient:
    """`events` are those we answer, with whether they are about tools. `unit` is a second in the client's timeouts.
    `after` is what the user has to do besides."""

    name: str
    title: str
    file: str
    events: Mapping[str, bool]
    unit: int = 1
    after: str = ""


HOOKED: Mapping[str, HookedClient] = {
    client.name: client
    for client in (
        HookedClient(
            name="claude-code",
            title="Claude Code",
            file=".claude/settings.json",
            events={"PreToolUse": True, "UserPromptSubmit": False},
        ),
        HookedClient(
            name="codex",
            title="Codex",
            file=".codex/hooks.json",
            events={"PreToolUse": True, "PermissionRequest": True, "UserPromptSubmit": False},
            after="Codex runs a new hook only after you trust it: start it, and enter /hooks",
        ),
        HookedClient(
            name="gemini",
            title="Gemini CLI",
            file=".gemini/settings.json",
            events={"BeforeTool": True, "BeforeAgent": False},
            unit=1000,
        ),
    )
}


def hook_command(client: str, program: Sequence[str]) -> str:
    """`program` starts this installation of `toolreeve`. A shell runs the command."""
    return f"{join([*program, 'hook', client])} || exit 2"


def plan_install(client: HookedClient, home: Path, program: Sequence[str]) -> FileChange | None:
    """The change that adds our hook, in place of an earlier one; None if it is there. Raises ConfigError."""
    command = hook_command(client.name, program)

    def with_ours(event: str, groups: list[Any]) -> list[Any]:
        if [each for each in groups if _is_ours(each, client.name)] == [_group(client, event, command)]:
            return groups
        return [*_without_ours(groups, client.name), _group(client, event, command)]

    return _plan(client, home, with_ours)


def plan_removal(client: HookedClient, home: Path) -> FileChange | None:
    """The change that removes our hook; None if it is not there. Raises ConfigError."""
    return _plan(client, home, lambda _, groups: _without_ours(groups, client.name))


def find_installed(client: HookedClient, home: Path) -> tuple[str, ...]:
    """The events that our hook is installed for. Raises ConfigError if the file cannot be read."""
    groups = _groups(_read(home / client.file), client, home / client.file)
    return tuple(event for event, found in groups.items() if any(_is_ours(each, client.name) for each in found))


def _plan(client: HookedClient, home: Path, change: "Callable[[str, list[Any]], list[Any]]") -> FileChange | None:
    path = home / client.file
    text = _read(path)
    groups = _groups(text, client, path)
    changed = {event: change(event, found) for event, found in groups.items() if change(event, found) != found}
    if not changed:
        return None
    swap = Swap(
        section=(SECTION,),
        removed=tuple(changed),
        new=tuple(NewMember(key=event, value=after) for event, after in changed.items() if after),
        keep_comments=True,
    )
    after = _without_empty_section(apply_swaps(text or "", [swap])[0])
    json_document(after, str(path))
    return FileChange(path=path, before=text, after=after)


def _without_empty_section(text: str) -> str:
    """A section that only our hook was in goes with it."""
    if json_document(text, "").value.get(SECTION) != {}:
        return text
    return apply_swaps(text, [Swap(section=(), removed=(SECTION,), keep_comments=True)])[0]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise ConfigError("cannot be read as text", source=path) from None


def _groups(text: str | None, client: HookedClient, path: Path) -> dict[str, list[Any]]:
    value = json_document(text, str(path)).value if text and text.strip() else {}
    section = value.get(SECTION, {}) if isinstance(value, Mapping) else None
    groups = {event: section.get(event, []) for event in client.events} if isinstance(section, Mapping) else {}
    if not groups or not all(isinstance(found, list) for found in groups.values()):
        raise ConfigError("its hooks are not as the client expects them", source=path, key=SECTION, fix="correct them")
    return groups


def _group(client: HookedClient, event: str, command: str) -> dict[str, Any]:
    matcher = {"matcher": "*"} if client.events[event] else {}
    return {**matcher, "hooks": [{"type": "command", "command": command, "timeout": SECONDS * client.unit}]}


def _without_ours(groups: list[Any], client: str) -> list[Any]:
    return [each for each in groups if not _is_ours(each, client)]


def _is_ours(group: Any, client: str) -> bool:
    """Whether a group holds our hook: it starts `toolreeve hook CLIENT`, from whichever installation."""
    hooks = group.get("hooks") if isinstance(group, Mapping) else None
    if not isinstance(hooks, list):
        return False
    commands = [str(each.get("command", "")) for each in hooks if isinstance(each, Mapping)]
    return any("toolreeve" in each and f"{_OURS}{client}" in each for each in commands)
