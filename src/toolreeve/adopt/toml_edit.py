"""How is a TOML file changed without touching the rest of it? Whole statements are cut out of the text or put into it.

What comes out is parsed again and must say exactly what was meant; a file that is written in ways we cannot cut, such
as one long inline table, is left alone. No comment is dropped: those of a table that goes are handed back, or stay.
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
"""By the name of a table, what is said about it: remarks of one or more lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """A text that something was put into, and what; each of it stands on lines of its own."""

    text: str
    blocks: tuple[str, ...]


def with_tables(
    text: str, section: str, tables: Mapping[str, Mapping[str, Any]], comments: Comments | None = None
) -> Extended:
    """The text with these tables added at its end, and comments by the name of the table that they are about: one of
    these, or one that is there. Raises ConfigError where that cannot be done."""
    end = _line_end(text)
    told = _untold(text, comments or {})
    text_then, notes = _with_notes(text, section, {name: lines for name, lines in told.items() if name not in tables})
    blocks = [_lines(told.get(name, ()), end) + _block((section, name), table, end) for name, table in tables.items()]
    before = _whole_lines(text_then, end) if blocks else text_then
    changed = before + (end if before and blocks else "") + end.join(blocks)
    wanted = _loaded(text)
    if tables:
        wanted[section] = {**wanted.get(section, {}), **tables}
    return Extended(text=_verified(changed, wanted), blocks=(*notes, *blocks))


def without_blocks(text: str, section: str, blocks: Sequence[str]) -> tuple[str, list[str]]:
    """The text without what was put into it, and the names of the tables that stay: they are not as they were put."""
    stay: list[str] = []
    wanted = _loaded(text)
    for block in blocks:
        names = list(_loaded(block).get(section, {}))
        at = _find_lines(text, block)
        if at is None or (names and _goes_on(text[at + len(block) :])):
            stay += [name for name in names if name in wanted.get(section, {})]
            continue
        text = _without_lines(text, at, at + len(block))
        for name in names:
            wanted[section].pop(name, None)
    return _verified(text, wanted), stay


