"""The approval prompt: everything the call will do, with nothing hidden.

Each line that comes from the call is printed behind a gutter, so that no argument can pass for a line of the prompt.
Long values are cut in the middle and say so; the details show them whole.
"""

from collections.abc import Iterator
from typing import Any

from toolreeve.approval.request import Request
from toolreeve.approval.sentence import sentence
from toolreeve.core import json
from toolreeve.core.visible import one_line, visible

SHOWN_CHARACTERS = 800
SHOWN_LINES = 24
SHOWN_DIFF_LINES = 60
GUTTER = "  │ "
_BOLD = "\x1b[1m"
_PLAIN = "\x1b[0m"
_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
MORE = ", ? shows all"


def describe(request: Request, *, whole: bool = False, more: str = MORE) -> str:
    """The question without the choices. `whole` omits nothing; `more` says how to see what was omitted."""
    lines = [sentence(request)]
    lines.append(f"Tool '{one_line(request.tool)}' (danger={request.danger.value}) requests approval:")
    lines += _arguments(request, more, whole=whole)
    if request.effects:
        lines.append("  Effects:")
        lines += [f"{GUTTER}{effect.kind} {one_line(effect.target)}" for effect in request.effects]
    if request.preview:
        lines.append("  Changed on trial, kept if you approve:" if request.tried else "  Change:")
        lines += _block(request.preview, SHOWN_CHARACTERS * 8, SHOWN_DIFF_LINES, more, whole=whole)
    lines.append(f"  Asked because: {one_line(_why(request))}")
    lines += _origins(request)
    lines.append(f"  Caller: {one_line(_who(request))}")
    if whole and len(request.choices) > 1:
        lines.append("  For this session or always it may cover:")
        lines += list_choices(request)
    if whole and request.lasting:
        lines.append(f"  'Always' would write: {one_line(request.lasting)}")
    if request.approvals > 1:
        lines.append(f"  Needs {request.approvals} approvals by different people; the caller's own does not count.")
    if request.withheld:
        lines.append(f"  Not 'always': {request.withheld}.")
    return "\n".join(lines)


def coloured(text: str) -> str:
    """The prompt for a terminal: its heading bold, added lines green, removed lines red."""
    first, *rest = text.split("\n")
    return "\n".join([f"{_BOLD}{first}{_PLAIN}", *map(_coloured_line, rest)])


def _coloured_line(line: str) -> str:
    marked = line.removeprefix(GUTTER)
    colour = _COLOURS.get(marked[:1], "") if marked != line else ""
    return f"{GUTTER}{colour}{marked}{_PLAIN}" if colour else line


def list_choices(request: Request) -> list[str]:
    """What a yes for longer may cover, numbered from 1, narrowest first."""
    return [f"    {number}  {one_line(choice.sentence)}" for number, choice in enumerate(request.choices, 1)]


def _why(request: Request) -> str:
    verdict = request.verdict
    rule = f" (rule {verdict.rule})" if verdict.rule else ""
    return f"{verdict.reason}{rule}"


def _origins(request: Request) -> Iterator[str]:
    """Which values nobody vouches for, and where they stand. Foreign text is behind the gutter, never in a sentence."""
    for each in request.facts.get("provenance", ()):
        value = f"{one_line(each['parameter'])}: {one_line(each['value'])}" if each["value"] else "This call"
        yield f"  {value} - {one_line(each['why'])}"
        if each["lookalike"]:
            yield f"    Not the same as {one_line(each['lookalike'])}, which the user named."
        if each["source"]:
            field = f", {one_line(each['field'])}" if each["field"] else ""
            yield f"    It stands in what {one_line(each['source'])} returned{field} (foreign text):"
            yield f"{GUTTER}{one_line(each['excerpt'])}"
        elif each["value"]:
            yield "    It stands in nothing that was read: the model made it up or decoded it."
    if request.facts.get("requested"):
        yield f"  The user asked: {one_line(request.facts['requested'])}"
    if request.knowable:
        yield f"  May become known, so that it is not asked about again: {', '.join(map(one_line, request.knowable))}"


def _who(request: Request) -> str:
    return f"{request.principal.user} ({request.principal.role.value}), session {request.session}, by {request.origin}"


def _arguments(request: Request, more: str, *, whole: bool) -> Iterator[str]:
    if not request.args:
        yield "  (no arguments)"
    if request.defaults and not whole:
        values = (f"{one_line(name)}={one_line(_json(request.args[name]))}" for name in request.defaults)
        folded = f"  defaults: {', '.join(values)}"
    else:
        folded = ""
    for name, value in request.args.items():
        if folded and name in request.defaults:
            continue
        text = value if isinstance(value, str) else _json(value)
        shown = _block(text, SHOWN_CHARACTERS, SHOWN_LINES, more, whole=whole)
        label = f"  {one_line(name)}:"
        if len(shown) == 1:
            yield f"{label} {shown[0].removeprefix(GUTTER)}"
        else:
            yield label
            yield from shown
    if folded:
        yield folded


def _json(value: Any) -> str:
    try:
        if isinstance(value, (dict, list)) and value:
            return json.pretty(value)
        return json.dumps(value).decode()
    except (TypeError, RecursionError):
        return repr(value)


def _block(text: str, characters: int, lines: int, more: str, *, whole: bool) -> list[str]:
    """The lines of a value, each behind the gutter."""
    cut = text if whole else _cut_characters(text, characters, more)
    rows = visible(cut).split("\n")
    if not whole and len(rows) > lines:
        missing = len(rows) - lines + 1
        rows = [*rows[: lines // 2], f"⋯ {missing} more lines{more} ⋯", *rows[missing + lines // 2 :]]
    return [f"{GUTTER}{row}" for row in rows]


def _cut_characters(text: str, limit: int, more: str) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}⋯ cut: {len(text):,} characters in all{more} ⋯{text[-half:]}"
