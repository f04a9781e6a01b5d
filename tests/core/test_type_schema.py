"""Tools with rich parameter and return types, from registration to the call."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional, TypedDict

import jsonschema_rs
import pytest
from pydantic import BaseModel, Field, field_validator

from tests.world import World
from toolreeve import ErrorCode, tool
from toolreeve.core.tool import AnyFunctionTool


class Colour(Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Priority(IntEnum):
    LOW = 1
    HIGH = 2


class Tag(BaseModel):
    """A label."""

    name: str = Field(description="its text")
    colour: Colour = Colour.RED


class Person(BaseModel):
    name: str
    tags: list[Tag] = []
    born: date | None = None


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: list[str] = []


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Line:
    start: Point
    end: Point
    colours: list[Colour] = field(default_factory=list)


class Options(TypedDict):
    depth: int
    point: NotRequired[Point]


class Even(BaseModel):
    n: int

    @field_validator("n")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


seen: list[Any] = []


def receive(hint: Any, default: Any = ...) -> AnyFunctionTool:
    """A tool with one parameter of that type, which keeps what it gets."""

    def take(value: Any) -> str:
        """Take a value.

        Args:
            value: what to take
        """
        seen.append(value)
        return "taken"

    take.__annotations__["value"] = hint
    if default is not ...:
        take.__defaults__ = (default,)
    return tool(danger="safe")(take)


SHAPES: list[tuple[Any, Any, Any]] = [
    (Person, {"name": "Ann"}, Person(name="Ann")),
    (list[Person], [{"name": "Ann", "tags": [{"name": "x"}]}], [Person(name="Ann", tags=[Tag(name="x")])]),
    (Person | None, None, None),
    (Person | None, {"name": "Ann"}, Person(name="Ann")),
    (Optional[list[Tag]], [{"name": "t", "colour": "blue"}], [Tag(name="t", colour=Colour.BLUE)]),  # noqa: UP045
    (dict[str, Person], {"a": {"name": "Ann"}}, {"a": Person(name="Ann")}),
    (Cat | Dog, {"kind": "dog", "tricks": ["sit"]}, Dog(tricks=["sit"])),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "cat", "lives": 3}, Cat(lives=3)),
    (Node, {"value": 1, "children": [{"value": 2}]}, Node(value=1, children=[Node(value=2)])),
    (Colour, "blue", Colour.BLUE),
    (list[Colour], ["red"], [Colour.RED]),
    (Priority, 2, Priority.HIGH),
    (Line, {"start": {"x": 1}, "end": {"x": 2, "y": 3}, "colours": ["red"]}, Line(Point(1), Point(2, 3), [Colour.RED])),
    (list[Line | Point], [{"x": 1}], [Point(1)]),
    (Options, {"depth": 1, "point": {"x": 2}}, {"depth": 1, "point": Point(2)}),
    (list[Options] | None, [{"depth": 1}], [{"depth": 1}]),
    (Literal["a", 1, None], "a", "a"),
    (Literal[Colour.RED], "red", Colour.RED),
    (Annotated[int, Field(ge=1)], 3, 3),
    (Annotated[list[Tag], Field(min_length=1), "labels"], [{"name": "t"}], [Tag(name="t")]),
    (set[str], ["a"], {"a"}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (date, "2026-01-02", date(2026, 1, 2)),
    (Path, "a/b", Path("a/b")),
]


@pytest.mark.parametrize(("hint", "given", "expected"), SHAPES, ids=[str(hint) for hint, _, _ in SHAPES])
async def test_a_value_of_a_rich_type_arrives_as_an_instance(
    world: World, hint: Any, given: Any, expected: Any
) -> None:
    taking = receive(hint)
    jsonschema_rs.validator_for(taking.input_schema, offline=True).validate({"value": given})
    seen.clear()

    async with world.reeve(tools=[taking]) as reeve:
        result = await reeve.call("take", value=given)

    assert (result.error, seen) == (None, [expected])
    assert "$defs" not in taking.input_schema["properties"]["value"]
    assert taking.input_schema["properties"]["value"]["description"] in ("what to take", "labels")


@pytest.mark.parametrize(
    ("hint", "default", "as_json"),
    [
        (Person, Person(name="Ann"), {"name": "Ann", "tags": [], "born": None}),
        (Colour, Colour.BLUE, "blue"),
        (Point, Point(1), {"x": 1, "y": 0}),
        (Person | None, None, None),
        (Person, None, None),
    ],
)
async def test_the_default_of_a_rich_type_is_declared_and_arrives(
    world: World, hint: Any, default: Any, as_json: Any
) -> None:
    taking = receive(hint, default)
    seen.clear()

    async with world.reeve(tools=[taking]) as reeve:
        result = await reeve.call("take")

    assert (result.error, seen) == (None, [default])
    assert taking.input_schema["properties"]["value"]["default"] == as_json
    assert taking.input_schema["required"] == []


def test_the_fields_of_models_keep_their_descriptions_and_defaults() -> None:
    tag = receive(list[Tag]).input_schema["$defs"]["Tag"]

    assert tag["description"] == "A label."
    assert tag["properties"]["name"]["description"] == "its text"
    assert tag["properties"]["colour"] == {"$ref": "#/$defs/Colour", "default": "red"}


async def test_a_value_that_the_type_itself_refuses_is_named_before_anybody_is_asked(world: World) -> None:
    async def approve(request: Any) -> bool:
        raise AssertionError("an invalid call must not be shown")

    async def save(items: list[Even]) -> str:
        """Save."""
        return "saved"

    async with world.reeve(tools=[tool(danger="high")(save)], approve=approve) as reeve:
        result = await reeve.call("save", items=[{"n": 2}, {"n": 3}])

    assert result.error is not None
    assert (result.error.code, result.error.detail) == (
        ErrorCode.INVALID_PARAMS,
        [{"pointer": "/items/1/n", "problem": "Value error, must be even"}],
    )


def people() -> list[Person]:
    """All people."""
    return [Person(name="Ann", born=date(2000, 1, 2), tags=[Tag(name="x")])]


def line() -> Line:
    """A line."""
    return Line(Point(1), Point(2), [Colour.BLUE])


def pet(dog: bool = False) -> Cat | Dog:
    """A pet."""
    return Dog() if dog else Cat()


def tree() -> Node:
    """A tree."""
    return Node(value=1, children=[Node(value=2)])


def colour() -> Colour:
    """A colour."""
    return Colour.BLUE


def by_name() -> dict[str, Point]:
    """Points."""
    return {"a": Point(1)}


def perhaps() -> Person | None:
    """Nobody."""


@pytest.mark.parametrize(
    ("function", "data"),
    [
        (people, {"output": [{"name": "Ann", "tags": [{"name": "x", "colour": "red"}], "born": "2000-01-02"}]}),
        (line, {"start": {"x": 1, "y": 0}, "end": {"x": 2, "y": 0}, "colours": ["blue"]}),
        (pet, {"kind": "cat", "lives": 9}),
        (tree, {"value": 1, "children": [{"value": 2, "children": []}]}),
        (colour, {"output": "blue"}),
        (by_name, {"a": {"x": 1, "y": 0}}),
        (perhaps, {}),
    ],
)
async def test_a_returned_model_is_json_of_the_declared_shape(
    world: World, function: Callable[..., Any], data: dict[str, Any]
) -> None:
    returning = tool(danger="safe")(function)

    async with world.reeve(tools=[returning]) as reeve:
        result = await reeve.call(returning.name)

    assert (result.error, result.data) == (None, data)
    if returning.spec.output is not None:
        assert returning.spec.output["type"] == "object"
        jsonschema_rs.validator_for(dict(returning.spec.output), offline=True).validate(data)
    else:
        assert function is perhaps
