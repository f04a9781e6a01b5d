import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolreeveError
from toolreeve.core.result import Failure, Meta, Success, ToolResult, new_result
from toolreeve.flows import References, batch, chain


def succeeded(data: Mapping[str, Any], main: Any = None) -> ToolResult:
    return new_result(Success(data, main), Meta(call_id="1", tool="echo", session="s"))


def failed(code: ErrorCode = ErrorCode.TOOL_EXEC, message: str = "no luck") -> ToolResult:
    return new_result(Failure(code, message), Meta(call_id="1", tool="echo", session="s"))


@dataclass
class Echo:
    """A road on which every tool gives back its arguments; the tool `fail` fails."""

    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    async def __call__(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        self.calls.append((tool, args))
        return failed() if tool == "fail" else succeeded(args)


PAGE = {
    "content": "<a>",
    "count": 3,
    "ratio": 0.5,
    "ok": True,
    "nothing": None,
    "links": ["a", "b", {"href": "c"}],
    "headers": {"Content-Type": "text/html", "a.b c": "odd"},
}


async def last_args(args: Mapping[str, Any], page: Mapping[str, Any] = PAGE) -> Mapping[str, Any]:
    """What the second step of a chain is called with when the first gave `page`."""
    echo = Echo()
    results = await chain(echo, [{"tool": "fetch", "args": page}, {"tool": "use", "args": args}])
    assert results[-1].success, results[-1].error
    return echo.calls[-1][1]


async def refusal(args: Mapping[str, Any]) -> str:
    echo = Echo()
    results = await chain(echo, [{"tool": "fetch", "args": PAGE}, {"tool": "use", "args": args}])
    error = results[-1].error
    assert error is not None
    assert error.code is ErrorCode.INVALID_PARAMS
    assert len(echo.calls) == 1
    return error.message


async def test_the_documented_chain_hands_the_content_on() -> None:
    results = await chain(
        Echo(),
        [
            {"tool_name": "read_file", "params": {"content": "hello"}},
            {"tool_name": "write_file", "params": {"path": "output.txt", "content": "{{previous.content}}"}},
        ],
    )

    assert [result.data for result in results] == [
        {"content": "hello"},
        {"path": "output.txt", "content": "hello"},
    ]


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("{{previous.count}}", 3),
        ("{{ previous.ratio }}", 0.5),
        ("{{previous.ok}}", True),
        ("{{previous.nothing}}", None),
        ("{{previous.links}}", ["a", "b", {"href": "c"}]),
        ("{{steps[0].links[1]}}", "b"),
        ("{{steps[0].links[-1].href}}", "c"),
        ("{{previous.headers.Content-Type}}", "text/html"),
        ('{{previous.headers["a.b c"]}}', "odd"),
        ("{{previous.success}}", True),
        ("{{previous.error}}", ""),
        ("{{previous.structured_content.count}}", 3),
    ],
)
async def test_a_reference_alone_keeps_the_type_of_its_value(reference: str, value: Any) -> None:
    args = await last_args({"x": reference})

    assert args == {"x": value}
    assert type(args["x"]) is type(value)


@pytest.mark.parametrize(
    ("text", "inserted"),
    [
        ("n={{previous.count}}", "n=3"),
        ("{{previous.ok}}, {{previous.nothing}}", "true, null"),
        ("see {{previous.links}}", 'see ["a","b",{"href":"c"}]'),
        ("{{previous.content}}{{steps[0].content}}", "<a><a>"),
    ],
)
async def test_a_reference_within_text_is_inserted_as_text(text: str, inserted: str) -> None:
    assert await last_args({"x": text}) == {"x": inserted}


async def test_references_are_found_inside_lists_and_mappings() -> None:
    args = await last_args({"deep": [{"a": ["{{previous.count}}"]}], "plain": 7})

    assert args == {"deep": [{"a": [3]}], "plain": 7}


async def test_a_bare_previous_is_the_main_value_of_the_step() -> None:
    done = [succeeded({"content": "text", "size": 4}, main="text")]

    assert References(done).resolve({"x": "{{previous}}", "y": "{{steps[0]}}!"}) == {"x": "text", "y": "text!"}


