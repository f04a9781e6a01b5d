"""Scripts: what a scripted model replies, turn by turn."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """`raw` are the arguments as the model writes them, when they are not the JSON of `args`."""

    id: str
    name: str
    args: Mapping[str, Any]
    raw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One reply. `status` other than 200 is an HTTP error; `breaks_off` ends the stream in the middle; `cut` says that
    the limit of tokens was reached, `refuses` that the model may not answer. Turns are joined with `|`: a text and
    several calls make one reply."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    status: int = 200
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    breaks_off: bool = False
    cut: bool = False
    refuses: bool = False
    input_tokens: int = 100
    output_tokens: int = 20
    number: int = 0

    def __or__(self, other: "Turn") -> "Turn":
        calls = tuple(
            ScriptedCall(id=f"call_{number}", name=each.name, args=each.args, raw=each.raw)
            for number, each in enumerate((*self.calls, *other.calls))
        )
        return Turn(
            text=self.text + other.text,
            calls=calls,
            cut=self.cut or other.cut,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
        )

    def numbered(self, number: int) -> "Turn":
        """With ids that no other turn has, as providers give them."""
        calls = tuple(replace(each, id=f"call_{number}_{index}") for index, each in enumerate(self.calls))
        return replace(self, calls=calls, number=number)


Reply = Turn | Callable[[Mapping[str, Any]], Turn]
"""A turn, or a function that makes it from the body of the request."""


def say(text: str, **changes: Any) -> Turn:
    return Turn(text=text, **changes)


def call(name: str, *, raw: str | None = None, **args: Any) -> Turn:
    """A turn with one tool call."""
    return Turn(calls=(ScriptedCall(id="call_0", name=name, args=args, raw=raw),))


def fail(status: int, message: str = "scripted failure", **headers: str) -> Turn:
    """An HTTP error. Header names are written with underscores: `retry_after="0"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Turn(status=status, message=message, headers=named)


def refuse(text: str = "") -> Turn:
    """A reply that the provider or the model refuses to give."""
    return Turn(text=text, refuses=True)


def break_off(text: str = "I was about to") -> Turn:
    """A stream that ends without its end."""
    return Turn(text=text, breaks_off=True)
