"""`toolreeve mcp` as its own process, over real pipes."""

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import jsonschema_rs
import psutil
import pytest
import uvloop

from tests.serve.mcp.stdio_client import PATIENCE, TOOLREEVE, Child, envelope, home
from toolreeve.rpc.framing import MAX_MESSAGE
from toolreeve.serve.mcp.pipes import Pipes
from toolreeve.serve.mcp.startup import StartupResponder
from toolreeve.serve.mcp.stdio import serve_stdio

NOISY = """
import os, subprocess, sys
from toolreeve import DangerLevel, tool

print("while it is imported")

@tool(danger=DangerLevel.SAFE)
def noise(text: str) -> str:
    '''Print wherever one can.'''
    print(text)
    sys.stdout.flush()
    os.write(1, text.encode() + b"\\n")
    subprocess.run(["echo", text])
    return repr(sys.stdin.read())

@tool(danger=DangerLevel.SAFE)
def measure(text: str) -> int:
    '''Say how long a text is.'''
    return len(text)

@tool(danger=DangerLevel.SAFE)
def large(size: int) -> str:
    '''Say much.'''
    return "x" * size
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "noisy.py").write_text(NOISY)
    return tmp_path


def served(place: Path, *options: str, **more: str) -> Child:
    env = home(place, TOOLREEVE_TOOLS=str(place / "noisy.py"), **more)
    return Child([*TOOLREEVE, "mcp", *options], cwd=place / "work", env=env)


@pytest.fixture
def server(place: Path) -> Iterator[Child]:
    with served(place) as child:
        yield child


def test_nothing_but_protocol_reaches_stdout_whatever_tools_print(server: Child) -> None:
    server.initialize()

    told = server.call("noise", text="not protocol")
    status, said = server.leave()

    assert told["structuredContent"] == {"output": "''"}
    assert server.heard == []
    assert status == 0
    assert said.count("not protocol") == 3
    assert "while it is imported" in said


def test_what_a_tool_answers_fits_the_schema_it_declared(place: Path) -> None:
    (place / "work" / "a.txt").write_text("one\ntwo\n")
    with served(place, "--tools", "all") as server:
        check_answers(server)


def check_answers(server: Child) -> None:
    server.initialize()
    declared = {each["name"]: each for each in server.ask("tools/list")["result"]["tools"]}
    calls: dict[str, dict[str, Any]] = {
        "read_file": {"path": "a.txt"},
        "list_directory": {"path": "."},
        "file_exists": {"path": "a.txt"},
        "search_text": {"pattern": "two", "path": "."},
        "calculate": {"expression": "6*7"},
        "get_datetime": {},
        "extract_links": {"html": "<a href='/x'>x</a>", "base_url": "https://example.com"},
        "bash": {"command": "echo hello"},
    }

    for name, args in calls.items():
        told = server.call(name, **args)
        assert told["isError"] is False, told
        jsonschema_rs.validate(declared[name]["outputSchema"], told["structuredContent"])


def test_a_failure_fits_the_schema_that_its_tool_declared_too(server: Child) -> None:
    server.initialize()
    declared = {each["name"]: each for each in server.ask("tools/list")["result"]["tools"]}

    failing: dict[str, dict[str, Any]] = {"read_file": {"path": "nothing"}, "write_file": {"path": "a", "content": "b"}}
    for name, args in failing.items():
        told = server.call(name, **args)
        assert told["isError"] is True
        jsonschema_rs.validate(declared[name]["outputSchema"], told["structuredContent"])


def test_wrong_arguments_are_a_result_and_an_unknown_tool_is_an_error(server: Child) -> None:
    server.initialize()

    told = server.call("read_file", path=7, more=True)
    unknown = server.ask("tools/call", {"name": "no_such_tool", "arguments": {}})

    assert told["isError"] is True
    assert told["structuredContent"]["error"]["code"] == "E_INVALID_PARAMS"
    assert unknown["error"] == {"code": -32602, "message": "Unknown tool: no_such_tool"}


@pytest.mark.parametrize(
    "params", [{}, {"name": 7}, {"name": "bash", "arguments": []}, {"name": "bash", "arguments": 7}]
)
def test_an_invalid_call_is_an_error(server: Child, params: dict[str, Any]) -> None:
    server.initialize()

    assert server.ask("tools/call", params)["error"]["code"] == -32602


def test_a_cancelled_command_dies_with_all_it_started(server: Child, place: Path) -> None:
    server.initialize()
    token = f"600.{os.getpid()}"
    meta = {"progressToken": "p"}
    params = {"name": "bash", "arguments": {"command": f"echo up; sleep {token}; true"}, "_meta": meta}
    server.send({"id": "long", "method": "tools/call", "params": params})
    told = server.read()
    sleeping = _found(token)
    server.send({"method": "notifications/cancelled", "params": {"requestId": "long"}})
    psutil.wait_procs(sleeping, timeout=PATIENCE)

    assert told["method"] == "notifications/progress"
    assert told["params"] == {"message": "up\n", "progressToken": "p", "progress": 1}
    assert sleeping
    assert _sleeping(token) == []
    assert server.ask("ping")["result"] == {}
    assert server.heard == []


def _found(token: str) -> list[psutil.Process]:
    """As soon as it is there: a command's first word does not mean that its second step has begun."""
    deadline = time.monotonic() + PATIENCE
    while not (found := _sleeping(token)) and time.monotonic() < deadline:
        os.sched_yield()
    return found


