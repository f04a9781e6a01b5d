"""Servers that die, come back or are not there yet, and what becomes of calls meanwhile."""

import asyncio
import os
import sys
from pathlib import Path

from tests.upstream.server_tables import light
from tests.world import World
from toolreeve import ErrorCode
from toolreeve.core.call import ToolCall


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


def dying(counted: Path, deaths: int) -> dict[str, object]:
    """A server that counts its calls in a file, each with its pid, and dies in the first of them."""
    script = (
        "import sys, json, os\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m.get('method') == 'initialize':\n"
        "        r = {'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {}}\n"
        "    elif m.get('method') == 'tools/list':\n"
        "        r = {'tools': [{'name': 'read', 'inputSchema': {}}]}\n"
        "    elif m.get('method') == 'tools/call':\n"
        f"        open({str(counted)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        f"        calls = open({str(counted)!r}).read().split()\n"
        f"        if len(calls) <= {deaths}: os._exit(3)\n"
        "        r = {'content': [{'type': 'text', 'text': calls[-1]}]}\n"
        "    else: continue\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': r}), flush=True)\n"
    )
    return {"command": sys.executable, "args": ["-S", "-c", script], "danger": "safe"}


async def test_a_call_that_only_reads_by_the_users_word_is_repeated_once(world: World, tmp_path: Path) -> None:
    counted = tmp_path / "count"

    async with world.reeve(mcp_servers={"s": dying(counted, deaths=1)}) as reeve:
        result = await reeve.call("s__read")

    first, second = counted.read_text().split()
    assert first != second
    assert result.output == second


async def test_a_call_that_only_reads_is_repeated_no_more_than_once(world: World, tmp_path: Path) -> None:
    counted = tmp_path / "count"

    async with world.reeve(mcp_servers={"s": dying(counted, deaths=9)}) as reeve:
        result = await reeve.call("s__read")

    assert result.error is not None
    assert result.error.code is ErrorCode.UPSTREAM
    assert len(counted.read_text().split()) == 2


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
    assert int(back.output) != pid


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
        records = await reeve.audit.show(call.id)

    assert result.error is not None
    assert result.error.code is ErrorCode.CANCELLED
    assert [(record.kind, record.body["code"]) for record in records] == [("call", "E_CANCELLED")]
