"""Bounded copies of values for the record.

`snapshot` is total: for any value it returns a bounded one that JSON can represent, so that the record cannot be
flooded, and that later changes of the original do not reach.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 16
MAX_VALUES = 1_000
MAX_TEXT = 1_024
HEAD = 512
_SCALARS = frozenset({str, int, float, bool, type(None)})


def snapshot(value: Any) -> Any:
    """A bounded copy. Texts are shared, because they cannot change."""
    if type(value) is dict and len(value) <= MAX_VALUES:
        for key, item in value.items():
            if type(item) not in _SCALARS or type(key) is not str:
                break
        else:
            return value.copy()
    return _Copy().value(value, 0)


def digest(plain: bytes) -> str:
    return hashlib.sha256(plain).hexdigest()


class _Copy:
    """A walk with a bound on depth and on the number of values."""

    def __init__(self) -> None:
        self.left = MAX_VALUES

    def value(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if type(value) in _SCALARS:
            return value
        if isinstance(value, Mapping):
            return self._mapping(value, depth) if depth < MAX_DEPTH else "[nested too deeply]"
        if isinstance(value, list | tuple):
            return self._items(value, depth) if depth < MAX_DEPTH else "[nested too deeply]"
        return str.__str__(value) if isinstance(value, str) else f"<{type(value).__name__}>"

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for key, item in value.items():
            if self.left <= 0:
                copied["[more]"] = len(value) - len(copied)
                break
            copied[key if type(key) is str else f"<{type(key).__name__}>"] = self.value(item, depth + 1)
        return copied

    def _items(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        copied: list[Any] = []
        for item in value:
            if self.left <= 0:
                copied.append(f"[{len(value) - len(copied)} more]")
                break
            copied.append(self.value(item, depth + 1))
        return copied