def _sleeping(token: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", token]:
            found.append(process)
    return found


def test_a_client_that_leaves_ends_the_server_and_what_it_was_doing(server: Child) -> None:
    server.initialize()
    token = f"601.{os.getpid()}"
    params = {"name": "bash", "arguments": {"command": f"echo up; sleep {token}; true"}, "_meta": {"progressToken": 1}}
    server.send({"id": 9, "method": "tools/call", "params": params})
    began = _found(token)

    status, _ = server.leave()

    assert began
    assert status == 0
    assert _sleeping(token) == []


def test_requests_that_were_sent_before_the_end_of_input_are_answered(place: Path) -> None:
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "calculate", "_meta": envelope()}}
        for number in range(3)
    ]
    done = subprocess.run(
        [*TOOLREEVE, "mcp"],
        input="\n".join(map(json.dumps, lines)).encode(),  # and no newline at the end
        cwd=place / "work",
        env=home(place),
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )

    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_in_good_order(server: Child, number: signal.Signals) -> None:
    server.initialize()
    server.process.send_signal(number)

    assert server.process.wait(PATIENCE) == 0


def test_a_client_that_stops_reading_for_good_ends_the_server_quietly(server: Child) -> None:
    server.initialize()
    assert server.process.stdout is not None
    server.process.stdout.close()
    server.send({"id": 5, "method": "tools/list"})
    said = server.process.stderr.read().decode() if server.process.stderr is not None else ""

    assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in said


def test_a_client_that_does_not_read_is_waited_for_and_loses_nothing(server: Child) -> None:
    server.initialize()
    server.ask("tools/list")
    process = psutil.Process(server.process.pid)
    before = process.memory_info().rss
    sent, deadline = 0, time.monotonic() + PATIENCE
    assert server.process.stdin is not None
    os.set_blocking(server.process.stdin.fileno(), False)
    line = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "large", "arguments": {"size": 100_000}}}
    rest = b""
    while time.monotonic() < deadline:
        if not rest:
            if sent == 3000:
                break
            rest = json.dumps(line | {"id": f"n{sent}", "padding": "p" * 4000}).encode() + b"\n"
            sent += 1
        try:
            rest = rest[os.write(server.process.stdin.fileno(), rest) :]
        except BlockingIOError:
            break
    grown = process.memory_info().rss - before
    os.set_blocking(server.process.stdin.fileno(), True)
    server.process.stdin.write(rest)
    server.process.stdin.flush()
    answered = {server.read()["id"] for _ in range(sent)}

    assert answered == {f"n{number}" for number in range(sent)}
    assert grown < 200 << 20


def test_a_line_that_is_too_long_is_refused_and_the_next_is_served(server: Child) -> None:
    server.initialize()
    server.write(b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"a":"' + b"x" * MAX_MESSAGE + b'"}}')
    refused = server.read()

    assert (refused["id"], refused["error"]["code"]) == (None, -32600)
    assert server.ask("ping")["result"] == {}


def test_a_message_of_many_megabytes_is_served(server: Child) -> None:
    server.initialize()
    told = server.call("measure", text="x" * (8 << 20))

    assert told["structuredContent"] == {"output": 8 << 20}


def test_empty_lines_and_windows_line_ends_are_nothing_special(server: Child) -> None:
    server.write(b"")
    server.write(b"  \r")
    server.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r')

    assert server.read() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_stdin_and_stdout_may_be_files(place: Path) -> None:
    ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": envelope()}}
    (place / "in").write_text(json.dumps(ask) + "\n")
    with (place / "in").open("rb") as source, (place / "out").open("wb") as sink:
        subprocess.run(
            [*TOOLREEVE, "mcp"],
            stdin=source,
            stdout=sink,
            stderr=subprocess.PIPE,
            cwd=place / "work",
            env=home(place),
            timeout=PATIENCE,
            check=True,
        )

    assert json.loads((place / "out").read_text())["result"]["tools"]


