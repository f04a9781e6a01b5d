"""Exact text replacements and their diff.

Pure. Each piece must occur exactly once when its turn comes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolreeve.core.errors import ErrorCode, ToolError

_MAX_PLACES = 10
_MAX_COMPARED = 5000
_CONTEXT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    old: str
    new: str


def replace_all(content: str, edits: Sequence[Edit]) -> str:
    """The text after all edits. Raises ToolError(INVALID_PARAMS) that says which edit fails, and why.

    In a text whose lines all end with CRLF, edits may use plain newlines: the line endings stay.
    """
    newlines = content.count("\n")
    returns = newlines > 0 and content.count("\r\n") == newlines
    now = content.replace("\r\n", "\n") if returns else content
    for number, edit in enumerate(edits):
        now = _replace(now, _plain(edit) if returns else edit, number)
    return now.replace("\n", "\r\n") if returns else now


def unified_diff(old: str, new: str, name: str) -> str:
    """A unified diff. Only the part that differs is compared, so large texts cost little."""
    before = _lines(old)
    after = _lines(new)
    skipped = max(_common(before, after) - _CONTEXT, 0)
    rest = min(_common(before[skipped:][::-1], after[skipped:][::-1]), len(before) - skipped, len(after) - skipped)
    kept = max(rest - _CONTEXT, 0)
    from difflib import unified_diff

    lines = unified_diff(
        before[skipped : len(before) - kept], after[skipped : len(after) - kept], f"a/{name}", f"b/{name}", n=_CONTEXT
    )
    shifted = (_shift(line, skipped) if line.startswith("@@") else line for line in lines)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in shifted)


def _lines(content: str) -> list[str]:
    """Split at newlines only: other Unicode line separators are part of a line."""
    *whole, last = content.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the common prefix."""
    return next(
        (at for at, (one, other) in enumerate(zip(first, second, strict=False)) if one != other),
        min(len(first), len(second)),
    )


def _shift(header: str, lines: int) -> str:
    """`@@ -1,2 +1,3 @@` with its line numbers shifted."""
    return re.sub(r"(?<=[-+])\d+", lambda number: str(int(number[0]) + lines), header)


def _plain(edit: Edit) -> Edit:
    return Edit(old=edit.old.replace("\r\n", "\n"), new=edit.new.replace("\r\n", "\n"))


def _replace(content: str, edit: Edit, number: int) -> str:
    at = content.find(edit.old)
    if at < 0:
        raise _failed(number, f"the text was not found{_nearest(content, edit.old)}")
    if content.find(edit.old, at + 1) >= 0:
        raise _failed(number, f"the text was found {_places(content, edit.old)}; include more of the surrounding text")
    if edit.old == edit.new:
        raise _failed(number, "old and new are the same")
    return content[:at] + edit.new + content[at + len(edit.old) :]


def _failed(number: int, reason: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PARAMS, f"/edits/{number}/old: edit {number + 1}: {reason}; nothing was changed")


def _places(content: str, old: str) -> str:
    """`3 times (lines 4, 10, 22)`"""
    lines: list[str] = []
    count = 0
    at = content.find(old)
    while at >= 0:
        count += 1
        if len(lines) < _MAX_PLACES:
            lines.append(str(content.count("\n", 0, at) + 1))
        at = content.find(old, at + 1)
    more = ", …" if count > _MAX_PLACES else ""
    return f"{count} times (lines {', '.join(lines)}{more})"


def _nearest(content: str, old: str) -> str:
    """The line most similar to the first one searched for, as a hint."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")[:200]
    lines = [line.strip()[:200] for line in content.splitlines()[:_MAX_COMPARED]]
    from difflib import get_close_matches

    found = get_close_matches(wanted, lines, n=1, cutoff=0.7)
    return f"; the closest is line {lines.index(found[0]) + 1}: {found[0]!r}" if found else ""
