"""Construction, start and close of a runtime."""

import asyncio
from typing import Any

import pytest

from tests.world import World
from toolreeve import (
    DangerLevel,
    ErrorCode,
    Toolreeve,
    ToolreeveError,
    tool,
)


async def test_calls_before_the_start_say_how_to_start(world: World) -> None:
    with pytest.raises(ToolreeveError, match="async with"):
        await world.reeve().call("get_datetime")


def test_an_unknown_argument_of_the_constructor_raises() -> None:
    with pytest.raises(TypeError, match="wrkspace"):
        Toolreeve(wrkspace=".")  # type: ignore[call-arg]


def _answer_nothing() -> bool:
    return True


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"approve": 5}, "approve=5"),
        ({"approve": [5]}, "approve=5"),
        ({"approve": _answer_nothing}, "called with the request alone"),
        ({"policy": 5}, "policy=5"),
        ({"policy": ["deny all"]}, "PermissionRule"),
        ({"tools": 5}, "tools=5"),
        ({"tools": _answer_nothing}, "pass a list"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_at_once(world: World, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolreeveError, match=said):
        world.reeve(**options)


def test_two_tools_of_one_name_are_an_error_that_names_both(world: World) -> None:
    @tool
    def read_file() -> None:
        """Another one."""

    with pytest.raises(ToolreeveError, match="two tools are called 'read_file'"):
        world.reeve(tools=[read_file])


async def test_closing_ends_the_calls_under_way_with_a_code_and_a_record(world: World) -> None:
    begun = asyncio.Event()

    @tool(danger=DangerLevel.LOW, read_only=False)
    async def hang() -> None:
        """Never end."""
        begun.set()
        await asyncio.Event().wait()

    reeve = await world.reeve(tools=[hang]).start()
    hanging = asyncio.create_task(reeve.call("hang"))
    await begun.wait()
    await reeve.close()
    result = await hanging

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED
    async with world.reeve() as later:
        records = await later.audit.show(result.meta.call_id)
    assert [record.kind for record in records] == ["intent", "call"]


async def test_a_tool_that_closes_the_runtime_ends_with_it(world: World) -> None:
    @tool(danger=DangerLevel.SAFE)
    async def close() -> None:
        """Close the runtime that runs me."""
        await reeve.close()

    async with world.reeve(tools=[close]) as reeve:
        result = await reeve.call("close")

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED
    async with world.reeve() as later:
        assert [record.kind for record in await later.audit.show(result.meta.call_id)] == ["call"]


async def test_a_runtime_is_started_once(world: World) -> None:
    reeve = await world.reeve().start()

    with pytest.raises(ToolreeveError, match="started only once"):
        await reeve.start()
    await reeve.close()
    await reeve.close()
    with pytest.raises(ToolreeveError, match="started only once"):
        await reeve.start()


@pytest.mark.parametrize(
    ("builtin", "names"),
    [
        (False, []),
        ((), []),
        ("calculate,undo", ["calculate", "undo"]),
        (["utility", "-calculate"], ["get_datetime"]),
    ],
)
def test_the_builtin_tools_can_be_left_out_or_chosen(world: World, builtin: Any, names: list[str]) -> None:
    reeve = world.reeve(builtin=builtin)

    assert [bound.spec.name for bound in reeve.tools] == names


def test_a_builtin_toolset_with_a_typo_is_refused(world: World) -> None:
    with pytest.raises(ToolreeveError, match="did you mean 'calculate'"):
        world.reeve(builtin=["calculat"])


async def test_whatever_did_not_load_is_a_problem_and_a_log_line(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    settings = world.settings(tool_files=(str(world.workspace / "mispelt.yaml"),))

    async with world.reeve(settings=settings, mcp_servers={"bad": {"command": "no-such-program"}}) as reeve:
        problems = "\n".join(map(str, reeve.problems))

    assert "mispelt.yaml" in problems
    assert "mcp_servers.bad" in problems
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "no-such-program" in caplog.text


def test_the_root_directory_is_refused_as_a_workspace_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.delenv("TOOLREEVE_WORKSPACE_DIR", raising=False)

    with pytest.raises(ToolreeveError, match="whole file system"):
        Toolreeve()


async def test_a_home_directory_as_workspace_is_said_loudly(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HOME", str(world.workspace))

    async with world.reeve():
        pass

    assert "your whole home directory" in caplog.text


def test_the_modes_that_are_advised_include_bypass() -> None:
    with pytest.raises(ToolreeveError, match="command line bypass"):
        Toolreeve(mode="x")
