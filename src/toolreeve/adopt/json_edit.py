"""How is a client's JSON file changed without touching the rest of it? Parts of its objects are swapped for others.

What is not such a part stays as it is, byte for byte: other parts, comments, order, indentation, line ends, and whether
the last part has a comma. No comment is dropped: those of a part that goes are handed back, or stay where they were.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolreeve.adopt.json_layout import Fresh, Layout, Written, ends_with_line_comment, line_end
from toolreeve.adopt.json_parts import ObjectPart, Span, comments, parts
from toolreeve.config.jsonc import BOM, Node, Object, parse_jsonc
from toolreeve.core.errors import ConfigError

KeyPath = tuple[str, ...]
_BLANKS = " \t"
_BLANK_LINE = re.compile(r"[ \t]*\r?\n")
_BLANK_LINE_BEFORE = re.compile(r"(?<=\n)[ \t]*\r?\n\Z")
_LONGEST_GAP = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """In one object these keys go and others come, in place of the first that goes, else before all. The comments of
    what goes go with it, unless they stay."""

    section: KeyPath
    out: tuple[str, ...] = ()
    new: tuple[Fresh | Written, ...] = ()
    comments_stay: bool = False


Comments = dict[tuple[KeyPath, str], tuple[str, ...]]


def swapped(text: str, swaps: Sequence[Swap]) -> tuple[str, Comments]:
    """The text with all of it done, and the comments that went by section and key. Raises ConfigError where a section
    is something else than an object."""
    root = parse_jsonc(text, "")
    for swap in swaps:
        if swap.new and find_object(root, swap.section) is None:
            text = _with_section(text, swap.section)
            root = parse_jsonc(text, "")
    splices: list[_Splice] = []
    told: Comments = {}
    for swap in swaps:
        around = find_object(root, swap.section)
        if around is not None:
            doing = _Swapping(text, root, around, swap)
            splices += doing.splices()
            told |= {(swap.section, key): said for key, said in doing.comments()}
    return _spliced(text, splices), told


def written_parts(text: str, root: Node | None, section: KeyPath, keys: Sequence[str]) -> list[Written]:
    """Parts as they are written in a file, to be put into another version of it."""
    found = find_object(root, section)
    chosen = [part for part in parts(text, found) if part.member.key in keys] if found is not None else []
    return [
        Written(key=part.member.key, body=text[part.lead : part.member.node.end], tail=_texts(text, part.tail))
        for part in chosen
    ]


def find_object(node: Node | None, path: KeyPath) -> Object | None:
    for key in path:
        member = node.get(key) if isinstance(node, Object) else None
        node = member.node if member is not None else None
    return node if isinstance(node, Object) else None


def _with_section(text: str, section: KeyPath) -> str:
    """The text with an object at this path, an empty one where there was none."""
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
        raise ConfigError("has something else where its servers should be", source="")
    new = Written(key=section[depth], body=f"{json.dumps(section[depth], ensure_ascii=False)}: {{}}")
    doing = _Swapping(text, root, around, Swap(section=section[:depth], new=(new,)))
    return _with_section(_spliced(text, list(doing.splices())), section)


class _Splice(NamedTuple):
    start: int
    end: int
    new: str


def _spliced(text: str, splices: Sequence[_Splice]) -> str:
    pieces = []
    at = 0
    for splice in sorted(splices):
        pieces += [text[at : splice.start], splice.new]
        at = splice.end
    return "".join((*pieces, text[at:]))


def _texts(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    return tuple(text[span.start : span.end] for span in spans)


class _Swapping:
    """One swap, seen in the text it is done in."""

    def __init__(self, text: str, root: Node | None, around: Object, swap: Swap) -> None:
        self._text, self._around, self._swap = text, around, swap
        found = parts(text, around)
        self._kept = [part for part in found if part.member.key not in swap.out]
        self._out = [part for part in found if part.member.key in swap.out]
        self._last = found[-1] if found else None
        self._host = self._out[0] if self._out and swap.new else None
        place = self._host or next(iter(self._out or found), None)
        self._layout = Layout(text, root, around, place)

    def comments(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """By key those above a part that goes, inside it and behind it."""
        for part in [] if self._swap.comments_stay else self._out:
            inner = comments(self._text, part.lead, part.member.node.end)
            yield part.member.key, _texts(self._text, (*inner, *part.tail))

    def splices(self) -> Iterator[_Splice]:
        if self._empties:
            yield _Splice(self._around.start + 1, self._around.end - 1, "")
            return
        if self._host is not None:
            yield from self._in_place(self._host)
        elif self._swap.new:
            yield self._before_all()
        else:
            yield from (self._replaced_by_its_comments(part) for part in self._out if self._inner(part))
        for cut in _merged(self._text, list(self._cuts())):
            yield _Splice(*_tidy(self._text, cut), "")

    @property
    def _empties(self) -> bool:
        """Whether nothing at all would be left between the brackets."""
        if self._kept or self._swap.new or not self._out:
            return False
        inside = comments(self._text, self._around.start, self._around.end)
        going = () if self._swap.comments_stay else [said for _, part in self.comments() for said in part]
        return len(inside) == len(going)

    def _begin(self, part: ObjectPart) -> int:
        return part.member.start if self._swap.comments_stay else part.lead

    def _inner(self, part: ObjectPart) -> tuple[str, ...]:
        """The comments inside a part whose comments stay."""
        spans = comments(self._text, part.member.start, part.member.node.end) if self._swap.comments_stay else ()
        return _texts(self._text, spans)

    def _replaced_by_its_comments(self, part: ObjectPart) -> _Splice:
        behind = part.member.node.end if part.comma is None else part.comma + 1
        new = self._layout.lines(self._inner(part))
        ends_line = _BLANK_LINE.match(self._text, behind) is not None
        return _Splice(part.member.start, part.member.node.end, new.rstrip() if ends_line else new)

    def _in_place(self, host: ObjectPart) -> Iterator[_Splice]:
        """The new parts where one that goes stands, whose comma parts them from the next as it did."""
        *others, last = map(self._layout.written, self._swap.new)
        new = "".join(self._layout.part(each, comma=True) + self._layout.behind(each) for each in others)
        new = self._layout.lines(self._inner(host)) + new + self._layout.body(last)
        behind = host.comma + 1 if host.comma is not None and self._keeps_comma(host) else host.member.node.end
        swallows = ends_with_line_comment(last.tail) and not _BLANK_LINE.match(self._text, behind)
        tail = self._layout.tail(last) + self._layout.new_line * swallows
        between = self._text[host.member.node.end : behind]
        yield _Splice(self._begin(host), host.member.node.end, new + ("" if between else tail))
        if between and tail:
            yield _Splice(behind, behind, tail)

    def _before_all(self) -> _Splice:
        new = list(map(self._layout.written, self._swap.new))
        if not self._kept:
            return self._into_empty(new)
        text = "".join(self._layout.part(each, comma=True) + self._layout.behind(each) for each in new)
        return _Splice(self._kept[0].lead, self._kept[0].lead, text)

    def _into_empty(self, written: Sequence[Written]) -> _Splice:
        """Behind the comments that an object without parts may hold."""
        *others, last = written
        new = "".join(self._layout.part(each, comma=True) + self._layout.behind(each) for each in others)
        new += self._layout.part(last, comma=False)
        end = self._around.end - 1
        inside = comments(self._text, self._around.start + 1, end)
        start = inside[-1].end if inside else self._around.start + 1
        after_line = bool(inside) and self._text.startswith("//", inside[-1].start)
        gap = self._layout.new_line if after_line or not self._layout.flat else " " if inside else ""
        rest = self._text[start:end]
        return _Splice(start, end, gap + new + (rest if inside and "\n" in rest else self._layout.closing(last)))

    def _cuts(self) -> Iterator[Span]:
        for part in self._out:
            if part is not self._host and not self._inner(part):
                yield Span(self._begin(part), part.member.node.end)
            if not self._swap.comments_stay:
                yield from part.tail
            if part.comma is not None and not (part is self._host and self._keeps_comma(part)):
                yield Span(part.comma, part.comma + 1)
        for part in self._kept[-1:]:
            if part.comma is not None and not self._keeps_comma(part):
                yield Span(part.comma, part.comma + 1)

    def _keeps_comma(self, part: ObjectPart) -> bool:
        """Whether something follows a part that stays, or the last one had a comma before, too."""
        stays = [*self._kept, *([self._host] if self._host is not None else [])]
        follows = any(other.member.start > part.member.start for other in stays)
        return follows or (self._last is not None and self._last.comma is not None)


def _merged(text: str, cuts: Sequence[Span]) -> Iterator[Span]:
    """The cuts in order, as one where nothing but blanks is between them."""
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
    """The cut with the blanks that it would leave: whole lines, else those on one side of it."""
    start, end = cut
    while start and text[start - 1] in _BLANKS:
        start -= 1
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    begins_line, ends_line = text.endswith("\n", 0, start), _BLANK_LINE.match(text, end)
    if begins_line and ends_line:
        return _without_double_gap(text, Span(start, ends_line.end()))
    if ends_line:
        return Span(start, end)
    return Span(cut.start, cut.end if text[end : end + 1] == "}" else end)


def _without_double_gap(text: str, cut: Span) -> Span:
    """Of two gaps around the lines that go, one is left, and none before a bracket."""
    before = text[max(0, cut.start - _LONGEST_GAP) : cut.start]
    above, below = _BLANK_LINE_BEFORE.search(before), _BLANK_LINE.match(text, cut.end)
    if below and (above or before.rstrip().endswith("{")):
        return Span(cut.start, below.end())
    if above and text[cut.end : cut.end + _LONGEST_GAP].lstrip(_BLANKS).startswith("}"):
        return Span(cut.start - len(above[0]), cut.end)
    return cut
