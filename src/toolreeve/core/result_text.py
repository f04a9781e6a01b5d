"""Results as text for a model, cut to a limit.

Every cut says so where it was made, keeps the beginning and the end, and names the call that reads on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from toolreeve.core import json

STREAMS = ("stdout", "stderr")
SHORT = 2_000
"""Characters of a text that are repeated in the part of a result that a client does not show to its model."""
IN_TEXT = "shown in the text of this result"
IN_STRUCTURE = "shown in the structured content of this result"

Order = Sequence[tuple[str, int]]
"""Which stream printed how many characters, in the order in which they came."""


class KeepText(Protocol):
    """Keeps a text that was cut for its caller; returns the call that reads on from an offset."""

    def __call__(self, text: str, labels: Sequence[str]) -> Callable[[int], str]: ...


class TextLimit(NamedTuple):
    """How many characters a model is sent of one result. A tuple, because every call creates one."""

    chars: int
    keep: KeepText


@dataclass(frozen=True, slots=True)
class CutText:
    """`next` is the call that reads on; empty if nothing was cut."""

    text: str
    next: str = ""


def cut(text: str, limit: TextLimit, labels: Sequence[str]) -> CutText:
    """At most the limit, and a notice, from the beginning and the end, at line breaks where possible."""
    if len(text) <= limit.chars:
        return CutText(text)
    head, tail = _places(text, limit.chars)
    following = limit.keep(text, labels)(head)
    notice = f"[… {tail - head:,} of {len(text):,} characters are left out here; to read them: {following} …]"
    return CutText(f"{text[:head].rstrip()}\n\n{notice}\n\n{text[tail:]}", following)


def _places(text: str, room: int) -> tuple[int, int]:
    """Where the beginning stops and where the end starts."""
    half = room // 2
    head = text.rfind("\n", half * 3 // 4, half) + 1 or half
    start = len(text) - (room - half)
    tail = text.find("\n", start, start + half // 4) + 1 or start
    return head, tail


def abridge(data: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The data with long texts of these names shortened, because the text of the same result has them."""
    return {name: shorten(value, IN_TEXT) if name in names else value for name, value in data.items()}


def shorten(value: Any, elsewhere: str) -> Any:
    """A long text without its middle, which is shown elsewhere."""
    if type(value) is not str or len(value) <= SHORT:
        return value
    notice = f"[… {len(value) - SHORT:,} characters {elsewhere} …]"
    return f"{value[: SHORT // 2]}\n{notice}\n{value[-SHORT // 2 :]}"


def fit(data: dict[str, Any], limit: TextLimit, following: str) -> dict[str, Any]:
    """The data with each text cut to the limit, and each list to as many items; it then says `truncated`."""
    whole = True
    for name, value in data.items():
        if type(value) is str and len(value) > limit.chars:
            head, tail = _places(value, limit.chars)
            data[name] = f"{value[:head]}\n[… {tail - head:,} characters are left out here …]\n{value[tail:]}"
            whole = False
        elif type(value) is list and len(kept := _first(value, limit.chars)) < len(value):
            data[name] = kept
            whole = False
    if not whole:
        data["truncated"] = True
        data.setdefault("next", following)
    return data


def _first(items: list[Any], room: int) -> list[Any]:
    for number, item in enumerate(items):
        room -= len(item) + 4 if type(item) is str else len(json.dumps(item))
        if room < 0:
            return items[:number]
    return items


def readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.pretty(value)


def printed(data: Mapping[str, Any], order: Order) -> str:
    """Both streams, each part under the name of its stream."""
    return "\n".join(f"{name}:\n{text.rstrip()}" for name, text in printed_parts(data, order))


def printed_parts(data: Mapping[str, Any], order: Order) -> list[tuple[str, str]]:
    """What a program printed, by stream, in order if it is known; else one stream after the other."""
    texts = {name: str(data.get(name) or "") for name in STREAMS}
    return [(name, text) for name, text in _ordered(texts, order) if text.strip()]


def _ordered(texts: Mapping[str, str], order: Order) -> Iterator[tuple[str, str]]:
    if any(sum(size for name, size in order if name == stream) != len(texts[stream]) for stream in STREAMS):
        yield from texts.items()
        return
    places = dict.fromkeys(STREAMS, 0)
    current, text = "", ""
    for name, size in order:
        if name != current and text.strip():
            yield current, text
            text = ""
        current = name
        text += texts[name][places[name] : places[name] + size]
        places[name] += size
    yield current, text


def diagnostic_lines(diagnostics: Mapping[str, Any]) -> list[str]:
    """Details beyond the error message, for people to read. Printed output is shown separately."""
    shown = {name: value for name, value in diagnostics.items() if name not in ("message", "stderr")}
    return ["Diagnostics:", *(f"  {name}: {value}" for name, value in shown.items())] if shown else []
