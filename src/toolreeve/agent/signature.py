"""Signatures: the typed inputs and outputs of an agent.

class Review(Signature):
    '''Review a change.'''

    diff: str = InputField(description="The change")
    verdict: Literal["accept", "reject"] = OutputField(description="The decision")
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, get_type_hints

from toolreeve.core.errors import ToolreeveError

_MISSING: Any = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureField:
    name: str = ""
    type: Any = str
    description: str = ""
    default: Any = _MISSING
    is_output: bool = False
    untrusted: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is _MISSING


def InputField(
    *, description: str = "", desc: str = "", default: Any = _MISSING, required: bool = True, untrusted: bool = False
) -> Any:
    """A value that the caller passes to `run`. `desc` is another name for `description`. Inputs are the user's own
    words and vouch for what the agent does with them, unless they are `untrusted`: a mail to answer, a page to
    summarise."""
    field = _field(description or desc, default, required=required, is_output=False)
    return replace(field, untrusted=untrusted)


def OutputField(*, description: str = "", desc: str = "", default: Any = _MISSING, required: bool = True) -> Any:
    """A value that the agent returns."""
    return _field(description or desc, default, required=required, is_output=True)


def _field(description: str, default: Any, *, required: bool, is_output: bool) -> SignatureField:
    if not required and default is _MISSING:
        default = None
    return SignatureField(description=description, default=default, is_output=is_output)


class Signature:
    """Base class of signatures. The docstring of a subclass is the agent's instruction."""

    inputs: ClassVar[dict[str, SignatureField]] = {}
    outputs: ClassVar[dict[str, SignatureField]] = {}
    instruction: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        found = {name: value for name, value in vars(cls).items() if isinstance(value, SignatureField)}
        hints = get_type_hints(cls, include_extras=True) if found else {}
        fields = [_named(name, field, hints) for name, field in found.items()]
        cls.inputs = cls.inputs | {field.name: field for field in fields if not field.is_output}
        cls.outputs = cls.outputs | {field.name: field for field in fields if field.is_output}
        cls.instruction = (cls.__doc__ or "").strip()
        for name in cls.inputs.keys() & cls.outputs.keys():
            raise ToolreeveError(f"signature {cls.__name__}: {name!r} is both an input and an output")


def _named(name: str, field: SignatureField, hints: dict[str, Any]) -> SignatureField:
    return replace(field, name=name, type=hints.get(name, str))


class Ask(Signature):
    """Do what the user asks, with the tools at hand, and report what was done."""

    task: str = InputField(description="What the user asks for")
    answer: str = OutputField(description="The answer to the user")


def bind(signature: type[Signature], inputs: dict[str, Any]) -> dict[str, Any]:
    """All inputs, with defaults. Raises TypeError as a function call would.

    An agent without declared inputs accepts any.
    """
    fields = signature.inputs
    unknown = inputs.keys() - fields.keys()
    if unknown and fields:
        raise TypeError(f"unexpected input {sorted(unknown)[0]!r}; {signature.__name__} takes {', '.join(fields)}")
    missing = [name for name, field in fields.items() if field.is_required and name not in inputs]
    if missing:
        raise TypeError(f"missing input {missing[0]!r} of {signature.__name__}")
    return {name: field.default for name, field in fields.items() if not field.is_required} | inputs
