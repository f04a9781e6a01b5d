"""Edits JSON text in place: replaces members of objects, keeps the rest.

Everything else stays as it is, byte for byte: other members, comments, order, indentation, line ends, and whether the
last member has a comma. No comment is dropped: those of a removed member are returned, or stay where they were.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolreeve.adopt.json_parts import ObjectPart, Span, comments, parts
from toolreeve.adopt.json_style import JsonStyle, MemberText, NewMember, ends_with_line_comment, line_end
from toolreeve.config.jsonc import BOM, Node, Object, parse_jsonc
from toolreeve.core.errors import ConfigError

KeyPath = tuple[str, ...]
_BLANKS = " \t"
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")
_BLANK_LINE_BEFORE = re.compile(r"(?<=\n)[ \t]*\r?\n\Z")
_LONGEST_GAP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Removes keys of one object and inserts members in place of the first removed one, else before all others. The
    comments of a removed member go with it, unless `keep_comments`."""

    section: KeyPath
    removed: tuple[str, ...] = ()
    new: tuple[NewMember | MemberText, ...] = ()
    keep_comments: bool = False


Comments = dict[tuple[KeyPath, str], tuple[str, ...]]


def apply_swaps(text: str, swaps: Sequence[Swap]) -> tuple[str, Comments]:
    """The changed text, and the removed comments by section and key. Raises ConfigError if a section is not an
    object."""
    root = parse_jsonc(text, "")
    for swap in swaps:
        if swap.new and find_object(root, swap.section) is None:
            text = _with_section(text, swap.section)
            root = parse_jsonc(text, "")
    splices: list[_Splice] = []
    removed: Comments = {}
    for swap in swaps:
        around = find_object(root, swap.section)
        if around is not None:
            edit = _ObjectEdit(text, root, around, swap)
            splices += edit.splices()
            removed |= {(swap.section, key): comments for key, comments in edit.removed_comments()}
    return _apply(text, splices), removed


def member_texts(text: str, root: Node | None, section: KeyPath, keys: Sequence[str]) -> list[MemberText]:
    """Members as written in a file, to be inserted into another version of it."""
    found = find_object(root, section)
    if found is None:
        return []
    return [
        MemberText(key=part.member.key, body=text[part.lead : part.member.node.end], tail=_texts(text, part.tail))
        for part in parts(text, found)
        if part.member.key in keys
    ]


def find_object(node: Node | None, path: KeyPath) -> Object | None:
    for key in path:
        member = node.get(key) if isinstance(node, Object) else None
        node = member.node if member is not None else None
    return node if isinstance(node, Object) else None


def _with_section(text: str, section: KeyPath) -> str:
    """The text with an object at this path, which is empty if it is new."""
    root = parse_jsonc(text, "")
    if root is None:
        end = line_end(text)
        gap = "" if text in ("", BOM) or text.endswith("\n") else end
        return _with_section(f"{text}{gap}{{{end}}}{end}", section)
    depth = next(count for count in range(len(section), -1, -1) if count == 0 or find_object(root, section[:count]))
    if depth == len(section):
        return text
    around = find_object(root, section[:depth])
    if around is None or around.get(section[depth]) is not None:
        raise ConfigError("has no object where its servers should be", source="")
    new = MemberText(key=section[depth], body=f"{json.dumps(section[depth], ensure_ascii=False)}: {{}}")
    edit = _ObjectEdit(text, root, around, Swap(section=section[:depth], new=(new,)))
    return _with_section(_apply(text, list(edit.splices())), section)


class _Splice(NamedTuple):
    start: int
    end: int
    new: str


def _apply(text: str, splices: Sequence[_Splice]) -> str:
    pieces = []
    at = 0
    for splice in sorted(splices):
        pieces += [text[at : splice.start], splice.new]
        at = splice.end
    return "".join((*pieces, text[at:]))


