"""How is a TOML file changed without touching the rest of it? Whole tables are cut out of the text or put into it.

What comes out is parsed again and must say exactly what was meant; a file that is written in ways we cannot cut, such
as one long inline table, is left alone.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolreeve.core.errors import ConfigError

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEY = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_PART = re.compile(_KEY)
_HEADER = re.compile(rf"^[ \t]*\[[ \t]*({_KEY}(?:[ \t]*\.[ \t]*{_KEY})*)[ \t]*\][ \t]*(?:#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(r'"""|\'\'\'|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[\]{}]')


def with_tables(text: str, section: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text with these tables added at its end. Raises ConfigError where that cannot be done."""
    end = _line_end(text)
    before = text if not text or text.endswith("\n") else text + end
    blocks = [_block((section, name), table, end) for name, table in tables.items()]
    changed = before + (end if before else "") + end.join(blocks)
    wanted = _loaded(text)
    wanted[section] = {**wanted.get(section, {}), **tables}
    return _verified(changed, wanted)


def without_tables(text: str, section: str, gone: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    """The text with these tables of a section cut out and, if there is an `entry`, with `toolreeve` where they were."""
    end = _line_end(text)
    lines = _LINE.findall(text)
    cut = {number for first, last in _tables(lines, section, gone) for number in range(first, last)}
    place = min(cut, default=len(lines))
    kept = ["" if number in cut else line for number, line in enumerate(lines)]
    own = "" if entry is None else _block((section, "toolreeve"), entry, end)
    if own and place == len(lines) and lines:
        own = (end if lines[-1].endswith("\n") else end + end) + own
    wanted = _loaded(text)
    left = {name: table for name, table in wanted.get(section, {}).items() if name not in gone}
    wanted[section] = left if entry is None else {**left, "toolreeve": dict(entry)}
    return _verified("".join((*kept[:place], own, *kept[place:])), wanted)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _loaded(text: str) -> dict[str, Any]:
    return tomllib.loads(text.removeprefix("\ufeff"))


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


def _tables(lines: Sequence[str], section: str, gone: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of each table that goes, its tables below included. What stands behind its last key stays."""
    headers = [*_headers(lines), (len(lines), ())]
    for (start, path), (stop, _) in itertools.pairwise(headers):
        if len(path) > 1 and path[0] == section and path[1] in gone:
            while stop > start + 1 and _says_nothing(lines[stop - 1]):
                stop -= 1
            yield start, stop


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _headers(lines: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The lines that open a table: those that look like it, outside of texts and lists that span several lines."""
    quote, depth = "", 0
    for number, line in enumerate(lines):
        if not quote and not depth and (found := _HEADER.match(line.rstrip("\r\n"))):
            yield number, tuple(_key(part) for part in _PART.findall(found[1]))
            continue
        if not quote and not depth and line.lstrip().startswith("[["):
            yield number, ()
            continue
        quote, depth = _after(line, quote, depth)


def _after(line: str, quote: str, depth: int) -> tuple[str, int]:
    """Whether a line ends inside a text of several lines, and inside how many brackets."""
    at = 0
    while True:
        if quote:
            closing = line.find(quote, at)
            if closing < 0:
                return quote, depth
            at, quote = closing + len(quote), ""
        found = _TOKEN.search(line, at)
        if found is None or found[0].startswith("#"):
            return quote, depth
        at = found.end()
        if found[0] in ('"""', "'''"):
            quote = found[0]
        else:
            depth += (found[0] in "[{") - (found[0] in "]}")


def _key(part: str) -> str:
    if part.startswith('"'):
        return str(json.loads(part))
    return part.strip("'")


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
    return json.dumps(value)
