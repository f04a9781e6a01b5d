"""Path table: absolute paths, and those below a directory.

The cost of finding depends on what is found, not on the size of the table.
"""

import os
from collections.abc import Collection, Iterator, MutableMapping
from typing import TypeVar

Value = TypeVar("Value")


class PathTable(MutableMapping[str, Value]):
    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._children: dict[str, set[str]] = {}

    def __getitem__(self, path: str) -> Value:
        return self._values[path]

    def __contains__(self, path: object) -> bool:
        return path in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setitem__(self, path: str, value: Value) -> None:
        if path not in self._values:
            self._enter(path)
        self._values[path] = value

    def __delitem__(self, path: str) -> None:
        del self._values[path]
        while path not in self._values and path not in self._children:
            directory = os.path.dirname(path)
            siblings = self._children.get(directory)
            if siblings is None:
                return
            siblings.discard(path)
            if siblings:
                return
            del self._children[directory]
            path = directory

    def _enter(self, path: str) -> None:
        while (directory := os.path.dirname(path)) != path:
            siblings = self._children.setdefault(directory, set())
            if path in siblings:
                return
            siblings.add(path)
            path = directory

    def below(self, top: str) -> list[str]:
        """A path and all below it that are in the table."""
        found: list[str] = []
        ahead = [top]
        while ahead:
            path = ahead.pop()
            if path in self._values:
                found.append(path)
            ahead.extend(self._children.get(path, ()))
        return found


def is_in(path: str, directories: Collection[str]) -> bool:
    """Whether an absolute path is one of these, or lies in one."""
    while path not in directories and len(path) > 1:
        path = os.path.dirname(path)
    return path in directories
