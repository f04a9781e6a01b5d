"""Accepted kinds of tools, and their return values."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError, ToolreeveError
from toolreeve.core.limits import UNLIMITED, Retry
from toolreeve.core.result import Failure, Meta, Output, Success, new_result
from toolreeve.core.returned import as_output
from toolreeve.core.tool import Tool, bind, mcp_tool, tool


class Echo:
    """A tool by its shape alone."""

    name = "echo"
    description = "Say it again."

    @property
    def input_schema(self) -> dict[str, Any]:
        return {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}

    async def execute(self, tool_input: dict[str, Any]) -> str:
        return str(tool_input["text"])


class Model(BaseModel):
    n: int


@dataclass
class Point:
    x: int


def test_any_object_of_the_right_shape_is_a_tool() -> None:
    assert isinstance(Echo(), Tool)

    bound = bind(Echo())

    assert (bound.spec.name, bound.spec.danger, bound.spec.read_only) == ("echo", DangerLevel.HIGH, False)


def test_a_bare_decorator_and_a_bare_function_are_enough() -> None:
    @tool
    def double(n: int) -> int:
        """Twice n."""
        return n * 2

    def triple(n: int) -> int:
        """Thrice n."""
        return n * 3

    assert (double.name, double.description, double(4)) == ("double", "Twice n.", 8)
    assert bind(triple).spec.name == "triple"
    assert isinstance(double, Tool)


def test_a_safe_tool_is_read_only_and_idempotent_unless_it_says_otherwise() -> None:
    @tool(danger=DangerLevel.SAFE)
    def look() -> None:
        """Look."""

    @tool(danger=DangerLevel.SAFE, read_only=False)
    def touch() -> None:
        """Touch."""

    assert (look.spec.read_only, look.spec.idempotent) == (True, True)
    assert (touch.spec.read_only, touch.spec.idempotent) == (False, False)


def test_a_tool_without_limits_shares_the_one_unlimited() -> None:
    assert tool(lambda: None).spec.limits is UNLIMITED
    assert tool(retry=Retry(attempts=2))(lambda: None).spec.limits.retry == Retry(attempts=2)


def test_danger_may_depend_on_the_arguments() -> None:
    def judge(args: Any) -> DangerLevel:
        return DangerLevel.CRITICAL if args["force"] else DangerLevel.SAFE

    @tool(danger=judge)
    def push(force: bool) -> None:
        """Push."""

    bound = bind(push)
    assert (bound.danger({"force": True}), bound.danger({"force": False})) == (DangerLevel.CRITICAL, DangerLevel.SAFE)
    assert bound.spec.danger is DangerLevel.HIGH


async def test_the_explicit_form_works_as_documented() -> None:
    @mcp_tool(
        name="custom_database_query",
        description="Execute database query",
        danger_level=DangerLevel.MEDIUM,
        parameters={
            "query": {"type": "string", "description": "SQL query to execute"},
            "database": {"type": "string", "description": "Database name"},
        },
    )
    async def custom_database_query(query: str, database: str = "main") -> dict[str, Any]:
        return {"success": True, "output": f"{query}@{database}", "error": ""}

    assert custom_database_query.input_schema["required"] == ["query"]
    returned = await custom_database_query.execute({"query": "select 1"})
    assert as_output(returned).main == "select 1@main"


async def test_a_function_that_takes_models_gets_models() -> None:
    @tool
    async def grow(model: Model) -> Model:
        """Grow."""
        return Model(n=model.n + 1)

    assert as_output(await grow.execute({"model": {"n": 1}})) == Output(data={"n": 2})
    with pytest.raises(ToolError, match=r"^.*n.*$"):
        await grow.execute({"model": {"n": "many"}})


@pytest.mark.parametrize(
    ("returned", "data", "main"),
    [
        ("text", {"output": "text"}, "text"),
        ({"a": 1}, {"a": 1}, None),
        ({"output": "x", "n": 1}, {"output": "x", "n": 1}, "x"),
        (7, {"output": 7}, 7),
        ([1, 2], {"output": [1, 2]}, [1, 2]),
        (None, {}, None),
        (Model(n=1), {"n": 1}, None),
        (Point(x=2), {"x": 2}, None),
        (2**100, {"output": 2**100}, 2**100),
    ],
)
def test_return_values_become_outputs(returned: Any, data: Any, main: Any) -> None:
    output = as_output(returned)

    assert (output.data, output.main) == (data, main)


def test_a_reported_failure_is_a_failure() -> None:
    with pytest.raises(ToolError, match="no such table") as caught:
        as_output({"success": False, "output": "", "error": "no such table"})

    assert caught.value.code is ErrorCode.TOOL_EXEC


def test_a_returned_result_keeps_its_outcome() -> None:
    meta = Meta(call_id="c", tool="t", session="s")

    assert as_output(new_result(Success({"a": 1}, "m"), meta)) == Output(data={"a": 1}, main="m")
    with pytest.raises(ToolError) as caught:
        as_output(new_result(Failure(ErrorCode.HTTP_ERROR, "500"), meta))
    assert caught.value.code is ErrorCode.HTTP_ERROR


@pytest.mark.parametrize("returned", [{"x": {1, 2}}, object(), {"f": open}])
def test_a_value_that_is_not_json_is_an_error_and_not_a_crash(returned: Any) -> None:
    with pytest.raises(ToolError, match="that is not JSON"):
        as_output(returned)


@pytest.mark.parametrize("candidate", [3, Echo, object()])
def test_an_object_that_is_not_a_tool_is_refused_with_what_it_lacks(candidate: Any) -> None:
    with pytest.raises(ToolreeveError):
        bind(candidate)


def test_calls_have_unique_ids_that_sort_by_time() -> None:
    ids = [ToolCall(tool="t", args={}).id for _ in range(1000)]

    assert len(set(ids)) == 1000
    assert ids == sorted(ids)


def test_danger_is_accepted_as_a_word_and_a_wrong_one_is_refused_at_once() -> None:
    assert tool(danger="safe")(lambda: None).spec.danger is DangerLevel.SAFE
    with pytest.raises(ToolreeveError, match=r"did you mean 'safe'\?.*one of safe, low, medium, high, critical"):
        tool(danger="saef")
    with pytest.raises(ToolreeveError, match="is not a level"):
        tool(danger=5)  # type: ignore[call-overload]


def test_an_object_may_name_its_danger_in_a_word() -> None:
    class Quiet(Echo):
        danger = "safe"

    class Wrong(Echo):
        danger = "harmless"

    assert bind(Quiet()).spec.danger is DangerLevel.SAFE
    with pytest.raises(ToolreeveError, match="harmless"):
        bind(Wrong())


@pytest.mark.parametrize(
    "options", [{"timeout": "soon"}, {"timeout": -1}, {"retry": 3}, {"rate": 5}, {"caching": True}, {"concurrency": 0}]
)
def test_limits_of_the_wrong_kind_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ToolreeveError, match=next(iter(options))):
        tool(**options)(lambda: None)


class Counter:
    """A class whose methods are tools."""

    def __init__(self) -> None:
        self.count = 0

    @tool(danger="low")
    def add(self, by: int = 1) -> int:
        """Count on."""
        self.count += by
        return self.count

    @classmethod
    @tool
    def made(cls, suffix: str) -> str:
        """Name it."""
        return cls.__name__ + suffix

    @tool
    @staticmethod
    def twice(n: int) -> int:
        """Twice n."""
        return n * 2


async def test_methods_are_bound_to_their_instance() -> None:
    counter = Counter()

    assert "self" not in counter.add.input_schema["properties"]
    assert await counter.add.execute({"by": 2}) == 2
    assert counter.add(by=3) == 5
    assert list(bind(counter.made).spec.input["properties"]) == ["suffix"]
    assert bind(Counter.twice).spec.name == "twice"
    with pytest.raises(ToolreeveError, match=r"`instance\.add`"):
        bind(Counter.add)


@pytest.mark.parametrize(
    "build",
    [
        lambda: mcp_tool(name="q", description="d", parameters={"quary": {"type": "string"}})(lambda query: query),
        lambda: mcp_tool(name="q", description="d", parameters={})(lambda query: query),
        lambda: bind(mcp_tool(name="q", description="d", parameters={"x": {"type": "str"}})(lambda x: x)),
        lambda: tool(tool(lambda: None)),
        lambda: tool(5),  # type: ignore[call-overload]
    ],
    ids=["unknown parameter", "missing parameter", "unknown type", "twice", "no function"],
)
def test_a_tool_that_cannot_be_called_is_refused_when_it_is_made(build: Any) -> None:
    with pytest.raises(ToolreeveError):
        build()


def test_a_tool_shows_itself_in_a_few_words() -> None:
    assert repr(tool(danger="safe", name="look")(lambda: None)) == "<tool 'look': safe>"