def test_a_terminal_is_served_and_left_as_it_was(place: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*TOOLREEVE, "mcp"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=place / "work", env=home(place)
    )
    try:
        os.write(ours, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        said = b""
        while b'"result":{}' not in said:
            said += os.read(ours, 1000)
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert os.get_blocking(theirs)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_descriptors_that_are_closed_at_the_start_do_no_harm(place: Path, closed: str) -> None:
    command = f'exec "$0" -m toolreeve mcp {closed}'
    done = subprocess.run(
        ["bash", "-c", command, sys.executable],
        cwd=place / "work",
        env=home(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
    )

    assert (done.returncode, done.stdout) == (0, b"")


def test_a_toolset_narrows_what_is_listed_and_what_can_be_called(place: Path) -> None:
    with served(place, "--tools", "web,calculate") as server:
        server.initialize(elicitation={})
        listed = [each["name"] for each in server.ask("tools/list")["result"]["tools"]]
        refused = server.ask("tools/call", {"name": "bash", "arguments": {"command": "true"}})

    assert listed == ["calculate", "extract_links", "fetch_url"]
    assert refused["error"]["message"] == "Unknown tool: bash"


def test_a_toolset_with_a_typo_is_said_and_ends_the_server(place: Path) -> None:
    with served(place, "--tools", "flie") as server:
        server.send({"id": 1, "method": "tools/list", "params": {"_meta": envelope()}})
        told = server.read()
        status, said = server.leave()

    assert "could not start" in told["error"]["message"]
    assert status == 2
    assert "did you mean 'file'" in said


def test_with_search_two_tools_stand_for_all(place: Path) -> None:
    with served(place, "--search") as server:
        initialized = server.initialize(elicitation={})["result"]
        listed = [each["name"] for each in server.ask("tools/list")["result"]["tools"]]
        found = server.call("search_tools", query="calculate an expression", limit=1)
        told = server.call("call_tool", name="calculate", arguments={"expression": "2+3"})
        unknown = server.ask("tools/call", {"name": "call_tool", "arguments": {"name": "call_tool"}})

    assert "search_tools" in initialized["instructions"]
    assert listed == ["search_tools", "call_tool"]
    assert [each["name"] for each in found["structuredContent"]["tools"]] == ["calculate"]
    assert told["structuredContent"]["result"] == 5
    assert unknown["result"]["isError"] is True
    assert "- shell: run commands in a sandbox" in initialized["instructions"]
    assert found["content"][0]["text"].startswith("calculate(expression: string")


def test_a_server_that_fails_to_start_says_why_on_stderr_only(place: Path) -> None:
    (place / "work" / "toolreeve.toml").write_text("[workspace\n")
    with served(place) as server:
        status, said = server.leave()
        out = server.process.stdout.read() if server.process.stdout and not server.process.stdout.closed else b""

    assert (status, out) == (2, b"")
    assert "toolreeve.toml" in said


def test_no_part_of_the_sdk_is_imported_to_serve_over_pipes(place: Path) -> None:
    program = (
        "import sys, runpy; sys.argv = ['toolreeve', 'mcp']\n"
        "try:\n runpy.run_module('toolreeve', run_name='__main__')\n"
        "finally:\n print([m for m in ('mcp', 'mcp_types', 'pydantic', 'starlette', 'uvicorn') if m in sys.modules],"
        " file=sys.stderr)\n"
    )
    with Child([sys.executable, "-c", program], cwd=place / "work", env=home(place)) as server:
        server.initialize()
        server.call("calculate", expression="1")
        server.ask("tools/list")
        _, said = server.leave()

    assert said.strip().endswith("[]")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_an_early_initialize_is_answered_before_the_slow_start(run: Callable[[Any], Any]) -> None:
    theirs, ours = os.pipe(), os.pipe()
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    os.write(theirs[1], json.dumps(said).encode() + b"\n")

    async def initialize() -> bool:
        pipes = Pipes(FileIO(theirs[0], "r"), FileIO(ours[1], "w"))
        async with serve_stdio(StartupResponder(servers=False), pipes):
            initialized = bool(select.select([ours[0]], [], [], 0)[0])
            os.close(theirs[1])
        return initialized

    assert run(initialize())
    assert b'"protocolVersion"' in os.read(ours[0], 10_000)
    os.close(ours[0])
