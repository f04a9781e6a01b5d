"""What would a call change? A unified diff for the tools that write text, made without changing anything.

A preview is help for the eye, not a promise: the file is read again when the call runs. What cannot be shown is said.
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
"""The text of the file at a path as the caller wrote it; None where there is none, or none that can be shown."""

MAX_BYTES = 1024 * 1024
CONTEXT = 3
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@$")
MAX_LINES = 1500
"""What differs may have so many lines on either side; comparing takes the square of it."""


def previewer(files: Files) -> Callable[[Action], Awaitable[str]]:
    """Previews against the files of a workspace, worked out in a thread."""

    def read(path: str) -> str | None:
        try:
            if files.stat(path) is None:
                return None
            chunk = files.read(path, MAX_BYTES)
        except ToolError as refusal:
            raise _Unseen(refusal.message) from None
        if chunk.size > MAX_BYTES:
            raise _Unseen(f"the file is larger than {MAX_BYTES // 1024} KB")
        return chunk.data.decode(errors="replace")

    def show(action: Action) -> str:
        try:
            return preview(action, read)
        except _Unseen as reason:
            return f"(what would change cannot be shown: {reason})"

    async def shown(action: Action) -> str:
        text: str = await run_interruptibly(lambda: show(action))
        return text

    return shown


class _Unseen(Exception):
    """What is there now cannot be read."""


def preview(action: Action, read: ReadText) -> str:
    """Empty for calls that write no text."""
    match action.spec.name, action.args:
        case "write_file", {"path": str(path), "content": str(content)}:
            before = read(path)
            after = (before or "") + content if action.args.get("append") is True else content
            return diff(before, after, path)
        case "edit_file", {"path": str(path), "edits": list(edits)}:
            before = read(path)
            result = None if before is None else edited(before, edits)
            return "" if result is None else diff(before, result, path)
        case _:
            return ""


def edited(text: str, edits: Sequence[Any]) -> str | None:
    """The text after the edits, or None where one of them does not fit exactly once."""
    for edit in edits:
        match edit:
            case {"old": str(old), "new": str(new)} if old and text.count(old) == 1:
                text = text.replace(old, new)
            case _:
                return None
    return text


def diff(before: str | None, after: str, path: str) -> str:
    old, new = _lines(before or ""), _lines(after)
    head, tail = _common(old, new)
    if max(len(old), len(new)) - head - tail > MAX_LINES:
        return f"(too different to compare: {len(old)} lines before, {len(new)} after)"
    names = ("(nothing)" if before is None else path, path)
    skipped = max(0, head - CONTEXT)
    kept = max(0, tail - CONTEXT)
    near = (old[skipped : len(old) - kept], new[skipped : len(new) - kept])
    lines = [_HUNK.sub(_moved(skipped), line) for line in difflib.unified_diff(*near, *names, lineterm="", n=CONTEXT)]
    return "\n".join(lines) if lines else "(no line changes)"


def _lines(text: str) -> list[str]:
    """Parted at line feeds only: other characters that break lines must stay to be seen."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines at the start, and at the end, are the same."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if old[-1 - index] != new[-1 - index]), rest)
    return head, tail


def _moved(lines: int) -> Callable[[re.Match[str]], str]:
    """The head of a hunk, counted from the start of the file again."""
    return lambda found: f"@@ -{int(found[1]) + lines}{found[2] or ''} +{int(found[3]) + lines}{found[4] or ''} @@"
