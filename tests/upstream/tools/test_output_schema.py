"""Results checked against the tool's output schema."""

from typing import Any

import pytest

from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve.upstream.tools.output_schema import MAX_WORK, OutputSchema, weigh

DEGREES = {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]}


def answer(**structured: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "21"}], "structuredContent": structured}


def server(result: dict[str, Any]) -> dict[str, Any]:
    return light({"tools": [tool("t", outputSchema=DEGREES)], "answers": {"t": result}}, danger="safe")


async def test_a_result_that_does_not_fit_its_schema_is_passed_on_and_reported(world: World) -> None:
    said = answer(degrees="warm\x1b[2J")
    async with world.reeve(mcp_servers={"s": server(said)}) as reeve, reeve.bus.subscribe() as events:
        result = await reeve.call("s__t")
        odd = await anext(event async for event in events if event.event == "answer_odd")

    assert result.to_mcp() == said
    assert result.success
    remark = result.to_dict()["meta"]["toolreeve_diagnostics"]["output_schema"]
    assert "/degrees: expected number" in remark
    assert "\x1b" not in remark
    assert odd.data == {"server": "s", "tool": "t", "output_schema": remark}


@pytest.mark.parametrize("said", [answer(degrees=21), {"content": [], "isError": True}])
async def test_fitting_results_and_failures_are_not_reported(world: World, said: dict[str, Any]) -> None:
    async with world.reeve(mcp_servers={"s": server(said)}) as reeve:
        result = await reeve.call("s__t")

    assert "toolreeve_diagnostics" not in result.to_dict()["meta"]


def test_a_missing_structured_result_does_not_fit() -> None:
    assert "no structuredContent" in OutputSchema(DEGREES).mismatch(None)


def test_a_pattern_that_could_take_for_ever_is_not_tried() -> None:
    endless = {"type": "object", "properties": {"a": {"pattern": r"^(?=(a+)+$)\1b"}}}

    assert "too costly to check" in OutputSchema(endless).mismatch({"a": "a" * 100})


def test_a_pattern_that_others_are_slow_with_is_tried() -> None:
    slow = OutputSchema({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}})

    assert slow.mismatch({"a": "a" * 10_000}) == ""
    assert "does not fit" in slow.mismatch({"a": "a" * 10_000 + "b"})


def test_what_is_too_much_is_not_checked() -> None:
    costly = OutputSchema({"type": "object", "properties": {"a": {"items": {"anyOf": [{"minLength": 9}] * 1000}}}})

    assert "too costly to check" in costly.mismatch({"a": ["x"] * 100_000})


def test_what_is_nested_too_deeply_breaks_nothing() -> None:
    said: Any = {}
    for _ in range(900):
        said = {"more": said}

    assert "nested too deeply" in OutputSchema(DEGREES).mismatch(said)


def test_long_texts_and_names_weigh_more() -> None:
    assert weigh({"a": 1}, MAX_WORK) == 2
    assert weigh({"a": "x" * 1600}, MAX_WORK) == 102
    assert weigh({"x" * 1600: 1}, MAX_WORK) == 102
    assert weigh([[[]]] * 1000, 10) < 1100
