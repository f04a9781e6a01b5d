"""Edits TOML in place: adds and removes whole tables.

The result is parsed again and must say exactly what is intended; a file that cannot be edited this way, such as one
long inline table, is left unchanged. No comment is dropped: those of a removed table are returned, or stay.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from typing import Any

from toolreeve.adopt.toml_statements import Statement, owners, statements
from toolreeve.config.jsonc import BOM
from toolreeve.core.errors import ConfigError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
Comments = Mapping[str, Sequence[Sequence[str]]]
"""By the name of a table, its comments of one or more lines each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """A text with added blocks; each block consists of whole lines."""

    text: str
    blocks: tuple[str, ...]


def with_tables(
    text: str, section: str, tables: Mapping[str, Mapping[str, Any]], comments: Comments | None = None
) -> Extended:
    """The text with these tables added at its end, and comments by the name of their table: a new or an existing one.
    Raises ConfigError if that is not possible."""
    end = _line_end(text)
    missing = _missing_lines(text, comments or {})
    existing = {name: lines for name, lines in missing.items() if name not in tables}
    changed, notes = _with_comments(text, section, existing)
    blocks = [
        _lines(missing.get(name, ()), end) + _block((section, name), table, end) for name, table in tables.items()
    ]
    expected = _load(text)
    if tables:
        changed = _whole_lines(changed, end)
        changed += (end if changed else "") + end.join(blocks)
        expected[section] = {**expected.get(section, {}), **tables}
    return Extended(text=_verify(changed, expected), blocks=(*notes, *blocks))


def without_blocks(text: str, section: str, blocks: Sequence[str]) -> tuple[str, list[str]]:
    """The text without the added blocks, and the names of the tables that stay because they were changed since."""
    kept: list[str] = []
    expected = _load(text)
    for block in blocks:
        names = list(_load(block).get(section, {}))
        at = _find_lines(text, block)
        if at is None or (names and _continues(text[at + len(block) :])):
            kept += [name for name in names if name in expected.get(section, {})]
            continue
        text = _without_lines(text, at, at + len(block))
        for name in names:
            expected[section].pop(name, None)
    return _verify(text, expected), kept


