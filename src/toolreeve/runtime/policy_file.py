"""The user's policy file: appended to, replaced, and watched for changes.

A file is only ever replaced by a valid one, under a lock, so that no change of another process is lost.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.core.atomic import locked, write_private
from toolreeve.core.documents import Document, parse_yaml
from toolreeve.core.errors import ConfigError, ToolreeveError
from toolreeve.policy.rules import PermissionRule

if TYPE_CHECKING:
    from toolreeve.approval.always_rule import AlwaysRule

LOOK_SECONDS = 0.5


class StalePolicy(ToolreeveError):
    """`version` is that of the file now."""

    def __init__(self, problem: str, *, version: str) -> None:
        super().__init__(problem)
        self.version = version


class FileWatch:
    """Whether files have changed, by their metadata; looks at most every `LOOK_SECONDS`."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._seen = self._look()
        self._due = 0.0

    def has_changed(self) -> bool:
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + LOOK_SECONDS
        before, self._seen = self._seen, self._look()
        return before != self._seen

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_identity(path) for path in self._paths]


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def append_rule(path: Path, rule: "AlwaysRule", *, root: str) -> PermissionRule:
    """Append a rule to a policy file; if the result is not valid, the file stays as it was. Raises ConfigErrors."""
    from toolreeve.approval.always_rule import rule_text

    path = path.resolve()
    with locked(path):
        text = _EMPTY.sub("rules:", path.read_text() if path.exists() else "")
        if "rules" not in (parse_yaml(text, str(path)).value or {}):
            text = f"{text.rstrip()}\nrules:\n".lstrip()
        longer = f"{text.rstrip()}\n{_indent(parse_yaml(text, str(path)), text)}- {rule_text(rule)}\n"
        rules = parse_policy(longer, path, root=root)
        _replace(path, longer)
    return rules[-1]


def save_rules(path: Path, text: str, *, version: str, root: str) -> str:
    """Replace a policy file, if it still has the version that was edited. Returns what changed, as a unified diff.
    Raises ConfigErrors, and StalePolicy; then the file stays as it was."""
    path = path.resolve()
    with locked(path):
        before = read_text(path)
        if version_of(before) != version:
            raise StalePolicy(f"{path} has changed since it was read", version=version_of(before))
        parse_policy(text, path, root=root)
        _replace(path, text)
    return difference(before, text)


def difference(before: str, after: str) -> str:
    """As a unified diff."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", n=2, lineterm="")
    return "\n".join(lines)


def parse_policy(text: str, path: Path, *, root: str) -> Sequence[PermissionRule]:
    """Raises ConfigErrors, and ConfigError for what is no YAML."""
    from toolreeve.policy.files import parse_rules

    return parse_rules(parse_yaml(text, str(path)), root=root)


def read_text(path: Path) -> str:
    """Raises ConfigError."""
    try:
        return path.read_text() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot be read: {problem}", source=path) from None


def version_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


_EMPTY = re.compile(r"^rules:[ \t]*\[[ \t]*\]", re.MULTILINE)


def _indent(document: Document, text: str) -> str:
    """The indentation of the file's rules."""
    has_rules = bool(document.value and document.value.get("rules"))
    first = document.line(("rules", 0)) if has_rules else None
    if not first:
        return "  "
    line = text.splitlines()[first - 1]
    return line[: len(line) - len(line.lstrip())]


def _replace(path: Path, text: str) -> None:
    """Atomic, also across a crash. The file keeps its mode; a new one is private to its owner."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_private(path, text.encode(), mode=mode)
