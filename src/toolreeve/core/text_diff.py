"""Unified diffs of two texts, bounded."""

import re
from collections.abc import Callable, Sequence

CONTEXT = 3
_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@$")
MAX_LINES = 1500
"""Largest differing region in lines, on either side; comparing is quadratic."""


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
    from difflib import unified_diff

    unified = unified_diff(old, new, old_name, path, lineterm="", n=CONTEXT)
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
