"""Edits the entries of a YAML section, line by line.

A text is returned only if it says exactly what is intended; everything else stays as it is, byte for byte.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from toolreeve.config.jsonc import BOM
from toolreeve.core.documents import parse_yaml
from toolreeve.core.errors import ConfigError


class _Section(NamedTuple):
    """The lines of a file; `entries` are the first line of each entry and the first one after it."""

    lines: list[str]
    indent: str
    entries: dict[str, tuple[int, int]]

    def text_of(self, key: str) -> list[str]:
        start, end = self.entries[key]
        return self.lines[start:end]


def without_entries(
    text: str, section: str, removed: Sequence[str], entry: tuple[str, Mapping[str, Any]] | None
) -> str:
    """The text without some entries of a section, and with a new one. Raises ConfigError."""
    found = _find(text, section)
    new = [] if entry is None else _written(entry, found.indent)
    expected = {key: value for key, value in _entries(text, section).items() if key not in removed}
    return _replace(text, section, found, removed, new, expected | ({} if entry is None else {entry[0]: entry[1]}))


def with_entries_back(now: str, before: str, section: str, back: Sequence[str], *, gone: str | None) -> str:
    """The text with entries as they were before, and without the one that is `gone`. Raises ConfigError."""
    former = _find(before, section)
    found = _find(now, section)
    if former.indent != found.indent:
        raise _unsafe()
    expected = {key: value for key, value in _entries(now, section).items() if key != gone}
    expected |= {key: value for key, value in _entries(before, section).items() if key in back}
    new = [line for key in back for line in former.text_of(key)]
    return _replace(now, section, found, [gone] if gone in found.entries else [], new, expected)


def _replace(
    text: str, section: str, found: _Section, removed: Sequence[str | None], new: list[str], entries: Mapping[str, Any]
) -> str:
    dropped = {line for key in removed if key is not None for line in range(*found.entries[key])}
    end = max(end for _, end in found.entries.values())
    lines = [line for number, line in enumerate(found.lines) if number < end and number not in dropped]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    changed = "".join([*lines, *new, *found.lines[end:]])
    if _value(changed) != {**_value(text), section: entries}:
        raise _unsafe()
    return changed


def _find(text: str, section: str) -> _Section:
    """Raises ConfigError for a section that is not written with an entry on each line."""
    import yaml

    lines = text.splitlines(keepends=True)
    root = yaml.compose(text.removeprefix(BOM), Loader=yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    node = next((value for key, value in pairs if key.value == section), None)
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        raise _unsafe()
    column = node.value[0][0].start_mark.column
    entries = {}
    for key, _ in node.value:
        start = key.start_mark.line
        entries[key.value] = start, _end(lines, start, column)
    return _Section(lines, " " * column, entries)


def _end(lines: Sequence[str], start: int, column: int) -> int:
    """The first line after an entry; blank lines and comments behind it belong to what follows."""
    end = start + 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        stripped = line.strip()
        if len(line) - len(line.lstrip(" ")) <= column and stripped and not stripped.startswith("#"):
            break
        if stripped and not stripped.startswith("#"):
            end = number + 1
    return end


def _written(entry: tuple[str, Mapping[str, Any]], indent: str) -> list[str]:
    key, fields = entry
    inner = [f"{indent}  {name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items()]
    return [f"{indent}{key}:\n", *inner]


def _value(text: str) -> Mapping[str, Any]:
    value = parse_yaml(text.removeprefix(BOM), "").value
    return value if isinstance(value, Mapping) else {}


def _entries(text: str, section: str) -> Mapping[str, Any]:
    found = _value(text).get(section)
    return found if isinstance(found, Mapping) else {}


def _unsafe() -> ConfigError:
    return ConfigError("is written in a way that cannot be changed safely", source="")
