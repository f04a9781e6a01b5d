"""Is the answer already known? Successes of one tool, kept for a while, each for the principal who got it.

What is kept is a frozen copy, and what is handed out is a fresh one: nobody can change another's answer. A key is made
once, before the tool runs and can touch its arguments.
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
class _Kept:
    content: bytes
    expires: float


class Cache:
    """The cache of one tool: least recently used goes first when `max_size` answers or `max_bytes` are exceeded."""

    def __init__(self, settings: Caching, *, max_bytes: int = MAX_BYTES) -> None:
        self._settings = settings
        self._max_bytes = max_bytes
        self._names = None if settings.key_template is None else template_names(settings.key_template)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def key(self, action: Action) -> str:
        """Who asks, and for what. Encoded as JSON, so that no two different askings share a key."""
        principal = action.call.principal
        return json.dumps(
            [principal.user, principal.role.value, self._asked(action.args)], sort_keys=True, separators=(",", ":")
        )

    def _asked(self, args: Mapping[str, Any]) -> Any:
        """All the arguments, or those the template names: each as a list, empty where it was not given."""
        if self._names is None:
            return dict(args)
        return [[args[name]] if name in args else [] for name in self._names]

    def get(self, key: str, now: float) -> Output | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept.expires <= now:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return _thaw(kept.content)

    def put(self, key: str, output: Output, now: float) -> None:
        """Keep a success. An answer that cannot be copied exactly, or is too large, is not kept."""
        if key in self._kept:
            self._drop(key)
        content = _freeze(output)
        if content is None or len(content) > self._max_bytes or self._settings.max_size < 1:
            return
        self._kept[key] = _Kept(content, now + self._settings.ttl)
        self._bytes += len(content)
        while len(self._kept) > self._settings.max_size or self._bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        self._kept.clear()
        self._bytes = 0

    def _drop(self, key: str) -> None:
        self._bytes -= len(self._kept.pop(key).content)


def template_names(template: str) -> tuple[str, ...]:
    """The arguments that `"{{url}}:{{method}}"` names. Raises ToolreeveError for a template that could not tell calls
    apart."""
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
    """Marshal keeps every JSON value exactly, large integers too. This time the answer cost nothing."""
    data, main, truncated, labels, command, sandbox = marshal.loads(content)  # noqa: S302 - bytes of our own making
    return Output(data=data, main=main, truncated=truncated, labels=labels, command=command, sandbox=sandbox, cost=0.0)