@pytest.mark.parametrize("value", ["{{previous.count}}", "{{steps[0].secret}}", "a {{previous.content}} b", "{{"])
async def test_a_value_that_looks_like_a_reference_stays_text(value: str) -> None:
    hostile = {"content": value, "secret": "s3cret", "count": 3}
    done = [succeeded(hostile)]

    resolved = References(done).resolve({"alone": "{{previous.content}}", "within": "<{{previous.content}}>"})

    assert resolved == {"alone": value, "within": f"<{value}>"}


async def test_values_cannot_join_to_a_new_reference() -> None:
    done = [succeeded({"open": "{{previous", "close": ".secret}}", "secret": "s3cret"})]

    resolved = References(done).resolve({"x": "{{previous.open}}{{previous.close}}"})

    assert resolved == {"x": "{{previous.secret}}"}


@pytest.mark.parametrize(
    "text", ["Hello {{name}}", "{{#each items}}", "{{prev.x}}", "{{ previously.x }}", "{}", "{{}}"]
)
async def test_templates_of_other_languages_pass_through(text: str) -> None:
    assert await last_args({"x": text}) == {"x": text}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("{{previous.cuont}}", "there is no 'cuont'; there are content, count, ratio, ok"),
        ("{{previous.links[7]}}", "there is no [7] in a list of 3"),
        ("{{previous.count.x}}", "a value of type int has no 'x'"),
        ("{{previous.content[0]}}", "a value of type str has no 0"),
        ("{{steps[1].x}}", "only steps[0] came before"),
        ("{{steps.count}}", "write {{previous.field}} or {{steps[0].field}}"),
        ("{{previous..count}}", "'..count' is not a field such as .name or [0]"),
        ("{{previous.count | upper}}", "' | upper' is not a field such as .name or [0]"),
        ("{{previous.__class__}}", "there is no '__class__'"),
    ],
)
async def test_a_reference_to_nothing_fails_its_step_and_says_what_there_is(reference: str, reason: str) -> None:
    for text in (reference, f"within {reference} text"):
        assert reason in await refusal({"x": text})


async def test_the_first_step_has_nothing_before_it() -> None:
    (result,) = await chain(Echo(), [{"tool": "use", "args": {"x": "{{previous.x}}"}}])

    assert result.error is not None
    assert result.error.message == "{{previous.x}} refers to nothing: no step came before this one"


async def test_a_failure_ends_the_chain_and_is_its_last_result() -> None:
    echo = Echo()

    results = await chain(echo, [{"tool": name, "args": {}} for name in ("one", "fail", "three")])

    assert [result.success for result in results] == [True, False]
    assert [tool for tool, _ in echo.calls] == ["one", "fail"]


async def test_without_stop_on_error_a_chain_continues_and_can_refer_to_the_failure() -> None:
    echo = Echo()

    steps = [{"tool": "fail", "args": {}}, {"tool": "report", "args": {"text": "{{previous.error}}"}}]
    results = await chain(echo, steps, stop_on_error=False)

    assert [result.success for result in results] == [False, True]
    assert echo.calls[-1] == ("report", {"text": "no luck"})


async def test_what_a_later_step_does_to_its_arguments_leaves_earlier_results_alone() -> None:
    async def spoil(tool: str, args: Mapping[str, Any]) -> ToolResult:
        if tool == "spoil":
            args["links"].append("spoilt")
        return succeeded({"links": ["a"]})

    results = await chain(spoil, [{"tool": "get"}, {"tool": "spoil", "args": {"links": "{{previous.links}}"}}])

    assert results[0].data == {"links": ["a"]}


async def test_references_cannot_inflate_a_small_text() -> None:
    done = [succeeded({"content": "x" * 1_000_000})]

    with pytest.raises(Exception, match="would grow beyond"):
        References(done).resolve({"x": ["{{previous.content}} " * 10] * 10})


async def test_arguments_deeper_than_the_road_accepts_are_left_for_it_to_refuse() -> None:
    deep: Any = "{{previous.count}}"
    for _ in range(10_000):
        deep = [deep]

    args = await last_args({"x": deep})

    assert isinstance(args["x"], list)