def _texts(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    return tuple(text[span.start : span.end] for span in spans)


class _ObjectEdit:
    """One swap in the text of its object."""

    def __init__(self, text: str, root: Node | None, around: Object, swap: Swap) -> None:
        self._text = text
        self._around = around
        self._swap = swap
        found = parts(text, around)
        self._kept = [part for part in found if part.member.key not in swap.removed]
        self._removed = [part for part in found if part.member.key in swap.removed]
        self._last = found[-1] if found else None
        self._replaced = self._removed[0] if self._removed and swap.new else None
        neighbor = self._replaced or next(iter(self._removed or found), None)
        self._style = JsonStyle(text, root, around, neighbor)

    def removed_comments(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """By key, the comments above a removed member, inside it and after it."""
        if self._swap.keep_comments:
            return
        for part in self._removed:
            inner = comments(self._text, part.lead, part.member.node.end)
            yield part.member.key, _texts(self._text, (*inner, *part.tail))

    def splices(self) -> Iterator[_Splice]:
        if self._empties:
            yield _Splice(self._around.start + 1, self._around.end - 1, "")
            return
        if self._replaced is not None:
            yield from self._replace(self._replaced)
        elif self._swap.new:
            yield self._insert_first()
        else:
            yield from (self._reduce_to_comments(part) for part in self._removed if self._inner(part))
        for cut in _merged(self._text, list(self._cuts())):
            yield _Splice(*_tidy(self._text, cut), "")

    @property
    def _empties(self) -> bool:
        """Whether nothing would be left between the brackets."""
        if self._kept or self._swap.new or not self._removed:
            return False
        inside = comments(self._text, self._around.start, self._around.end)
        removed = sum(len(texts) for _, texts in self.removed_comments())
        return len(inside) == removed

    def _begin(self, part: ObjectPart) -> int:
        return part.member.start if self._swap.keep_comments else part.lead

    def _inner(self, part: ObjectPart) -> tuple[str, ...]:
        """The comments inside a member, if they are kept."""
        if not self._swap.keep_comments:
            return ()
        return _texts(self._text, comments(self._text, part.member.start, part.member.node.end))

    def _reduce_to_comments(self, part: ObjectPart) -> _Splice:
        behind = part.member.node.end if part.comma is None else part.comma + 1
        new = self._style.lines(self._inner(part))
        ends_line = _BLANK_LINE.match(self._text, behind) is not None
        return _Splice(part.member.start, part.member.node.end, new.rstrip() if ends_line else new)

    def _replace(self, old: ObjectPart) -> Iterator[_Splice]:
        """The new members in place of a removed one, whose comma still separates them from the next."""
        *others, last = map(self._style.format, self._swap.new)
        new = "".join(self._style.member(each, comma=True) + self._style.separator(each) for each in others)
        new = self._style.lines(self._inner(old)) + new + self._style.body(last)
        end = old.member.node.end
        behind = end
        if old.comma is not None and self._keeps_comma(old):
            behind = old.comma + 1
        tail = self._style.tail(last)
        if ends_with_line_comment(last.tail) and not _BLANK_LINE.match(self._text, behind):
            tail += self._style.new_line
        if behind == end:
            yield _Splice(self._begin(old), end, new + tail)
            return
        yield _Splice(self._begin(old), end, new)
        if tail:
            yield _Splice(behind, behind, tail)

    def _insert_first(self) -> _Splice:
        new = list(map(self._style.format, self._swap.new))
        if not self._kept:
            return self._insert_into_empty(new)
        text = "".join(self._style.member(each, comma=True) + self._style.separator(each) for each in new)
        return _Splice(self._kept[0].lead, self._kept[0].lead, text)

    def _insert_into_empty(self, members: Sequence[MemberText]) -> _Splice:
        """After the comments that an object without members may hold."""
        *others, last = members
        new = "".join(self._style.member(each, comma=True) + self._style.separator(each) for each in others)
        new += self._style.member(last, comma=False)
        end = self._around.end - 1
        inside = comments(self._text, self._around.start + 1, end)
        if not inside:
            gap = "" if self._style.flat else self._style.new_line
            return _Splice(self._around.start + 1, end, gap + new + self._style.closing(last))
        start = inside[-1].end
        after_line_comment = self._text.startswith("//", inside[-1].start)
        gap = self._style.new_line if after_line_comment or not self._style.flat else " "
        rest = self._text[start:end]
        return _Splice(start, end, gap + new + (rest if "\n" in rest else self._style.closing(last)))

    def _cuts(self) -> Iterator[Span]:
        for part in self._removed:
            if part is not self._replaced and not self._inner(part):
                yield Span(self._begin(part), part.member.node.end)
            if not self._swap.keep_comments:
                yield from part.tail
            if part.comma is not None and not (part is self._replaced and self._keeps_comma(part)):
                yield Span(part.comma, part.comma + 1)
        for part in self._kept[-1:]:
            if part.comma is not None and not self._keeps_comma(part):
                yield Span(part.comma, part.comma + 1)

    def _keeps_comma(self, part: ObjectPart) -> bool:
        """Whether another member follows, or the last member had a comma before."""
        stays = list(self._kept)
        if self._replaced is not None:
            stays.append(self._replaced)
        follows = any(other.member.start > part.member.start for other in stays)
        return follows or (self._last is not None and self._last.comma is not None)


def _merged(text: str, cuts: Sequence[Span]) -> Iterator[Span]:
    """The cuts in order; those with only blanks between them are joined."""
    last: Span | None = None
    for cut in sorted(cuts):
        if last is not None and not text[last.end : cut.start].strip():
            last = Span(last.start, cut.end)
            continue
        if last is not None:
            yield last
        last = cut
    if last is not None:
        yield last


def _tidy(text: str, cut: Span) -> Span:
    """The cut including the blanks it would leave: whole lines, else those on one side."""
    start, end = cut
    while start and text[start - 1] in _BLANKS:
        start -= 1
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    begins_line = text.endswith("\n", 0, start)
    ends_line = _BLANK_LINE.match(text, end)
    if begins_line and ends_line:
        return _without_double_gap(text, Span(start, ends_line.end()))
    if ends_line:
        return Span(start, end)
    return Span(cut.start, cut.end if text[end : end + 1] == "}" else end)


def _without_double_gap(text: str, cut: Span) -> Span:
    """Of two blank lines around the cut, one stays, and none next to a bracket."""
    before = text[max(0, cut.start - _LONGEST_GAP) : cut.start]
    above = _BLANK_LINE_BEFORE.search(before)
    below = _BLANK_LINE.match(text, cut.end)
    if below and (above or before.rstrip().endswith("{")):
        return Span(cut.start, below.end())
    if above and text[cut.end : cut.end + _LONGEST_GAP].lstrip(_BLANKS).startswith("}"):
        return Span(cut.start - len(above[0]), cut.end)
    return cut
