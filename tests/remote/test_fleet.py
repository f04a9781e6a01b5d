"""Several servers behind one runtime: what is there, what is left out, and what becomes of calls."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.remote.people import Person
from tests.remote.place import descendants, from_file, light, tool
from tests.world import World
from toolreeve import ErrorCode, PermissionMode, PermissionRule, Toolreeve, ToolreeveError
from toolreeve.config import Policy
from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.events import Event
from toolreeve.core.peer import Era
from toolreeve.remote.status import ServerStatus

ANYTHING = {
    "content": [
        {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "x-unknown": [1, {"deep": None}]},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "é\u2028", "_meta": {"k": 1.5}}},
        {"type": "resource_link", "uri": "x://y", "name": "y"},
        {"type": "text", "text": "first"},
        {"type": "text", "text": "second"},
    ],
    "structuredContent": {"a": [1, 2.5, None, "ü"], "deep": {"er": {}}},
    "_meta": {"vendor/x": True},
    "notYetInvented": {"z": 0},
}


def of(reeve: Toolreeve, name: str) -> ServerStatus:
    return next(status for status in reeve.fleet.status() if status.name == name)


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


async def test_a_server_without_a_prefix_cannot_offer_a_tool_under_another_servers_name(world: World) -> None:
    servers = {
        "git": light({"tools": [tool("status")]}),
        "bare": light({"tools": [tool("git__push"), tool("git__status"), tool("own__one")]}, prefix=""),
    }

    async with world.reeve(mcp_servers=servers) as reeve:
        assert {bound.spec.name: bound.spec.server for bound in reeve.tools.list() if bound.spec.server} == {
            "git__status": "git",
            "own__one": "bare",
        }
        assert "would be a name of the server 'git'" in of(reeve, "bare").problems[0]


async def test_an_answer_passes_unharmed(world: World) -> None:
    server = light({"tools": [tool("any")], "answers": {"any": ANYTHING}}, danger="safe")

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__any")

    assert result.to_mcp() == ANYTHING
    assert result.data == ANYTHING["structuredContent"]
    assert result.output == "first\nsecond"
    assert tuple(result.meta.labels) == ("untrusted",)


async def test_a_definition_passes_unharmed(world: World) -> None:
    declared = tool(
        "t",
        title="T",
        inputSchema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
            "properties": {"at": {"$ref": "#/$defs/p"}},
        },
        outputSchema={"type": "object", "properties": {"y": {"type": "string"}}},
        icons=[{"src": "data:"}],
        _meta={"a": [1]},
    )

    async with world.reeve(mcp_servers={"s": light({"tools": [declared]}, danger="safe")}) as reeve:
        spec = reeve.tools.resolve("s__t").spec
        refused = await reeve.call("s__t", at={"x": "far"})

    assert spec.declared == declared
    assert (spec.input, spec.output) == (declared["inputSchema"], declared["outputSchema"])
    assert refused.error is not None
    assert refused.error.code is ErrorCode.INVALID_PARAMS


async def test_what_a_tool_reports_as_failed_failed(world: World) -> None:
    failed = {"content": [{"type": "text", "text": "no such thing"}], "isError": True, "_meta": {"kept": 1}}
    server = light({"tools": [tool("t")], "answers": {"t": failed}}, danger="safe")

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__t")

    assert result.error is not None
    assert (result.error.code, result.error.message) == (ErrorCode.TOOL_EXEC, "no such thing")
    assert result.to_mcp() == failed


async def test_an_error_of_the_protocol_is_handed_on_as_it_came(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"tools": [tool("unknown")]}, danger="safe")}) as reeve:
        result = await reeve.call("s__unknown")

    assert result.error is not None
    assert result.error.code is ErrorCode.UPSTREAM
    told = {"code": -32601, "message": "no tools/call", "data": {"kept": [1]}}
    assert result.error.detail == {"jsonrpc": told}
    assert not result.error.retryable


@pytest.mark.parametrize(
    ("annotations", "configured", "level", "read_only"),
    [
        ({"readOnlyHint": True}, {}, DangerLevel.HIGH, False),
        ({"readOnlyHint": True}, {"trusted": True}, DangerLevel.LOW, True),
        ({"destructiveHint": False}, {"trusted": True}, DangerLevel.MEDIUM, False),
        ({}, {"trusted": True}, DangerLevel.HIGH, False),
        ({"readOnlyHint": "yes"}, {"trusted": True}, DangerLevel.HIGH, False),
        ({"readOnlyHint": True}, {"trusted": True, "danger": {"t*": "critical"}}, DangerLevel.CRITICAL, True),
        ({}, {"danger": "safe"}, DangerLevel.SAFE, True),
        ({}, {"danger": {"t": "low", "*": "critical"}}, DangerLevel.LOW, False),
    ],
)
async def test_danger_is_what_the_user_says_then_what_a_trusted_server_says(
    world: World, annotations: dict[str, Any], configured: dict[str, Any], level: DangerLevel, *, read_only: bool
) -> None:
    server = light({"tools": [tool("t", annotations=annotations)]}, **configured)

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        spec = reeve.tools.resolve("s__t").spec

    assert (spec.danger, spec.read_only) == (level, read_only)


async def test_a_tool_of_an_untrusted_server_is_not_run_unasked_whatever_it_says(world: World) -> None:
    server = light({"tools": [tool("echo", annotations={"readOnlyHint": True, "destructiveHint": False})]})

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__echo")

    assert result.error is not None
    assert result.error.code in (ErrorCode.APPROVAL_DENIED, ErrorCode.PERMISSION, ErrorCode.APPROVAL_TIMEOUT)


async def test_only_what_is_allowed_and_not_denied_is_there(world: World) -> None:
    server = light(allow=["echo", "p*", "die"], deny=["die"])

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        names = [bound.spec.name for bound in reeve.tools.list() if bound.spec.server == "s"]
        denied = await reeve.call("s__die")

    assert names == ["s__echo", "s__pid"]
    assert denied.error is not None
    assert denied.error.code is ErrorCode.TOOL_NOT_FOUND


async def test_of_two_tools_with_one_name_the_first_stays_and_the_other_is_told_of(world: World) -> None:
    twice = {"tools": [tool("a b"), tool("a_b", description="another")]}
    servers = {
        "s": light(twice),
        "x": light({"tools": [tool("s__a_b"), tool("read_file"), tool("bash_command")]}, prefix=""),
    }

    async with world.reeve(mcp_servers=servers, await_servers=True) as reeve:
        both = (*of(reeve, "s").problems, *of(reeve, "x").problems)
        assert "'a b' is already called 's__a_b'" in of(reeve, "s").problems[0]
        assert any("two tools are called 'read_file'" in problem for problem in both)
        assert any("another spelling of 'bash'" in problem for problem in both)
        assert reeve.tools.resolve("read_file").spec.server is None
        assert any("'s__a_b' would be a name of the server 's'" in problem for problem in both)


async def test_names_that_look_alike_are_left_out(world: World) -> None:
    offer = {"tools": [tool("reаd"), tool("re\u200bad"), tool("read")]}

    async with world.reeve(mcp_servers={"s": light(offer)}) as reeve:
        names = [bound.spec.name for bound in reeve.tools.list() if bound.spec.server == "s"]
        problems = of(reeve, "s").problems

    assert names == ["s__read"]
    assert len(problems) == 2
    assert all(problem.isascii() and problem.isprintable() for problem in problems)


async def test_a_list_in_pages_is_read_to_its_end(world: World) -> None:
    offer = {"tools": [tool(f"t{number}") for number in range(25)], "page": 10}

    async with world.reeve(mcp_servers={"s": light(offer)}) as reeve:
        assert of(reeve, "s").tools == 25


async def test_a_list_that_goes_round_in_circles_is_given_up(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"circle": True}), "ok": light()}) as reeve:
        assert (of(reeve, "s").state, of(reeve, "ok").state) == ("failed", "up")
        assert "circles" in of(reeve, "s").problem


async def test_more_tools_than_anyone_needs_are_refused(world: World, tmp_path: Path) -> None:
    many = {"tools": [{"name": f"t{number}", "inputSchema": {}} for number in range(10_001)]}

    async with world.reeve(mcp_servers={"s": from_file(tmp_path / "many.json", many)}) as reeve:
        assert "more than 10000" in of(reeve, "s").problem


async def test_a_server_that_never_answers_fails_within_its_time_and_says_its_last_words(world: World) -> None:
    script = "import sys, time; print('thinking hard', file=sys.stderr, flush=True); time.sleep(60)"
    server = {"command": sys.executable, "args": ["-c", script], "connect_timeout": 0.7}

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        assert of(reeve, "s").state == "failed"
        assert "thinking hard" in of(reeve, "s").problem
        result = await reeve.call("s__anything")

    assert result.error is not None
    assert result.error.code is ErrorCode.UPSTREAM
    assert "thinking hard" in result.error.message


async def test_a_changed_list_changes_the_registry_by_its_differences(world: World, tmp_path: Path) -> None:
    path = tmp_path / "offer.json"
    server = from_file(path, {"tools": [tool("relist"), tool("old"), tool("kept")]}, danger="safe")

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        kept = reeve.tools.get("s__kept")
        path.write_text(json.dumps({"tools": [tool("relist"), tool("kept"), tool("new")]}))
        changed = asyncio.Event()
        reeve.tools.watch(lambda: changed.set() if "s__new" in reeve.tools else None)

        await reeve.call("s__relist")
        await asyncio.wait_for(changed.wait(), 10)

        assert "s__old" not in reeve.tools
        assert reeve.tools.get("s__kept") is kept


async def test_a_killed_server_is_started_again_for_the_next_call(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger={"die": "critical", "*": "safe"})}) as reeve:
        first = int((await reeve.call("s__pid")).output)
        os.kill(first, 9)
        second = int((await reeve.call("s__pid")).output)

    assert first != second


async def test_a_call_under_way_when_its_server_dies_fails_and_is_not_repeated(world: World, tmp_path: Path) -> None:
    counted = tmp_path / "count"
    script = (
        "import sys, json, os\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m.get('method') == 'initialize':\n"
        "        r = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {}}\n"
        "    elif m.get('method') == 'tools/list':\n"
        "        r = {'tools': [{'name': 'once', 'inputSchema': {}}]}\n"
        "    elif m.get('method') == 'tools/call':\n"
        f"        open({str(counted)!r}, 'a').write('x'); print('so sad', file=sys.stderr, flush=True); os._exit(3)\n"
        "    else: continue\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
    )
    server = {"command": sys.executable, "args": ["-S", "-c", script], "danger": "low"}

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        result = await reeve.call("s__once")

    assert result.error is not None
    assert result.error.code is ErrorCode.UPSTREAM
    assert "so sad" in result.error.message
    assert counted.read_text() == "x"


async def test_a_call_that_only_reads_by_the_users_word_is_repeated_once(world: World, tmp_path: Path) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe")}) as reeve:
        pid = int((await reeve.call("s__pid")).output)
        sleeping = asyncio.create_task(reeve.call("s__sleep", seconds=0.5))
        await asyncio.sleep(0)
        os.kill(pid, 9)
        result = await sleeping

    assert result.success


async def test_a_call_waits_for_a_server_to_come_back_no_longer_than_its_own_time(world: World, tmp_path: Path) -> None:
    flag = tmp_path / "up"
    flag.touch()
    script = (
        "import os, runpy, sys\n"
        f"if not os.path.exists({str(flag)!r}): print('not today', file=sys.stderr); sys.exit(4)\n"
        f"sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    table = light(danger="safe")
    table["args"] = ["-S", "-c", script, *table["args"][2:]]

    async with world.reeve(mcp_servers={"s": table}) as reeve:
        pid = int((await reeve.call("s__pid")).output)
        flag.unlink()
        os.kill(pid, 9)
        away = await reeve.run(ToolCall(tool="s__pid", args={}, timeout=2.0))
        flag.touch()
        back = await reeve.run(ToolCall(tool="s__pid", args={}, timeout=20.0))

    assert away.error is not None
    assert away.error.code is ErrorCode.UPSTREAM
    assert "not today" in away.error.message
    assert back.success


async def test_a_call_before_its_server_is_connected_waits_for_it(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe")}, await_servers=False) as reeve:
        assert reeve.fleet.connecting
        assert "s__echo" not in reeve.tools
        result = await reeve.call("mcp__s__echo", a=1)

    assert result.data == {"a": 1}


async def test_a_call_that_waits_for_a_server_can_be_cancelled_and_is_on_record(world: World) -> None:
    silent = {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}

    async with world.reeve(mcp_servers={"s": silent}, await_servers=False) as reeve:
        call = ToolCall(tool="s__x", args={})
        waiting = asyncio.create_task(reeve.run(call))
        await asyncio.sleep(0)
        assert reeve.cancel(call.id)
        result = await waiting

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED


async def test_nothing_of_a_server_is_left_when_the_runtime_is_closed(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe"), "t": light(danger="safe")}) as reeve:
        pids = [int((await reeve.call(f"{name}__pid")).output) for name in "st"]

    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


async def test_a_server_finds_only_what_is_declared_in_its_environment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")

    async with world.reeve(mcp_servers={"s": light(danger="safe", env={"GIVEN": "yes"})}) as reeve:
        found = json.loads((await reeve.call("s__environment")).output)

    assert found["GIVEN"] == "yes"
    assert "OPENAI_API_KEY" not in found


async def test_a_secret_that_a_server_was_given_does_not_come_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PASS", "open-sesame-1234")
    server = light(danger="safe", env={"PASS": "${secret:PASS}"})

    async with world.reeve(mcp_servers={"s": server}) as reeve:
        assert reeve.problems == ()
        result = await reeve.call("s__environment")

    assert "open-sesame-1234" not in json.dumps(result.to_dict()) + json.dumps(result.to_mcp())
    assert "[redacted]" in result.to_text()
    assert b"open-sesame-1234" not in world.database_bytes()


async def test_servers_that_come_and_go_are_told_of(world: World) -> None:
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


def reading(uri: str) -> ToolCall:
    return ToolCall(tool="s__resources/read", args={"uri": uri}, peer=Person())


def library(**more: Any) -> dict[str, Any]:
    listed = {"resources": [{"uri": "x://a", "name": "a"}]}
    return light({"answers": {"resources/list": listed} | more, "capabilities": {"tools": {}, "resources": {}}})


async def test_hidden_tools_take_requests_down_the_road_and_are_listed_nowhere(world: World) -> None:
    contents = {"contents": [{"uri": "x://a", "blob": "AAAA"}], "_meta": {"k": 1}}

    async with world.reeve(mcp_servers={"s": library(**{"resources/read": contents})}) as reeve:
        await reeve.fleet.resources()
        result = await reeve.run(reading("x://a"))
        recent = await reeve.audit.recent(last_n=1, filters={})

        assert result.to_mcp() == contents
        assert [name for name in (bound.spec.name for bound in reeve.tools.list()) if "/" in name] == []
        assert recent[0]["tool"] == "s__resources/read"


async def test_no_caller_but_a_door_can_mean_a_hidden_tool(world: World) -> None:
    async with world.reeve(mcp_servers={"s": library()}) as reeve:
        result = await reeve.call("s__resources/read", uri="x://a")

    assert result.error is not None
    assert result.error.code is ErrorCode.TOOL_NOT_FOUND
    assert "resources/read" not in " ".join(result.error.suggestions)


async def test_a_place_that_an_untrusted_server_does_not_list_is_asked_about(world: World) -> None:
    answer: dict[str, Any] = {"resources/read": {"contents": []}}
    for trusted, may in ((False, False), (True, True)):
        server = {**library(**answer), "trusted": trusted}
        async with world.reeve(mcp_servers={"s": server}) as reeve:
            await reeve.fleet.resources()
            listed, other = await reeve.run(reading("x://a")), await reeve.run(reading("x://secret=42"))

        assert (listed.success, other.success) == (True, may)


async def test_a_rule_that_denies_a_server_denies_its_resources(world: World) -> None:
    rules = [PermissionRule(decision="deny", tool="s__*")]

    async with world.reeve(mcp_servers={"s": library()}, policy=rules) as reeve:
        result = await reeve.run(reading("x://a"))

    assert result.error is not None
    assert result.error.code is ErrorCode.DENIED


async def test_resources_of_all_servers_are_listed_with_their_server(world: World) -> None:
    def having(*uris: str) -> dict[str, Any]:
        listed = {"resources": [{"uri": uri, "name": uri} for uri in uris]}
        return light({"answers": {"resources/list": listed}, "capabilities": {"resources": {}}})

    async with world.reeve(mcp_servers={"a": having("x://1", "x://2"), "b": having("y://1"), "c": light()}) as reeve:
        found = [(server, item["uri"]) for server, item in await reeve.fleet.resources()]
        prompts = await reeve.fleet.prompts()

    assert found == [("a", "x://1"), ("a", "x://2"), ("b", "y://1")]
    assert prompts == []


async def test_plan_mode_reads_resources_and_calls_no_tool(world: World) -> None:
    settings = world.settings(policy=Policy(mode=PermissionMode.PLAN.value))
    server = light({"answers": {"resources/read": {"contents": []}}, "capabilities": {"resources": {}, "tools": {}}})

    async with world.reeve(settings=settings, mcp_servers={"s": server}) as reeve:
        read, called = await reeve.run(reading("x://a")), await reeve.call("s__echo")

    assert read.success
    assert not called.success


async def test_without_servers_nothing_is_different(world: World) -> None:
    async with world.reeve(mcp_servers={}) as reeve:
        assert (len(reeve.fleet), reeve.fleet.connecting, reeve.fleet.status()) == (0, False, [])
        assert (await reeve.call("nobody__knows")).error is not None


@pytest.mark.parametrize("moments", [0, 1, 2, 5, 20, 200])
async def test_a_runtime_that_is_closed_while_servers_connect_leaves_none(world: World, moments: int) -> None:
    silent = {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]}
    before = descendants()

    async with asyncio.timeout(20), world.reeve(mcp_servers={"s": silent, "t": light()}, await_servers=False) as reeve:
        for _ in range(moments):
            await asyncio.sleep(0)

    assert not reeve.fleet.connecting
    assert descendants() - before == set()


@pytest.mark.parametrize("moments", [1, 2, 5, 20, 200])
async def test_a_runtime_that_is_closed_while_servers_are_restarted_leaves_none(world: World, moments: int) -> None:
    before = descendants()

    async with asyncio.timeout(20), world.reeve(mcp_servers={"s": light(danger="safe")}) as reeve:
        os.kill(int((await reeve.call("s__pid")).output), 9)
        calling = asyncio.create_task(reeve.call("s__pid"))
        for _ in range(moments):
            await asyncio.sleep(0)
        await reeve.close()
        await calling

    assert descendants() - before == set()


async def test_a_bad_table_in_code_is_told_of_and_the_others_work(world: World) -> None:
    async with world.reeve(mcp_servers={"good": light(), "bad": {"comand": "x"}}) as reeve:
        assert reeve.fleet.names == ("good",)
        assert "bad" in str(reeve.problems[0])


def test_a_runtime_is_not_made_with_what_are_no_servers(world: World) -> None:
    with pytest.raises(ToolreeveError):
        world.reeve(mcp_servers=3)


async def test_a_caller_of_the_modern_era_is_served_by_a_server_that_knows_only_the_legacy_one(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light(danger="safe")}) as reeve:
        calls = [ToolCall(tool="s__pid", args={}, peer=Person(era=Era.MODERN)) for _ in range(2)]
        first, second = [await reeve.run(call) for call in calls]
        alone = await reeve.call("s__pid")

    assert first.output == second.output == alone.output


async def test_a_server_that_knows_only_the_modern_era_serves_everybody(world: World) -> None:
    async with world.reeve(mcp_servers={"s": light({"modern": True}, danger="safe")}) as reeve:
        peers = [None, Person(), Person(era=Era.MODERN)]
        calls = [ToolCall(tool="s__echo", args={"a": 1}, peer=peer) for peer in peers]
        results = [await reeve.run(call) for call in calls]

        assert of(reeve, "s").era == Era.MODERN
        assert [result.data for result in results] == [{"a": 1}] * 3


async def test_a_server_that_always_has_news_holds_up_nobody(world: World) -> None:
    noisy = light(
        {"noisy": True, "tools": [tool("echo"), *(tool(f"t{number}") for number in range(200))]}, danger="safe"
    )

    async with world.reeve(mcp_servers={"noisy": noisy, "calm": light(danger="safe")}) as reeve:
        async with asyncio.timeout(20):
            for number in range(50):
                assert (await reeve.call("noisy__echo", n=number)).data == {"n": number}
                assert (await reeve.call("calm__echo", n=number)).data == {"n": number}
