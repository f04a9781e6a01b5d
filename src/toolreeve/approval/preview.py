"""What would a call change? A unified diff for the tools that write text, made without changing anything.

A preview is help for the eye, not a promise: the file is read again when the call runs. What cannot be shown is said.
"""

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from toolreeve.core.action import Action

ReadText = Callable[[str], str | None]
"""The text of the file at a path as the caller wrote it; None where there is none, or none that can be shown."""

MAX_LINES = 1500
"""What differs may have so many lines on either side; comparing takes the square of it."""


def preview(action: Action, read: ReadText) -> str:
    """Empty for calls that write no text."""
    match action.spec.name, action.args:
        case "write_file", {"path": str(path), "content": str(content)}:
            before = read(path)
            after = (before or "") + content if action.args.get("append") is True else content
            return diff(before, after, path)
        case "edit_file", {"path": str(path), "edits": list(edits)}:
            before = read(path)
            after = None if before is None else edited(before, edits)
            return "" if before is None or after is None else diff(before, after, path)
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
    old, new = (before or "").splitlines(), after.splitlines()
    head, tail = _common(old, new)
    if max(len(old), len(new)) - head - tail > MAX_LINES:
        return f"(too different to compare: {len(old)} lines before, {len(new)} after)"
    names = ("(nothing)" if before is None else path, path)
    lines = list(difflib.unified_diff(*_near(old, new, head, tail), *names, lineterm="", n=3))
    return "\n".join(lines) if lines else "(no line changes)"


def _common(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many lines at the start, and at the end, are the same."""
    shorter = min(len(old), len(new))
    head = next((index for index in range(shorter) if old[index] != new[index]), shorter)
    rest = shorter - head
    tail = next((index for index in range(rest) if old[-1 - index] != new[-1 - index]), rest)
    return head, tail


def _near(old: list[str], new: list[str], head: int, tail: int) -> tuple[list[str], list[str]]:
    """Only what differs, with a few lines around it, so that a small change in a big file is compared quickly."""
    first, last = max(0, head - 3), max(0, tail - 3)
    return old[first : len(old) - last], new[first : len(new) - last]
