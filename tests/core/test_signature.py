"""Schemas from type hints and docstrings."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolreeve.core.context import Context
from toolreeve.core.errors import ToolreeveError
from toolreeve.core.signature import read_signature


class Colour(Enum):
    RED = "red"


class Person(BaseModel):
    name: str
    age: int = 0


def everything(
    path: str,
    count: int = 3,
    ratio: float | None = None,
    tags: list[str] | None = None,
    mode: Literal["a", "b"] = "a",
    headers: dict[str, str] | None = None,
    note: Annotated[str, "what to remember"] = "",
) -> str:
    """Do everything.

    In two sentences.

    Args:
        path: where
            it is
        count (int): how often

    Returns:
        nothing much
    """
    return path


def test_plain_hints_and_a_google_docstring_give_the_schema() -> None:
    signature = read_signature(everything)

    assert signature.description == "Do everything.\n\nIn two sentences."
    assert signature.schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "where it is"},
            "count": {"type": "integer", "default": 3, "description": "how often"},
            "ratio": {"type": ["number", "null"], "default": None},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}, "default": None},
            "mode": {"enum": ["a", "b"], "default": "a"},
            "headers": {"type": ["object", "null"], "additionalProperties": {"type": "string"}, "default": None},
            "note": {"type": "string", "description": "what to remember", "default": ""},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    assert not signature.converts


def test_a_sphinx_docstring_is_read_too() -> None:
    def greet(name: str) -> str:
        """Greet.

        :param str name: whom
        """
        return name

    assert read_signature(greet).schema["properties"]["name"] == {"type": "string", "description": "whom"}


def test_richer_types_are_described_and_converted_by_pydantic() -> None:
    def register(person: Person, colour: Colour) -> None:
        """Register."""

    signature = read_signature(register)

    assert signature.schema["properties"]["person"] == {"$ref": "#/$defs/Person"}
    assert signature.schema["$defs"]["Person"]["properties"]["name"] == {"type": "string"}
    assert signature.converts["person"]({"name": "Ann"}) == Person(name="Ann")
    assert signature.converts["colour"]("red") is Colour.RED


def test_the_context_is_not_a_parameter() -> None:
    def work(path: str, ctx: Context) -> str:
        """Work."""
        return path

    signature = read_signature(work)

    assert signature.context == "ctx"
    assert list(signature.schema["properties"]) == ["path"]


def test_keyword_arguments_open_the_schema() -> None:
    def anything(**more: Any) -> None:
        """Take anything."""

    assert read_signature(anything).schema["additionalProperties"] is True


def test_positional_only_parameters_are_refused() -> None:
    def positional(a: int, /) -> None:
        """Never callable by name."""

    with pytest.raises(ToolreeveError, match="cannot be passed by name"):
        read_signature(positional)


def test_a_default_that_its_type_does_not_accept_stays_with_the_function() -> None:
    def odd(n: int, text: str, seen: Person) -> None:
        """Odd defaults."""

    odd.__defaults__ = ("many", None, Person(name="Ann", age=3))
    properties = read_signature(odd).schema["properties"]

    assert properties["n"] == {"type": "integer"}
    assert properties["text"] == {"type": ["string", "null"], "default": None}
    assert properties["seen"] == {"$ref": "#/$defs/Person", "default": {"name": "Ann", "age": 3}}


def test_a_field_in_the_place_of_a_default_is_read() -> None:
    def page(size: int = Field(10, ge=1, le=50, description="rows"), after: str = Field(description="where")) -> None:
        """Page."""

    schema = read_signature(page).schema

    assert schema["properties"]["size"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "default": 10,
        "description": "rows",
    }
    assert schema["required"] == ["after"]


def test_a_note_beside_a_rich_type_is_its_description() -> None:
    def tell(person: Annotated[Person, "whom to tell"]) -> None:
        """Tell."""

    assert read_signature(tell).schema["properties"]["person"]["description"] == "whom to tell"


class Unusual:
    """No JSON form."""


@pytest.mark.parametrize(
    ("hint", "said"),
    [(Unusual, "use a type with a JSON form"), (Callable[[], int], "JSON form"), ("Missing", "is not defined")],
)
def test_a_parameter_that_no_call_could_fill_is_refused_with_the_fix(hint: Any, said: str) -> None:
    def work(value: Any) -> None:
        """Work."""

    work.__annotations__["value"] = hint

    with pytest.raises(ToolreeveError, match=said):
        read_signature(work)


def test_a_generator_is_refused() -> None:
    def stream() -> Iterator[int]:
        """Stream."""
        yield 1

    with pytest.raises(ToolreeveError, match="return a list"):
        read_signature(stream)