def without_tables(
    text: str, section: str, gone: Sequence[str], entry: Mapping[str, Any] | None
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The text with these tables of a section cut out and, if there is an `entry`, with `toolreeve` where they were;
    and by name the comments that belonged to them."""
    found = list(statements(text))
    owned = owners(found, section, gone)
    own = "" if entry is None else _block((section, "toolreeve"), entry, _line_end(text))
    changed = _assembled(text, found, [owner is None for owner in owned], own)
    told = {name: _told(found, owned, name) for name in gone}
    left = {name: table for name, table in _loaded(text).get(section, {}).items() if name not in gone}
    wanted = {**_loaded(text), section: left if entry is None else {**left, "toolreeve": dict(entry)}}
    return _verified(changed, wanted), told


def with_tables_back(text: str, original: str, section: str, back: Sequence[str], *, gone: str | None) -> str:
    """The text with these tables as the original has them in place of one that goes, whose comments stay."""
    end = _line_end(text)
    found = list(statements(text))
    names = [] if gone is None else [gone]
    kept = [
        not (owner and each.says_something) for owner, each in zip(owners(found, section, names), found, strict=True)
    ]
    inner = [comment for each, stays in zip(found, kept, strict=True) if not stays for comment in each.comments]
    blocks = [block.replace("\r\n", "\n").replace("\n", end) for block in _as_written(original, section, back)]
    changed = _assembled(text, found, kept, _lines(inner, end) + end.join(blocks))
    before, now = _loaded(original).get(section, {}), _loaded(text)
    left = {name: table for name, table in now.get(section, {}).items() if name != gone}
    return _verified(changed, {**now, section: {**left, **{name: before[name] for name in back}}})


def _as_written(original: str, section: str, names: Sequence[str]) -> list[str]:
    """Tables as they stand in a text; one that is not written as a table is written anew, below its comments."""
    found = list(statements(original))
    owned = owners(found, section, names)
    blocks = []
    for name in names:
        mine = [each for each, owner in zip(found, owned, strict=True) if owner == name]
        if next((each.kind for each in mine if each.says_something), "pair") == "table":
            blocks.append(_whole_lines("".join(each.text for each in mine), "\n"))
            continue
        table = _loaded(original)[section][name]
        blocks.append(_lines(_told(found, owned, name), "\n") + _block((section, name), table, "\n"))
    return blocks


def _told(found: Sequence[Statement], owned: Sequence[str | None], name: str) -> tuple[str, ...]:
    return tuple(text for each, owner in zip(found, owned, strict=True) if owner == name for text in each.comments)


def _assembled(text: str, found: Sequence[Statement], kept: Sequence[bool], new: str) -> str:
    """The statements that are kept, with new lines where the first was cut out, if tables can stand there, or at the
    end."""
    end = _line_end(text)
    place = kept.index(False) if new and False in kept else len(found)
    following = (each for each, stays in zip(found[place:], kept[place:], strict=True) if stays and each.says_something)
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
    """Whether a blank line follows another, or nothing, only because what was between them is gone."""
    if found[index].kind != "blank" or index == 0 or kept[index - 1]:
        return False
    before = next((each for each in range(index - 1, -1, -1) if kept[each]), None)
    new_between = place <= index and (before is None or before < place)
    return not new_between and (before is None or found[before].kind == "blank")


def _with_notes(text: str, section: str, comments: Mapping[str, Sequence[str]]) -> tuple[str, list[str]]:
    """The text with comments above tables that are there; at its end where one is not written as a table."""
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


def _untold(text: str, comments: Comments) -> dict[str, list[str]]:
    """The lines of the remarks that the text does not have already, each remark once."""
    there = f"\n{text}\n".replace("\r\n", "\n")
    return {
        name: [line for lines in dict.fromkeys(map(tuple, told)) if not _stands(lines, there) for line in lines]
        for name, told in comments.items()
    }


def _stands(lines: Sequence[str], text: str) -> bool:
    return "\n" + "\n".join(lines) + "\n" in text


def _find_lines(text: str, block: str) -> int | None:
    if text.startswith(block):
        return 0
    at = text.find("\n" + block)
    return None if at < 0 else at + 1


def _goes_on(text: str) -> bool:
    """Whether what follows a table says more of it."""
    first = next((each for each in statements(text) if each.says_something), None)
    return first is not None and first.kind == "pair"


def _without_lines(text: str, start: int, end: int) -> str:
    """The text without these lines, and with one gap where they had one on either side."""
    gap = _line_end(text)
    before, behind = text[:start], text[end:]
    if behind.startswith(gap) and (not before or before.endswith("\n" + gap)):
        return before + behind.removeprefix(gap)
    return before.removesuffix(gap) if not behind and before.endswith("\n" + gap) else before + behind


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _whole_lines(text: str, end: str) -> str:
    return text if not text.removeprefix(BOM) or text.endswith("\n") else text + end


def _loaded(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix(BOM))


def _verified(changed: str, wanted: Mapping[str, Any]) -> str:
    try:
        fits = _settled(_loaded(changed)) == _settled(wanted)
    except tomllib.TOMLDecodeError:
        fits = False
    if not fits:
        raise ConfigError("is written in a way that cannot be changed safely", source="", fix="write servers as tables")
    return changed


def _settled(value: Any) -> Any:
    """A section that is empty and one that is missing say the same."""
    return {key: inner for key, inner in value.items() if inner != {}}


def _lines(comments: Sequence[str], end: str) -> str:
    return "".join(f"{comment}{end}" for comment in comments)


def _block(path: Sequence[str], table: Mapping[str, Any], end: str) -> str:
    head = ".".join(map(_written_key, path))
    return f"[{head}]{end}" + "".join(f"{_written_key(key)} = {_written(value)}{end}" for key, value in table.items())


def _written_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _written(key)


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_written_key(key)} = {_written(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (date, time)):
        return value.isoformat()
    return json.dumps(value)
