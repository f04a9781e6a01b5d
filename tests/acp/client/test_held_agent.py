"""Agents that lie, flood, hang and crash: each is held all the same."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.acp.holding import (
    ALLOW_ALWAYS,
    OPTIONS,
    REJECT,
    Person,
    asks,
    chosen,
    found,
    found_after,
    holding,
    received,
    requests,
    write_script,
)
from toolreeve.core.errors import ToolError


async def test_a_turn_merges_the_updates_of_an_agent(tmp_path: Path) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Edit", "status": "pending"}
    later = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "title": None}
    plan = {"sessionUpdate": "plan", "entries": [{"content": "think", "priority": "low", "status": "pending"}]}
    steps = [
        {"send": {"method": "session/update", "params": {"sessionId": "s1", "update": each}}}
        for each in (call, later, plan, {"sessionUpdate": "of the future"})
    ]

    async with holding(tmp_path, *steps) as agent:
        turn = await agent.prompt("go")

    assert turn.calls == {"c1": {"toolCallId": "c1", "title": "Edit", "status": "completed"}}
    assert (turn.text, turn.stop, turn.plan[0]["content"]) == ("done", "end_turn", "think")


async def test_files_of_an_agent_go_through_the_road(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("one\ntwo\nthree\n")
    (work / ".env").write_text("TOKEN=secret-value-of-the-user")
    steps = [
        requests("fs/read_text_file", path=str(work / "a.txt"), line=2, limit=1),
        requests("fs/read_text_file", path=str(work / "missing")),
        requests("fs/read_text_file", path=str(work / "../home/script.json")),
        requests("fs/read_text_file", path=str(work / ".env")),
        requests("fs/write_text_file", path=str(tmp_path / "outside"), content="x"),
        requests("fs/write_text_file", path=str(work / "b.txt"), content="new"),
        requests("fs/read_text_file", path=7),
    ]

    async with holding(tmp_path, *steps, person=Person(says=True)) as agent:
        await agent.prompt("go")

    one, missing, climbing, secret, outside, written, wrong = found(tmp_path)["answers"]
    assert one["result"] == {"content": "two\n"}
    assert (missing["error"]["code"], missing["error"]["message"]) == (-32002, "Resource not found")
    assert "result" not in climbing
    assert "result" not in secret
    assert "result" not in outside
    assert not (tmp_path / "outside").exists()
    assert written["result"] == {}
    assert (work / "b.txt").read_text() == "new"
    assert wrong["error"]["code"] == -32602


async def test_commands_of_an_agent_run_in_our_sandbox(tmp_path: Path) -> None:
    steps = [
        requests("terminal/create", command="printf", args=["%s-%s", "a b", "c"]),
        requests("terminal/wait_for_exit", terminalId="$terminal"),
        requests("terminal/output", terminalId="$terminal"),
        requests("terminal/release", terminalId="$terminal"),
    ]
    async with holding(tmp_path, *steps, person=Person(says=True)) as agent:
        await agent.prompt("go")

    _, status, output, released = (each["result"] for each in found(tmp_path)["answers"])
    assert status == {"exitCode": 0, "signal": None}
    assert output == {"output": "a b-c", "truncated": False, "exitStatus": status}
    assert released == {}


async def test_the_output_of_a_command_is_shown_while_it_runs(tmp_path: Path) -> None:
    ask = requests("terminal/output", terminalId="$terminal")["request"]
    steps = [
        requests(
            "terminal/create",
            command="echo first; until [ -e opened ]; do sleep 0.01; done; echo second",
            outputByteLimit=100,
        ),
        {"until": "first", "ask": ask},
        requests("fs/write_text_file", path="opened", content="x"),
        {"until": "exitStatus", "ask": ask},
    ]
    async with holding(tmp_path, *steps, person=Person(says=True)) as agent:
        await agent.prompt("go")

    shown = [each["result"] for each in found(tmp_path)["answers"] if "output" in each["result"]]
    assert {"output": "first\n", "truncated": False} in shown
    assert shown[-1]["output"] == "first\nsecond\n"


async def test_nothing_is_done_for_an_agent_between_its_turns(tmp_path: Path) -> None:
    work = tmp_path / "work"
    after = [
        requests("fs/write_text_file", path=str(work / "a"), content="x"),
        requests("fs/read_text_file", path=str(work / "b")),
        requests("terminal/create", command="touch c"),
        asks({"title": "t", "kind": "execute", "rawInput": {"command": "touch d"}}),
        requests("terminal/output", terminalId="none"),
        {"call": ["write_file", {"path": "e", "content": "x"}]},
    ]
    person = Person(says=True)
    async with holding(tmp_path, person=person, script={"after": after}, tools=True) as agent:
        await agent.prompt("go")
        kept = await found_after(tmp_path)

    first, *refused = [each["error"]["code"] for each in kept["answers"]]
    assert first in (-32600, -32800)  # it may come with the end of the turn
    assert refused == [-32600, -32600, -32600, -32002]
    assert "no turn is running" in kept["called"][0]["error"]["message"]
    assert person.asked == []
    assert list(work.iterdir()) == []


async def test_what_an_agent_left_to_be_decided_ends_with_its_turn(tmp_path: Path) -> None:
    """It asks and does not wait: a later yes would make it act between its turns."""
    late = asyncio.Event()

    class Late(Person):
        async def __call__(self, request: Any) -> bool:
            self.asked.append(request)
            await late.wait()
            return True

    steps: list[dict[str, Any]] = [
        {"send": {"id": "w", **requests("fs/write_text_file", path="a", content="x")["request"]}},
        {"request": requests("terminal/create", command="touch b")["request"]},
        {"request": requests("fs/read_text_file", path="none")["request"]},
    ]
    person = Late(says=True)
    async with holding(tmp_path, *steps, person=person, script={"after": [{"await": "w"}]}) as agent:
        await agent.prompt("go")
        late.set()
        kept = await found_after(tmp_path)
        pending = (await agent.road.reeve.approvals.list()).items

    assert kept["answers"][-1]["error"]["code"] == -32800
    assert pending == []
    assert list((tmp_path / "work").iterdir()) == []


async def test_an_agent_never_answers_for_a_person(tmp_path: Path) -> None:
    """Over MCP it declares that it can be asked, and would say yes to everything."""
    write = {"call": ["write_file", {"path": "a", "content": "x"}]}
    async with holding(tmp_path, write, tools=True) as agent:
        await agent.prompt("go")

    kept = found(tmp_path)
    assert "elicited" not in kept
    assert kept["called"][0]["result"]["isError"] is True
    assert not (tmp_path / "work" / "a").exists()


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "current_mode_update", "currentModeId": "auto"},
        {"sessionUpdate": "config_option_update", "configOptions": [{"category": "mode", "currentValue": "auto"}]},
    ],
)
async def test_an_agent_that_leaves_its_asking_mode_loses_its_turn(tmp_path: Path, update: dict[str, Any]) -> None:
    modes = {"currentModeId": "ask", "availableModes": [{"id": "auto", "name": "a"}, {"id": "ask", "name": "b"}]}
    stays = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
    steps = [
        {"send": {"method": "session/update", "params": {"sessionId": "s1", "update": each}}}
        for each in (stays, update)
    ]
    async with holding(tmp_path, *steps, {"hang": True}, script={"modes": modes}, mode="ask") as agent:
        with pytest.raises(ToolError, match=r"left the mode 'ask' that asks for everything, for 'auto'"):
            await agent.prompt("go")


async def test_an_agent_that_crashes_in_its_turn_is_explained(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [{"stderr": "the reason of the crash\n"}, {"exit": 3}]
    async with holding(tmp_path, *steps) as agent:
        with pytest.raises(ToolError, match=r"exit code 3; it said last: the reason of the crash"):
            await agent.prompt("go")


async def test_an_agent_that_never_answers_times_out(tmp_path: Path) -> None:
    async with holding(tmp_path, {"hang": True}, timeout=0.5) as agent:
        with pytest.raises(ToolError, match=r"within 0\.5 s \(timeout\)"):
            await agent.prompt("go")

    assert received(tmp_path)[-1]["method"] == "session/cancel"


async def test_an_agent_that_floods_loses_its_turn(tmp_path: Path) -> None:
    async with holding(tmp_path, {"flood": 100}) as agent:
        with pytest.raises(ToolError, match=r"more than 8,000,000 characters in one turn"):
            await agent.prompt("go")


async def test_an_agent_that_floods_its_error_stream_is_not_blocked(tmp_path: Path) -> None:
    async with holding(tmp_path, {"stderr": "noise\n", "times": 200_000}) as agent:
        assert (await agent.prompt("go")).text == "done"


async def test_without_a_mode_that_asks_there_is_no_prompt(tmp_path: Path) -> None:
    modes = {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}]}
    with pytest.raises(ToolError, match=r"no mode 'approve' that asks for everything \(mode\); it has auto"):
        async with holding(tmp_path, script={"modes": modes}, mode="approve"):
            pass

    assert "session/prompt" not in [each.get("method") for each in received(tmp_path)]


@pytest.mark.parametrize(("mode", "works"), [("ask", True), ("as", False)])
async def test_the_asking_mode_may_be_a_configuration_option(tmp_path: Path, mode: str, works: bool) -> None:
    values = [{"value": "auto", "name": "Auto"}, {"value": "ask", "name": "Ask"}]
    option = {"id": "approvals", "category": "mode", "type": "select", "currentValue": "auto", "options": values}
    try:
        async with holding(tmp_path, script={"options": [option]}, mode=mode) as agent:
            await agent.prompt("go")
    except ToolError:
        assert not works
        return

    assert works
    sent = next(each["params"] for each in received(tmp_path) if each["method"] == "session/set_config_option")
    assert sent == {"sessionId": "s1", "configId": "approvals", "value": "ask"}


async def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"it speaks version 7, not 1"):
        async with holding(tmp_path, script={"version": 7}):
            pass


async def test_the_sandbox_holds_an_agent_that_does_not_ask(tmp_path: Path) -> None:
    """Its workspace is read-only, for it says that it works through us; and it has no network."""
    steps: list[dict[str, Any]] = [{"write": str(tmp_path / "work" / "own.txt")}, {"connect": ["127.0.0.1", 3128]}]
    async with holding(tmp_path, *steps, profile="goose", mode="") as agent:
        await agent.prompt("go")

    assert found(tmp_path)["write"] in ("OSError", "PermissionError")
    assert found(tmp_path)["connect"] != "worked"
    assert not (tmp_path / "work" / "own.txt").exists()


@pytest.mark.parametrize(
    "call",
    [
        {"title": "ls", "kind": "read", "rawInput": {"command": "rm -rf src"}},
        {"title": "List files", "kind": "other", "rawInput": {"cmd": ["rm", "-rf", "src"]}},
        {"title": "read_file", "kind": "read", "rawInput": {"path": "a.txt", "command": "rm -rf src"}},
    ],
)
async def test_a_permission_that_lies_about_its_command_is_asked_as_what_it_does(
    tmp_path: Path, call: dict[str, Any]
) -> None:
    person = Person(says=False)
    async with holding(tmp_path, asks(call), person=person) as agent:
        turn = await agent.prompt("go")

    assert [(each.tool, each.args["command"]) for each in person.asked] == [("bash", "rm -rf src")]
    assert chosen(tmp_path) == ["cancel"]
    assert "refused" in turn.refusals[0]


async def test_only_metadata_makes_a_call_one_of_our_tools(tmp_path: Path) -> None:
    """A title may be what the model wrote, so it is asked about."""
    person = Person(says=False)
    write_script(tmp_path, {"steps": []})
    async with holding(tmp_path, person=person, tools=True) as agent:
        ours = f"{agent._own_server}__read_file"
        claimed = {"title": ours, "kind": "other", "rawInput": {"x": 1}}
        declared = {**claimed, "_meta": {"claudeCode": {"toolName": f"mcp__{ours}"}}}
        answers = [await agent._permissions.answer(each, OPTIONS, cwd="/") for each in (claimed, declared)]

    assert [outcome["outcome"]["optionId"] for outcome, _ in answers] == ["cancel", "proceed_once"]
    assert len(person.asked) == 1


async def test_a_yes_is_for_once_and_never_for_always(tmp_path: Path) -> None:
    call = {"title": "touch x", "kind": "execute", "rawInput": {"command": "touch x"}}
    steps = (asks(call), asks(call, [ALLOW_ALWAYS, REJECT]), asks(call, [ALLOW_ALWAYS]), asks(call, "no list"))
    async with holding(tmp_path, *steps, person=Person(says=True)) as agent:
        await agent.prompt("go")

    assert chosen(tmp_path) == ["proceed_once", "cancel", "cancelled", "cancelled"]


async def test_nobody_to_ask_means_no(tmp_path: Path) -> None:
    call = {"title": "mystery", "kind": "other", "rawInput": {"sql": "drop table"}}
    async with holding(tmp_path, asks(call)) as agent:
        await agent.prompt("go")

    assert chosen(tmp_path) == ["cancel"]


async def test_a_cancelled_turn_cancels_its_questions(tmp_path: Path) -> None:
    asked = asyncio.Event()

    class Slow(Person):
        async def __call__(self, _: Any) -> bool:
            asked.set()
            await asyncio.Event().wait()
            return True

    call = {"title": "rm", "kind": "execute", "rawInput": {"command": "rm x"}}
    async with holding(tmp_path, asks(call), person=Slow(says=True)) as agent:
        running = asyncio.create_task(agent.prompt("go"))
        await asyncio.wait_for(asked.wait(), 30)
        agent.cancel()
        await running

    assert chosen(tmp_path) == ["cancelled"]


async def test_ids_and_sessions_that_are_not_its_own_are_refused(tmp_path: Path) -> None:
    wait = {"sessionId": "s1", "command": "sleep 30"}
    steps: list[dict[str, Any]] = [
        {"send": {"id": 1, "method": "terminal/create", "params": wait}},
        {"await": 1},
        {"send": {"id": [2], "method": "fs/read_text_file", "params": {}}},
        {"await": None},
        {"request": {"method": "fs/read_text_file", "params": {"sessionId": "other", "path": "/etc/passwd"}}},
        {"request": {"method": "fs/delete_everything", "params": {"sessionId": "s1"}}},
        {"request": {"method": "fs/read_text_file", "params": ["x"]}},
    ]
    async with holding(tmp_path, *steps) as agent:
        await agent.prompt("go")

    answers = found(tmp_path)["answers"]
    assert [each.get("error", {}).get("code") for each in answers] == [None, -32600, -32602, -32601, -32602]


async def test_the_tools_of_another_caller_are_out_of_reach(tmp_path: Path) -> None:
    steps = [{"tools": ""}, {"replace": ""}, {"sockets": str(tmp_path / "home")}, {"sockets": tempfile.gettempdir()}]
    async with (
        holding(tmp_path, tools=True) as other,
        holding(tmp_path, *steps, tools=True) as agent,
    ):
        await agent.prompt("go")
        kept = found(tmp_path)
        assert other.session_id

    assert kept["tools"] == "worked"
    assert kept["said"]["id"] == 1
    assert kept["replace"] == "OSError"
    assert len(kept["listed"]) == 1
