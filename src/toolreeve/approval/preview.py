"""Previews: the diff of a call, or the tool's own.

A preview changes nothing and promises nothing: the file is read again when the call runs. A preview that cannot be
shown says why.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.core.text_diff import diff
from toolreeve.core.threads import run_interruptibly

ReadText = Callable[[str], str | None]
"""The text of the file at the given path; None if there is no such file."""

MAX_BYTES = 1024 * 1024


def previewer(files: Files) -> Callable[[Action], Awaitable[str]]:
    """A function that previews calls against the workspace, in a thread."""

    def read(path: str) -> str | None:
        try:
            if files.stat(path) is None:
                return None
            chunk = files.read(path, MAX_BYTES)
        except ToolError as refusal:
            raise _Unreadable(refusal.message) from None
        if chunk.size > MAX_BYTES:
            raise _Unreadable(f"the file is larger than {MAX_BYTES // 1024} KB")
        return chunk.data.decode(errors="replace")

    def show(action: Action) -> str:
        try:
            return preview(action, read)
        except _Unreadable as reason:
            return f"(no preview: {reason})"
        except ToolError as refusal:
            return f"(no preview: {refusal.message})"

    async def shown(action: Action) -> str:
        text: str = await run_interruptibly(lambda: show(action))
        return text

    return shown


class _Unreadable(Exception):
    """The current content cannot be read."""


def preview(action: Action, read: ReadText) -> str:
    """Empty for calls that write no text, and whose tool has no preview of its own."""
    if action.tool.preview is not None:
        return action.tool.preview(action.args)
    match action.spec.name, action.args:
        case "write_file", {"path": str(path), "content": str(content)}:
            before = read(path)
            if action.args.get("append") is True:
                content = (before or "") + content
            return diff(before, content, path)
        case "edit_file", {"path": str(path), "edits": list(edits)}:
            before = read(path)
            if before is None:
                return ""
            after = apply_edits(before, edits)
            return "" if after is None else diff(before, after, path)
        case _:
            return ""


def apply_edits(text: str, edits: Sequence[Any]) -> str | None:
    """The text after the edits; None if one of them does not match exactly once."""
    for edit in edits:
        match edit:
            case {"old": str(old), "new": str(new)} if old and text.count(old) == 1:
                text = text.replace(old, new)
            case _:
                return None
    return text