def test_a_long_text_without_end_is_read_in_linear_time() -> None:
    text = "{{previous" + " " * 2_000_000 + "{{ " * 500_000

    assert References([]).resolve({"x": text}) == {"x": text}


@given(st.text(alphabet="{}[]. previousteps0\"'x", max_size=60))
def test_any_text_is_resolved_or_refused(text: str) -> None:
    done = [succeeded({"x": 1})]
    try:
        resolved = References(done).resolve({"text": text})
    except Exception as problem:
        assert "refers to nothing" in str(problem)  # noqa: PT017
    else:
        assert set(resolved) == {"text"}


@pytest.mark.parametrize(
    "step",
    [
        {"tool": "echo", "args": {"a": 1}},
        {"tool": "echo", "params": {"a": 1}},
        {"tool_name": "echo", "params": {"a": 1}},
        {"name": "echo", "arguments": {"a": 1}},
        ToolCall(tool="echo", args={"a": 1}),
    ],
)
async def test_every_documented_spelling_of_a_step_is_understood(step: Any) -> None:
    for flow in (batch, chain):
        echo = Echo()
        await flow(echo, [step])
        assert echo.calls == [("echo", {"a": 1})]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({"tool": "echo", "arg": {}}, "unknown key 'arg'"),
        ({"args": {}}, "names no tool"),
        ({"tool": 3}, "names no tool"),
        ({"tool": "echo", "args": [1]}, "must be a mapping, got list"),
        ({"tool": "echo", "args": {}, "params": {}}, "both 'args' and 'params'"),
        ({"tool": "echo", "tool_name": "rm", "args": {}}, "both 'tool' and 'tool_name'"),
        ("echo", "must be a mapping or a ToolCall, got str"),
    ],
)
async def test_a_misspelt_step_is_refused_before_anything_runs(step: Any, reason: str) -> None:
    for flow in (batch, chain):
        echo = Echo()
        with pytest.raises(ToolreeveError, match=reason):
            await flow(echo, [{"tool": "first"}, step])
        assert echo.calls == []


async def test_a_batch_keeps_the_order_of_its_requests_whatever_ends_first() -> None:
    gates = [asyncio.Event() for _ in range(5)]
    gates[-1].set()

    async def backwards(tool: str, args: Mapping[str, Any]) -> ToolResult:
        number = args["number"]
        await gates[number].wait()
        gates[number - 1].set()
        return succeeded(args)

    results = await batch(backwards, [{"tool": "echo", "args": {"number": number}} for number in range(5)])

    assert [result.data for result in results] == [{"number": number} for number in range(5)]


async def test_a_failure_in_a_batch_does_not_stop_the_rest() -> None:
    results = await batch(Echo(), [{"tool": name} for name in ("one", "fail", "three")])

    assert [result.success for result in results] == [True, False, True]


async def test_a_batch_never_runs_more_at_once_than_it_may() -> None:
    running = 0
    most = 0

    async def counted(tool: str, args: Mapping[str, Any]) -> ToolResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return succeeded(args)

    results = await batch(counted, [{"tool": "echo"}] * 100, concurrency=3)

    assert len(results) == 100
    assert most == 3


async def test_a_batch_that_is_cancelled_leaves_nothing_running() -> None:
    begun, ended = asyncio.Barrier(3), []

    async def endless(tool: str, args: Mapping[str, Any]) -> ToolResult:
        await begun.wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(tool)
        raise AssertionError

    task = asyncio.create_task(batch(endless, [{"tool": "a"}, {"tool": "b"}]))
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == ["a", "b"]


async def test_misuse_that_the_road_raises_reaches_the_caller_as_itself() -> None:
    async def closed(tool: str, args: Mapping[str, Any]) -> ToolResult:
        raise ToolreeveError("the runtime is closed")

    with pytest.raises(ToolreeveError, match="closed"):
        await batch(closed, [{"tool": "a"}, {"tool": "b"}])


async def test_no_requests_give_no_results() -> None:
    assert await batch(Echo(), []) == await chain(Echo(), []) == []


async def test_a_batch_of_no_concurrency_is_refused() -> None:
    with pytest.raises(ToolreeveError, match="at least 1"):
        await batch(Echo(), [], concurrency=0)
