"""Quoting scanner: the quote context of every value in a bash script.

The script has a mark for each value and for each start and end of a section. A context that would evaluate a value
(arithmetic, backticks, `${…}`) is refused here; so is a section that could change how the text around it is read. Fails
closed: what is not understood is a TemplateProblem.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

from toolreeve.scripted.syntax import TemplateProblem

FIRST_VALUE = 0xF0000
FIRST_OPEN = 0xF8000
FIRST_CLOSE = 0xFA000
END_OF_MARKS = 0xFC000
MAX_VALUES = FIRST_OPEN - FIRST_VALUE
MAX_SECTIONS = FIRST_CLOSE - FIRST_OPEN
MARKS = re.compile(f"[{chr(FIRST_VALUE)}-{chr(END_OF_MARKS)}]")
_SECTION_MARKS = re.compile(f"[{chr(FIRST_OPEN)}-{chr(END_OF_MARKS)}]")
_HEREDOC = re.compile(r"""<<(-?)[ \t]*(?:'([\w.+-]+)'|"([\w.+-]+)"|(\\?)([\w.+-]+))(?=[\s;&|<>)]|$)""")
_PARAMETER = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
_ACTIVE = re.compile(r"([\\$`])")
_PLAIN_NEXT = re.compile(f"[{chr(FIRST_VALUE)}-{chr(END_OF_MARKS)}]*(?:[\\w.,:/%\"'\\s;&|)-]|\\Z)")
_BOUNDARY = " \t\n;&|<>"


class QuoteContext(StrEnum):
    BARE = "bare"
    DOUBLE = "double"
    SINGLE = "single"
    ANSI = "ansi"
    HEREDOC = "heredoc"
    COMMENT = "comment"
    BACKTICK = "backtick"
    ARITHMETIC = "arithmetic"
    BRACES = "braces"


REFUSED = {
    QuoteContext.BACKTICK: ("is inside backticks", "write $(…) instead"),
    QuoteContext.ARITHMETIC: ("is in arithmetic, which evaluates it", "assign it first: n={{…}}, and use $((n))"),
    QuoteContext.BRACES: ("is inside ${…}", "assign it to a variable first: x={{…}}"),
}


@dataclass(frozen=True, slots=True)
class QuotePlace:
    """The context of a value. `leads`: nothing certain precedes it in its word, so a `-` would begin an option."""

    context: QuoteContext
    leads: bool


@dataclass(slots=True)
class _Frame:
    """`started`: the word has begun. `solid`: it certainly has a character."""

    context: QuoteContext
    opened: int
    closer: str = ""
    depth: int = 0
    quoted: bool = False
    started: bool = False
    solid: bool = False


@dataclass(frozen=True, slots=True)
class _Heredoc:
    word: str
    strips_tabs: bool
    quoted: bool
    start: int
    end: int


@dataclass(slots=True)
class QuoteReading:
    """The places of all values, and the text rewritten so that values are expanded in place.

    `view` is the text for the grammar, which does not handle heredocs well: there each is a quoted text on the line of
    its operator.
    """

    text: str
    view: str
    places: dict[int, QuotePlace] = field(default_factory=dict)


def read_quoting(text: str) -> QuoteReading:
    """Raises TemplateProblem."""
    scanner = _Scanner(text)
    scanner.scan(_Frame(QuoteContext.BARE, 0), 0, len(text))
    return QuoteReading(_edited(text, scanner.edits), _edited(text, scanner.view_edits), scanner.places)


_Edit = tuple[int, int, str]


def _edited(text: str, edits: Sequence[_Edit], start: int = 0, end: int | None = None) -> str:
    parts: list[str] = []
    position = start
    for first, last, new in sorted(edits):
        parts += [text[position:first], new]
        position = last
    return "".join([*parts, text[position:end]])


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[int, QuotePlace] = {}
        self.edits: list[_Edit] = []
        self.view_edits: list[_Edit] = []
        self._frames: list[_Frame] = []
        self._pending: list[_Heredoc] = []
        self._open_sections: list[tuple[object, bool, bool]] = []

    def problem(self, text: str, at: int, fix: str = "") -> TemplateProblem:
        return TemplateProblem(text, line=self.text.count("\n", 0, at) + 1, fix=fix)

    def scan(self, base: _Frame, start: int, end: int) -> None:
        """Scan a stretch that begins and ends in the same frame: the script, or the body of a heredoc."""
        outer_frames = self._frames
        outer_pending = self._pending
        self._frames = [base]
        self._pending = []
        position = start
        while position < end:
            frame = self._frames[-1]
            code = ord(self.text[position])
            if FIRST_VALUE <= code <= END_OF_MARKS:
                self._mark(code, position)
                position += 1
            else:
                position = self._STEPS[frame.context](self, frame, position, end)
        last = self._frames[-1]
        if last.context is QuoteContext.COMMENT:
            self._frames.pop()
        if self._frames != [base]:
            raise self.problem(f"the {last.context} context opened here is never closed", last.opened)
        if self._pending:
            raise self.problem("the heredoc never begins", self._pending[0].start)
        self._frames = outer_frames
        self._pending = outer_pending

    def _mark(self, code: int, at: int) -> None:
        frame = self._frames[-1]
        before = self.text[at - 1] if at else "\n"
        if code < FIRST_OPEN:
            self._value(code - FIRST_VALUE, frame, at)
        elif frame.context is QuoteContext.BARE and before in "$\\<>&|":
            raise self.problem(f"a section begins or ends right after {before!r}", at, fix="put a space between")
        elif code < FIRST_CLOSE:
            self._open_sections.append((self._state(), frame.started, frame.solid))
        else:
            self._close_section(frame, at)

    def _close_section(self, frame: _Frame, at: int) -> None:
        """What follows must read the same with and without the section's body."""
        state, started, solid = self._open_sections.pop()
        if state != self._state():
            fix = "let it begin and end between words, or inside the same quotes"
            raise self.problem("the section does not end in the quoting it began in", at, fix=fix)
        if frame.context is QuoteContext.BARE and started != frame.started and not _PLAIN_NEXT.match(self.text, at + 1):
            fix = "put a space after the section"
            raise self.problem("the text after the section is ambiguous", at, fix=fix)
        frame.solid = frame.solid and solid

    def _state(self) -> object:
        return [(frame.context, frame.opened, frame.depth) for frame in self._frames], len(self._pending)

    def _value(self, number: int, frame: _Frame, at: int) -> None:
        if (refused := REFUSED.get(frame.context)) is not None:
            raise self.problem(refused[0], at, fix=refused[1])
        bare = frame.context is QuoteContext.BARE
        self.places[number] = QuotePlace(frame.context, leads=bare and not frame.solid)
        frame.started = True

    def _bare(self, frame: _Frame, at: int, end: int) -> int:
        letter = self.text[at]
        if letter in "$`":
            return self._expansion(frame, at, end)
        if letter == "\\":
            return self._escape(frame, at)
        if letter in "'\"":
            frame.started = True
            return self._push(QuoteContext.SINGLE if letter == "'" else QuoteContext.DOUBLE, at, 1)
        if letter == "#" and not frame.started:
            return self._push(QuoteContext.COMMENT, at, 1)
        if letter in "()" or self.text.startswith(("<(", ">("), at):
            return self._parenthesis(frame, at)
        if self.text.startswith("<<", at):
            return self._heredoc_operator(frame, at, end)
        if letter == "\n" and self._pending:
            frame.started = frame.solid = False
            return self._heredoc_bodies(at + 1)
        frame.started = frame.solid = letter not in _BOUNDARY
        return at + 1

    def _parenthesis(self, frame: _Frame, at: int) -> int:
        if self.text.startswith("((", at) and not frame.started:
            return self._push(QuoteContext.ARITHMETIC, at, 2, closer="))")
        if self.text[at] != ")":
            width = 1 if self.text[at] == "(" else 2
            frame.started = True
            return self._push(QuoteContext.BARE, at, width, closer=")")
        if frame.closer == ")":
            self._pop()
        else:
            frame.started = frame.solid = False
        return at + 1

    def _expansion(self, frame: _Frame, at: int, end: int) -> int:
        """Something that begins with `$`, or a backtick."""
        text = self.text
        frame.started = True
        if at + 1 < end and MARKS.match(text, at + 1) and text[at] == "$":
            raise self.problem("follows a $ directly", at, fix="put the $ elsewhere, or write \\$")
        if text[at] == "`":
            return self._push(QuoteContext.BACKTICK, at, 1)
        if text.startswith("$((", at):
            return self._push(QuoteContext.ARITHMETIC, at, 3, closer="))")
        if text.startswith("$[", at):
            return self._push(QuoteContext.ARITHMETIC, at, 2, closer="]")
        if text.startswith("$(", at):
            return self._push(QuoteContext.BARE, at, 2, closer=")")
        if text.startswith("${", at):
            return self._push(QuoteContext.BRACES, at, 2)
        if frame.context is QuoteContext.BARE and text.startswith(("$'", '$"'), at):
            return self._push(QuoteContext.ANSI if text[at + 1] == "'" else QuoteContext.DOUBLE, at, 2)
        parameter = _PARAMETER.match(text, at)
        if parameter is None:
            frame.solid = True
            return at + 1
        return parameter.end()

    def _escape(self, frame: _Frame, at: int) -> int:
        following = self.text[at + 1 : at + 2]
        if following and MARKS.match(following):
            raise self.problem("follows a backslash directly", at, fix="remove the backslash")
        if following != "\n":
            frame.started = frame.solid = True
        return at + 2

    def _double(self, frame: _Frame, at: int, end: int) -> int:
        letter = self.text[at]
        if letter in "$`":
            return self._expansion(frame, at, end)
        if letter == "\\":
            return self._escape(frame, at)
        if letter == '"':
            self._pop()
        frame.solid = True
        return at + 1

    def _single(self, frame: _Frame, at: int, _: int) -> int:
        if self.text[at] == "'":
            self._pop()
        frame.solid = True
        return at + 1

    def _ansi(self, frame: _Frame, at: int, _: int) -> int:
        return self._escape(frame, at) if self.text[at] == "\\" else self._single(frame, at, 0)

    def _comment(self, _: _Frame, at: int, __: int) -> int:
        if self.text[at] == "\n":
            self._frames.pop()
            return at
        return at + 1

    def _backtick(self, _: _Frame, at: int, __: int) -> int:
        if self.text[at] == "\\":
            return at + 2
        if self.text[at] == "`":
            self._pop()
        return at + 1

    def _arithmetic(self, frame: _Frame, at: int, end: int) -> int:
        letter = self.text[at]
        if letter in "$`":
            return self._expansion(frame, at, end)
        if letter in "([" and letter == ("(" if frame.closer == "))" else "["):
            frame.depth += 1
        elif frame.depth and letter in ")]":
            frame.depth -= 1
        elif self.text.startswith(frame.closer, at):
            self._pop()
            return at + len(frame.closer)
        return at + 1

    def _braces(self, frame: _Frame, at: int, end: int) -> int:
        letter = self.text[at]
        if letter in "$`":
            return self._expansion(frame, at, end)
        if letter == "\\":
            return at + 2
        if letter == '"' or (letter == "'" and not frame.quoted):
            return self._push(QuoteContext.DOUBLE if letter == '"' else QuoteContext.SINGLE, at, 1)
        if letter == "}":
            self._pop()
        return at + 1

    def _heredoc(self, frame: _Frame, at: int, end: int) -> int:
        letter = self.text[at]
        if letter == '"' or (frame.quoted and letter in "\\$`"):
            self.view_edits.append((at, at + 1, "_"))
        elif letter in "$`" and not frame.quoted:
            return self._expansion(frame, at, end)
        elif letter == "\\" and not frame.quoted:
            return self._escape(frame, at)
        return at + 1

    def _push(self, context: QuoteContext, at: int, width: int, *, closer: str = "") -> int:
        quoted = context is QuoteContext.BRACES and self._is_quoted()
        self._frames.append(_Frame(context, at, closer, quoted=quoted))
        return at + width

    def _is_quoted(self) -> bool:
        """Whether double quotes or a heredoc apply, not counting those outside the nearest $(…)."""
        for frame in reversed(self._frames):
            if frame.context in (QuoteContext.DOUBLE, QuoteContext.HEREDOC):
                return True
            if frame.context is QuoteContext.BARE:
                return False
        return False

    def _pop(self) -> None:
        """Empty quotes begin a word without making it certain that it has a character; so may an expansion."""
        closed = self._frames.pop()
        around = self._frames[-1]
        around.started = True
        if closed.context in (QuoteContext.DOUBLE, QuoteContext.SINGLE, QuoteContext.ANSI) and closed.solid:
            around.solid = True

    def _heredoc_operator(self, frame: _Frame, at: int, end: int) -> int:
        frame.started = frame.solid = False
        if self.text.startswith("<<<", at):
            return at + 3
        found = _HEREDOC.match(self.text, at, end)
        if found is None:
            raise self.problem("the heredoc's delimiter is not understood", at, fix="use one plain word, such as EOF")
        word = found[2] or found[3] or found[5]
        quoted = bool(found[2] or found[3] or found[4])
        self._pending.append(_Heredoc(word, bool(found[1]), quoted, at, found.end()))
        return found.end()

    def _heredoc_bodies(self, at: int) -> int:
        """Skip the bodies of all heredocs that the line just ended has announced."""
        announced = self._pending
        self._pending = []
        for heredoc in announced:
            end, after = self._body_of(heredoc, at)
            self.scan(_Frame(QuoteContext.HEREDOC, at, quoted=heredoc.quoted), at, end)
            if heredoc.quoted and MARKS.search(self.text, at, end):
                self._unquote(heredoc, at, end)
            self._put_into_view(heredoc, at, end, after)
            at = after
        return at

    def _put_into_view(self, heredoc: _Heredoc, start: int, end: int, after: int) -> None:
        inside = [edit for edit in self.view_edits if edit[0] >= start]
        body = _edited(self.text, inside, start, end)
        self.view_edits = [edit for edit in self.view_edits if edit[0] < start]
        self.view_edits += [(heredoc.start, heredoc.end, f'< <(: "{body}")'), (start, after, "")]

    def _body_of(self, heredoc: _Heredoc, at: int) -> tuple[int, int]:
        """Where its body ends, and where the script continues."""
        for start, line in _lines(self.text, at):
            bare = line.lstrip("\t") if heredoc.strips_tabs else line
            if bare.rstrip("\n") == heredoc.word:
                return start, start + len(line.rstrip("\n"))
            if heredoc.word in line and _SECTION_MARKS.search(line):
                fix = "put the section on separate lines"
                raise self.problem("a section shares its line with the heredoc's delimiter", start, fix=fix)
        raise self.problem("the heredoc never ends", heredoc.start, fix=f"write {heredoc.word} on a separate line")

    def _unquote(self, heredoc: _Heredoc, start: int, end: int) -> None:
        """Values are expanded only if the delimiter is unquoted: unquote it, and escape the text around them."""
        dash = "-" if heredoc.strips_tabs else ""
        self.edits.append((heredoc.start, heredoc.end, f"<<{dash}{heredoc.word}"))
        for found in _ACTIVE.finditer(self.text, start, end):
            self.edits.append((found.start(), found.end(), f"\\{found[1]}"))

    _STEPS: ClassVar[Mapping[QuoteContext, Callable[[Any, _Frame, int, int], int]]] = {
        QuoteContext.BARE: _bare,
        QuoteContext.DOUBLE: _double,
        QuoteContext.SINGLE: _single,
        QuoteContext.ANSI: _ansi,
        QuoteContext.COMMENT: _comment,
        QuoteContext.BACKTICK: _backtick,
        QuoteContext.ARITHMETIC: _arithmetic,
        QuoteContext.BRACES: _braces,
        QuoteContext.HEREDOC: _heredoc,
    }


def _lines(text: str, at: int) -> Iterator[tuple[int, str]]:
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end + 1
        yield at, text[at:end]
        at = end
