"""Strict reader of operators' YAML files: unknown keys are errors.

Every problem is collected with its line, so that all of them are reported at once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from toolreeve.core.documents import Document, KeyPath
from toolreeve.core.errors import ConfigError
from toolreeve.core.suggest import hint_similar


class StrictReader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[ConfigError] = []

    def check_keys(self, value: Mapping[str, Any], known: Sequence[str], at: KeyPath) -> None:
        for key in value:
            if key not in known:
                self.complain(f"unknown {key!r}{hint_similar(key, known)}", (*at, key), f"known: {', '.join(known)}")

    def text(self, value: Mapping[str, Any], key: str, at: KeyPath, *, required: bool = False) -> str:
        found = value.get(key)
        if found is None and not required:
            return ""
        if not isinstance(found, str) or (required and not found):
            self.complain("must be a text", (*at, key))
            return ""
        return found

    def texts(self, value: Mapping[str, Any], key: str, at: KeyPath, *, required: bool = False) -> tuple[str, ...]:
        found = value.get(key)
        if found is None and not required:
            return ()
        if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found) or not found:
            self.complain("must be a list of texts", (*at, key), f"write `{key}: [VALUE]`")
            return ()
        return tuple(found)

    def complain(self, problem: str, at: KeyPath, fix: str = "") -> None:
        self.problems.append(self.document.error(problem, path=at, fix=fix))

    def table(self, value: Any, known: Sequence[str], at: KeyPath) -> Mapping[str, Any]:
        """The table at `at`, empty if there is none."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.complain("must be a table", at, f"known keys: {', '.join(known)}")
            return {}
        self.check_keys(value, known, at)
        return value

    def flag(self, value: Mapping[str, Any], key: str, at: KeyPath, *, default: bool) -> bool:
        found = value.get(key, default)
        if not isinstance(found, bool):
            self.complain("must be true or false", (*at, key))
            return default
        return found

    def count(self, value: Mapping[str, Any], key: str, at: KeyPath, *, default: int, least: int) -> int:
        found = value.get(key, default)
        if not isinstance(found, int) or isinstance(found, bool) or found < least:
            self.complain(f"must be a whole number of at least {least}", (*at, key))
            return default
        return found
