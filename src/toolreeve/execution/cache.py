"""Result cache of one tool: successes, per principal, for a limited time.

A cached result is a frozen copy, and every hit returns a fresh one: no caller can change another's result. The key is
made once, before the tool runs and can touch its arguments.
"""

import json
import marshal
import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolreeve.core.action import Action
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.limits import Caching
from toolreeve.core.result import Output

MAX_BYTES = 16 * 1024 * 1024
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][\w-]*)\s*\}\}")


@dataclass(frozen=True, slots=True)
class _CacheEntry:
    content: bytes
    expires: float


class Cache:
    """Evicts the least recently used result when `max_size` results or `max_bytes` are exceeded."""

    def __init__(self, settings: Caching, *, max_bytes: int = MAX_BYTES) -> None:
        self._settings = settings
        self._max_bytes = max_bytes
        self._names = None if settings.key_template is None else template_names(settings.key_template)
        self._entries: OrderedDict[str, _CacheEntry] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def key(self, action: Action) -> str:
        """Principal and arguments, encoded as JSON so that no two different calls share a key."""
        principal = action.call.principal
        return json.dumps(
            [principal.user, principal.role.value, self._selected(action.args)], sort_keys=True, separators=(",", ":")
        )

    def _selected(self, args: Mapping[str, Any]) -> Any:
        """All the arguments, or those the template names: each as a list, empty if it was not given."""
        if self._names is None:
            return dict(args)
        return [[args[name]] if name in args else [] for name in self._names]

    def get(self, key: str, now: float) -> Output | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.expires <= now:
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return _thaw(entry.content)

    def put(self, key: str, output: Output, now: float) -> None:
        """Store a success. A result that cannot be copied exactly, or is too large, is not stored."""
        if key in self._entries:
            self._drop(key)
        content = _freeze(output)
        if content is None or len(content) > self._max_bytes or self._settings.max_size < 1:
            return
        self._entries[key] = _CacheEntry(content, now + self._settings.ttl)
        self._bytes += len(content)
        while len(self._entries) > self._settings.max_size or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def clear(self) -> None:
        self._entries.clear()
        self._bytes = 0

    def _drop(self, key: str) -> None:
        self._bytes -= len(self._entries.pop(key).content)


def template_names(template: str) -> tuple[str, ...]:
    """The arguments that `"{{url}}:{{method}}"` names. Raises ToolreeveError for a template without arguments."""
    names = tuple(_PLACEHOLDER.findall(template))
    rest = _PLACEHOLDER.sub("", template)
    if not names or "{{" in rest or "}}" in rest:
        raise ToolreeveError(
            f"key_template {template!r} must name arguments as {{{{name}}}}, such as '{{{{url}}}}:{{{{method}}}}'"
        )
    return names


def _freeze(output: Output) -> bytes | None:
    parts = (
        dict(output.data),
        output.main,
        output.truncated,
        tuple(output.labels),
        output.command,
        output.sandbox,
    )
    try:
        return marshal.dumps(parts)
    except ValueError:
        return None


def _thaw(content: bytes) -> Output:
    """Marshal keeps every JSON value exactly, large integers too. A cached result costs nothing."""
    data, main, truncated, labels, command, sandbox = marshal.loads(content)  # noqa: S302 - bytes of our own making
    return Output(data=data, main=main, truncated=truncated, labels=labels, command=command, sandbox=sandbox, cost=0.0)