def without_tables(
    text: str, section: str, gone: Sequence[str], entry: Mapping[str, Any] | None
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The text without these tables of a section and, if there is an `entry`, with `toolreeve` in their place; and by
    name their comments."""
    found = list(statements(text))
    owned = owners(found, section, gone)
    own = "" if entry is None else _block((section, "toolreeve"), entry, _line_end(text))
    changed = _assemble(text, found, [owner is None for owner in owned], own)
    comments = {name: _comments_of(found, owned, name) for name in gone}
    expected = _load(text)
    tables = {name: table for name, table in expected.get(section, {}).items() if name not in gone}
    if entry is not None:
        tables["toolreeve"] = dict(entry)
    return _verify(changed, {**expected, section: tables}), comments


def with_tables_back(text: str, original: str, section: str, back: Sequence[str], *, gone: str | None) -> str:
    """The text with these tables of the original in place of a removed one, whose comments stay."""
    end = _line_end(text)
    found = list(statements(text))
    names = [] if gone is None else [gone]
    kept = [not (owner and each.has_content) for owner, each in zip(owners(found, section, names), found, strict=True)]
    inner = [comment for each, stays in zip(found, kept, strict=True) if not stays for comment in each.comments]
    blocks = [block.replace("\r\n", "\n").replace("\n", end) for block in _as_written(original, section, back)]
    changed = _assemble(text, found, kept, _lines(inner, end) + end.join(blocks))
    former = _load(original).get(section, {})
    expected = _load(text)
    tables = {name: table for name, table in expected.get(section, {}).items() if name != gone}
    tables |= {name: former[name] for name in back}
    return _verify(changed, {**expected, section: tables})


def _as_written(original: str, section: str, names: Sequence[str]) -> list[str]:
    """Tables as written in a text; one that is not written as a table is formatted anew, below its comments."""
    found = list(statements(original))
    owned = owners(found, section, names)
    blocks = []
    for name in names:
        mine = [each for each, owner in zip(found, owned, strict=True) if owner == name]
        if next((each.kind for each in mine if each.has_content), "pair") == "table":
            blocks.append(_whole_lines("".join(each.text for each in mine), "\n"))
            continue
        table = _load(original)[section][name]
        blocks.append(_lines(_comments_of(found, owned, name), "\n") + _block((section, name), table, "\n"))
    return blocks


def _comments_of(found: Sequence[Statement], owned: Sequence[str | None], name: str) -> tuple[str, ...]:
    return tuple(text for each, owner in zip(found, owned, strict=True) if owner == name for text in each.comments)


def _assemble(text: str, found: Sequence[Statement], kept: Sequence[bool], new: str) -> str:
    """The kept statements, with new lines in place of the first removed one if tables are possible there, else at the
    end."""
    end = _line_end(text)
    place = kept.index(False) if new and False in kept else len(found)
    following = (each for each, stays in zip(found[place:], kept[place:], strict=True) if stays and each.has_content)
    if (first := next(following, None)) is not None and first.kind != "table":
        place = len(found)
    pieces = [text[: len(text) - len(text.removeprefix(BOM))]]
    for index, each in enumerate(found):
        if index == place:
            pieces.append(new)
        if kept[index] and not _doubles_gap(found, kept, index, place):
            pieces.append(each.text)
    if place < len(found) or not new:
        return "".join(pieces)
    before = "".join(pieces)
    return _whole_lines(before, end) + (end if before.strip(BOM) else "") + new


def _doubles_gap(found: Sequence[Statement], kept: Sequence[bool], index: int, place: int) -> bool:
    """Whether a blank line follows another, or nothing, only because a statement between them was removed."""
    if found[index].kind != "blank" or index == 0 or kept[index - 1]:
        return False
    before = next((each for each in range(index - 1, -1, -1) if kept[each]), None)
    new_between = place <= index and (before is None or before < place)
    return not new_between and (before is None or found[before].kind == "blank")


def _with_comments(text: str, section: str, comments: Mapping[str, Sequence[str]]) -> tuple[str, list[str]]:
    """The text with comments above existing tables; at its end for one that is not written as a table."""
    notes = []
    end = _line_end(text)
    for name, lines in comments.items():
        if not lines:
            continue
        note = _lines(lines, end)
        found = list(statements(text))
        index = next((i for i, each in enumerate(found) if each.kind == "table" and each.path == (section, name)), None)
        text = _whole_lines(text, end) if index is None else text
        at = len(text) if index is None else len(text) - sum(len(each.text) for each in found[index:])
        text = text[:at] + note + text[at:]
        notes.append(note)
    return text, notes


def _missing_lines(text: str, comments: Comments) -> dict[str, list[str]]:
    """The lines of the comments that the text does not contain yet, each comment once."""
    present = f"\n{text}\n".replace("\r\n", "\n")
    missing: dict[str, list[str]] = {}
    for name, texts in comments.items():
        missing[name] = []
        for lines in dict.fromkeys(map(tuple, texts)):
            if "\n" + "\n".join(lines) + "\n" not in present:
                missing[name] += lines
    return missing


def _find_lines(text: str, block: str) -> int | None:
    if text.startswith(block):
        return 0
    at = text.find("\n" + block)
    return None if at < 0 else at + 1


def _continues(text: str) -> bool:
    """Whether the text continues the table before it."""
    first = next((each for each in statements(text) if each.has_content), None)
    return first is not None and first.kind == "pair"


def _without_lines(text: str, start: int, end: int) -> str:
    """The text without these lines, and with one blank line where they had one on either side."""
    gap = _line_end(text)
    before = text[:start]
    behind = text[end:]
    if behind.startswith(gap) and (not before or before.endswith("\n" + gap)):
        return before + behind.removeprefix(gap)
    return before.removesuffix(gap) if not behind and before.endswith("\n" + gap) else before + behind


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _whole_lines(text: str, end: str) -> str:
    return text if not text.removeprefix(BOM) or text.endswith("\n") else text + end


def _load(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix(BOM))


def _verify(changed: str, expected: Mapping[str, Any]) -> str:
    try:
        is_expected = _without_empty(_load(changed)) == _without_empty(expected)
    except tomllib.TOMLDecodeError:
        is_expected = False
    if not is_expected:
        raise ConfigError("is written in a way that cannot be changed safely", source="", fix="write servers as tables")
    return changed


def _without_empty(value: Any) -> Any:
    """An empty section means the same as a missing one."""
    return {key: inner for key, inner in value.items() if inner != {}}


def _lines(comments: Sequence[str], end: str) -> str:
    return "".join(f"{comment}{end}" for comment in comments)


def _block(path: Sequence[str], table: Mapping[str, Any], end: str) -> str:
    head = ".".join(map(_format_key, path))
    return f"[{head}]{end}" + "".join(f"{_format_key(key)} = {_format(value)}{end}" for key, value in table.items())


def _format_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _format(key)


def _format(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_format_key(key)} = {_format(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_format, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (date, time)):
        return value.isoformat()
    return json.dumps(value)
