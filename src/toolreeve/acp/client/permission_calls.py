"""Permission requests as our calls: every statement about the call counts.

Agents state a call in different places: raw input, a diff of an earlier update, locations, or the title alone. All that
is found is judged, so a harmless statement does not hide another. What cannot be read is an unknown tool, which asks.
"""

import re
from collections.abc import Iterator, Mapping
from posixpath import join
from typing import Any

from toolreeve.acp.client.profiles import AgentProfile
from toolreeve.hook.client_tools import ClientCall, translate
from toolreeve.policy.known_tools import KNOWN, NAMESAKES, canonical

_NAME = re.compile(r"[A-Za-z][\w.-]{0,99}")
_COMMAND_KEYS = ("command", "cmd")
_READ_KEYS = frozenset(("path", "file_path", "absolute_path", "line", "limit", "offset"))
_TITLE_NOTES = re.compile(r" \[(?:current working directory|in directory) .*", re.DOTALL)
_CHANGING_KINDS = ("execute", "edit", "delete", "move")
_READING_KINDS = ("read", "search", "fetch", "think")
_BY_KIND = {"read": "read_file", "edit": "write_file", "delete": "delete_file", "move": "write_file"}


def read_calls(call: Mapping[str, Any], profile: AgentProfile, *, cwd: str) -> list[ClientCall]:
    """The calls that a merged tool call stands for, none of them twice; never empty."""
    found = [*_from_input(call, profile, cwd), *_from_diffs(call, cwd)]
    stated = [each.args.get("path") for each in found]
    found += [each for each in _from_locations(call, cwd) if each.args["path"] not in stated]
    found = found or [*_from_title(call, profile, cwd)]
    if _claims_too_little(call, profile, found):
        found.append(_unknown(call))
    unique: list[ClientCall] = []
    for each in found or [_unknown(call)]:
        if each not in unique:
            unique.append(each)
    return unique


def _claims_too_little(call: Mapping[str, Any], profile: AgentProfile, found: list[ClientCall]) -> bool:
    """A model chooses arguments, and often the title. So a `command` among the arguments of some other tool does not
    make it a shell, nor does a title alone make a tool one that only reads."""
    kind, declared = call.get("kind"), declared_name(call)
    name = profile.tools.get(tool_name(call), tool_name(call))
    if all(_only_reads(each.tool) for each in found):
        return kind in _CHANGING_KINDS or not (declared or profile.routes or kind in _READING_KINDS)
    runs = any(each.tool == "bash" for each in found)
    return runs and not _is_known(name) and (bool(declared) or kind != "execute")


def _unknown(call: Mapping[str, Any]) -> ClientCall:
    name = tool_name(call)
    return ClientCall("unknown" if not name or _is_known(name) else name, _input(call))


def _only_reads(tool: str) -> bool:
    known = KNOWN.get(tool)
    return known is not None and known.read_only


def tool_name(call: Mapping[str, Any]) -> str:
    """The agent's name of the tool: from its own metadata, else a title that is a plain name."""
    title = call.get("title")
    named = declared_name(call)
    if named or not isinstance(title, str):
        return named
    return title if _NAME.fullmatch(title) else ""


def declared_name(call: Mapping[str, Any]) -> str:
    """The name from the agent's own metadata. A title may be what the model wrote."""
    return next(_names_in(call.get("_meta")), "")


def _names_in(meta: Any, depth: int = 4) -> Iterator[str]:
    if not isinstance(meta, dict) or not depth:
        return
    if isinstance(name := meta.get("toolName"), str) and name:
        yield name
    for value in meta.values():
        yield from _names_in(value, depth - 1)


def _input(call: Mapping[str, Any]) -> dict[str, Any]:
    given = call.get("rawInput")
    return given if isinstance(given, dict) else {}


def _from_input(call: Mapping[str, Any], profile: AgentProfile, cwd: str) -> Iterator[ClientCall]:
    given = _input(call)
    name = tool_name(call)
    name = profile.tools.get(name, name)
    if _is_known(name) and given:
        yield from translate(name, given, cwd=cwd)
        if canonical(name) != "bash" and any(key in given for key in _COMMAND_KEYS):
            yield from translate("bash", given, cwd=cwd)
    elif any(key in given for key in _COMMAND_KEYS):
        yield from translate("bash", given, cwd=cwd)
    elif call.get("kind") == "read" and given and set(given) <= _READ_KEYS:
        yield from translate("read_file", given, cwd=cwd)


def _is_known(name: str) -> bool:
    return NAMESAKES.get(canonical(name), canonical(name)) in KNOWN


def _from_diffs(call: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    content = call.get("content")
    for each in content if isinstance(content, list) else ():
        if isinstance(each, dict) and each.get("type") == "diff" and isinstance(path := each.get("path"), str):
            text = {"content": new} if isinstance(new := each.get("newText"), str) else {}
            yield ClientCall("write_file", {"path": join(cwd, path), **text})


def _from_locations(call: Mapping[str, Any], cwd: str) -> Iterator[ClientCall]:
    """Only the kinds whose effect on a path is plain."""
    tool = _BY_KIND.get(str(call.get("kind")))
    if tool is None or (tool == "read_file" and not set(_input(call)) <= _READ_KEYS):
        return
    locations = call.get("locations")
    for each in locations if isinstance(locations, list) else ():
        if isinstance(each, dict) and isinstance(path := each.get("path"), str):
            yield ClientCall(tool, {"path": join(cwd, path)})


def _from_title(call: Mapping[str, Any], profile: AgentProfile, cwd: str) -> Iterator[ClientCall]:
    title = call.get("title")
    if profile.asks_in_title and call.get("kind") == "execute" and isinstance(title, str):
        yield ClientCall("bash", {"command": _TITLE_NOTES.sub("", title).strip("` "), "working_dir": cwd})
