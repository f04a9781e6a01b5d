"""Parser for the code blocks of a page and their markers.

A marker is an HTML comment on the line before a block, invisible to readers: `<!-- file: NAME -->` means that the block
is that file, `<!-- fresh -->` that a Python block starts with nothing defined.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<language>[^\s`]*)[^`]*$")
_FILE = re.compile(r"^\s*<!-- file: (\S+) -->\s*$")
_FRESH = re.compile(r"^\s*<!-- fresh -->\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`line` is the line of its first code. `file` is the name it is written under, if any."""

    language: str
    text: str
    line: int
    file: str | None
    fresh: bool


def read_blocks(page: Path) -> list[Block]:
    return list(_blocks(page.read_text().splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        end = _closing(lines, number, opening)
        yield _block(lines, number, end, opening)
        number = end + 1


def _closing(lines: list[str], start: int, opening: re.Match[str]) -> int:
    for number in range(start, len(lines)):
        if lines[number].strip() == opening["fence"]:
            return number
    raise ValueError(f"line {start}: the code block is never closed")


def _block(lines: list[str], start: int, end: int, opening: re.Match[str]) -> Block:
    before = lines[start - 2] if start >= 2 else ""
    marker = _FILE.match(before)
    return Block(
        language=opening["language"],
        text="\n".join(line.removeprefix(opening["indent"]) for line in lines[start:end]) + "\n",
        line=start + 1,
        file=marker[1] if marker else None,
        fresh=_FRESH.match(before) is not None,
    )
