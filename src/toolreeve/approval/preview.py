"""Previews of file changes: a unified diff of what a call would write.

A preview changes nothing and promises nothing: the file is read again when the call runs. A preview that cannot be
shown says why.
"""

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.core.threads import run_interruptibly

ReadText = Callable[[str], str | None]
"""The text of the file at the given path; None if there is no such file."""

MAX_BYTES = 1024 * 1024
CONTEXT = 3
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@$")
MAX_LINES = 1500
"""Largest differing region in lines, on either side; comparing is quadratic."""


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

    async def shown(action: Action) -> str:
        text: str = await run_interruptibly(lambda: show(action))
        return text

    return shown


class _Unreadable(Exception):
    """The current content cannot be read."""


def preview(action: Action, read: ReadText) -> str:
    """Empty for calls that write no text."""
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


def diff(before: str | None, after: str, path: str) -> str:
    old = _lines(before or "")
    new = _lines(after)
    head, tail = _common(old, new)
    if max(len(old), len(new)) - head - tail > MAX_LINES:
        return f"(too different to compare: {len(old)} lines before, {len(new)} after)"
    old_name = "(nothing)" if before is None else path
    skipped = max(0, head - CONTEXT)
    kept = max(0, tail - CONTEXT)
    old = old[skipped : len(old) - kept]
    new = new[skipped : len(new) - kept]
    unified = difflib.unified_diff(old, new, old_name, path, lineterm="", n=CONTEXT)
    lines = [_HUNK.sub(_shifted_by(skipped), line) for line in unified]
    return "\n".join(lines) if lines else "(no line changes)"


def _lines(text: str) -> list[str]:
    """Split at line feeds only: other line-breaking characters must stay visible."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """The number of equal lines at the start and at the end."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if old[-1 - index] != new[-1 - index]), rest)
    return head, tail


def _shifted_by(lines: int) -> Callable[[re.Match[str]], str]:
    """Hunk headers with line numbers counted from the start of the file."""
    return lambda found: f"@@ -{int(found[1]) + lines}{found[2] or ''} +{int(found[3]) + lines}{found[4] or ''} @@"
