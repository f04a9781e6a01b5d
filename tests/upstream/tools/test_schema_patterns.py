"""A server's patterns are its own words: none of them may hold up everybody else."""

from typing import Any

import pytest

from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve import ErrorCode
from toolreeve.upstream.tools.definition import InvalidDefinition, input_of
from toolreeve.upstream.tools.schema_patterns import MAX_PATTERNS, without_costly_patterns

ENDLESS = "(?=a*)a*(?=a*)a*(?=a*)a*b$"


def text(**rules: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"said": {"type": "string", **rules}}}


async def test_a_pattern_that_takes_hours_is_not_tried_and_is_shown_as_it_was_declared(world: World) -> None:
    declared = tool("t", inputSchema=text(allOf=[{"pattern": ENDLESS.replace("b", f"b{n}")} for n in range(500)]))

    async with world.reeve(mcp_servers={"s": light({"tools": [declared]}, danger="safe")}) as reeve:
        result = await reeve.call("s__t", said="a" * 20_000)
        shown = reeve.tools.resolve("s__t").spec.input

    assert result.error is None
    assert shown == declared["inputSchema"]


async def test_a_plain_pattern_is_checked_before_anybody_is_asked(world: World) -> None:
    declared = tool("t", inputSchema=text(pattern="^[a-z]+$"))

    async with world.reeve(mcp_servers={"s": light({"tools": [declared]})}) as reeve:
        refused = (await reeve.call("s__t", said="NO")).error

    assert refused is not None
    assert refused.code is ErrorCode.INVALID_PARAMS


def test_a_schema_of_plain_patterns_is_left_as_it_is() -> None:
    schema = text(pattern=r"^[\w.-]{1,64}@\S+$")

    assert without_costly_patterns(schema) is schema


@pytest.mark.parametrize(
    ("schema", "left"),
    [
        ({"pattern": "(?!x)", "minLength": 1}, {"minLength": 1}),
        ({"properties": {"pattern": {"pattern": "(?!x)"}}}, {"properties": {"pattern": {}}}),
        ({"properties": {"default": {"pattern": "(?!x)"}}}, {"properties": {"default": {}}}),
        (
            {"anyOf": [{"pattern": "(?!x)"}, {"const": {"pattern": "(?!"}}]},
            {"anyOf": [{}, {"const": {"pattern": "(?!"}}]},
        ),
        ({"patternProperties": {"(?!x)": True, "y": False}, "additionalProperties": False}, {}),
        ({"propertyNames": {"pattern": r"(a)\1"}}, {"propertyNames": {}}),
        ({"pattern": "(\\w{100}){100}"}, {}),
    ],
)
def test_only_what_cannot_be_judged_in_time_is_left_out(schema: dict[str, Any], left: dict[str, Any]) -> None:
    assert without_costly_patterns(schema) == left


def test_of_a_flood_of_patterns_only_so_many_are_compiled() -> None:
    flood = without_costly_patterns({"allOf": [{"pattern": f"a{number}"} for number in range(5 * MAX_PATTERNS)]})

    assert sum("pattern" in each for each in flood["allOf"]) == MAX_PATTERNS


@pytest.mark.parametrize("patterns", [["("], [f"(\\w{{100}}){{10{number}}}" for number in range(9)]])
def test_broken_patterns_and_a_flood_of_large_ones_are_refused(patterns: list[str]) -> None:
    with pytest.raises(InvalidDefinition):
        input_of(tool("t", inputSchema=text(allOf=[{"pattern": each} for each in patterns])))
