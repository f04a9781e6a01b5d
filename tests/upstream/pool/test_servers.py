"""Several servers behind one runtime: one that fails, or is no server at all, stops no other."""

import json
import os
import sys

import pytest

from tests.upstream.pool.status import of
from tests.upstream.server_tables import light, tool
from tests.world import World
from toolreeve import ErrorCode, ToolreeveError
from toolreeve.core.events import Event


async def test_one_bad_server_and_one_bad_tool_stop_nothing_else(world: World) -> None:
    offer = {"tools": [tool("good"), tool("bad", inputSchema={"type": "nonsense"}), {"no": "name"}, tool("fine")]}
    servers = {"one": light(), "two": light(offer), "three": {"command": "/nonexistent/server"}}

    async with world.reeve(mcp_servers=servers, mode=None) as reeve:
        states = {status.name: status.state for status in reeve.fleet.status()}
        problems = of(reeve, "two").problems

        assert states == {"one": "up", "two": "up", "three": "failed"}
        assert [name for name in ("two__good", "two__bad", "two__fine") if name in reeve.tools] == [
            "two__good",
            "two__fine",
        ]
        assert "'bad'" in problems[0]
        assert "number 3" in problems[1]
        assert "No such file" in of(reeve, "three").problem


async def test_a_server_that_never_responds_fails_within_its_timeout_with_its_last_output(world: World) -> None:
    script = "import sys, time; print('thinking hard', file=sys.stderr, flush=True); time.sleep(60)"
    server = {"command": sys.executable, "args": ["-c", script], "connect_timeout": 0.7}

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        assert of(reeve, "s").state == "failed"
        assert "thinking hard" in of(reeve, "s").problem
        result = await reeve.call("s__anything")

    assert result.error is not None
    assert result.error.code is ErrorCode.UPSTREAM
    assert "thinking hard" in result.error.message


async def test_a_bad_table_in_code_is_reported_and_the_others_work(world: World) -> None:
    async with world.reeve(mcp_servers={"good": light(), "bad": {"comand": "x"}}) as reeve:
        assert reeve.fleet.names == ("good",)
        assert "bad" in str(reeve.problems[0])


def test_a_runtime_is_not_made_with_what_are_no_servers(world: World) -> None:
    with pytest.raises(ToolreeveError):
        world.reeve(mcp_servers=3)


async def test_without_servers_nothing_is_different(world: World) -> None:
    async with world.reeve(mcp_servers={}) as reeve:
        assert (len(reeve.fleet), reeve.fleet.connecting, reeve.fleet.status()) == (0, False, [])
        assert (await reeve.call("nobody__knows")).error is not None


async def test_servers_that_come_and_go_emit_events(world: World) -> None:
    told: list[tuple[str, str]] = []

    def listen(event: Event) -> None:
        if event.event.startswith("server_"):
            told.append((event.event, event.data["server"]))

    async with world.reeve(mcp_servers={"s": light(danger="safe")}, await_servers=False) as reeve:
        reeve.bus.listen(listen)
        pid = int((await reeve.call("s__pid")).output)
        os.kill(pid, 9)
        await reeve.call("s__pid")

    assert told == [("server_up", "s"), ("server_away", "s"), ("server_up", "s")]


async def test_a_server_finds_only_what_is_declared_in_its_environment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    async with world.reeve(mcp_servers={"s": light(danger="safe", env={"GIVEN": "yes"})}) as reeve:
        found = json.loads((await reeve.call("s__environment")).output)

    assert found["GIVEN"] == "yes"
    assert "OPENAI_API_KEY" not in found
