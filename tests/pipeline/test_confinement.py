"""The verdict binds the kernel: what is allowed as reading cannot change anything."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from tests.world import World
from toolreeve.approval.request import Request
from toolreeve.config import Policy
from toolreeve.config.sections.policy import Mode
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.core.result import Output, ToolResult
from toolreeve.core.tool import tool
from toolreeve.core.trial import Confinement
from toolreeve.tools.processes import failed

EXPLOITS = (
    """bash -c "echo $ \\\\"{"';touch PWN;:'","'"}"'\"""",
    'awk \'BEGIN { x = length /"/; system("touch PWN"); y=1 } #"\'',
    'awk \'BEGIN { x++ /"/; system("touch PWN") #"\'',
    "awk --posix --assign 'BEGIN{system(\"touch PWN\")}' x",
    "sqlite3 -cmd '.shell touch PWN' -version",
    "sqlite3 views.db 'select * from v'",
    "sed -e 'w README.md' --version",
    "zip -qrm - src > /dev/null",
    "gzip -S -c README.md",
    "gzip -rS -c src",
    "xz -S -c README.md",
    "chmod --reference=/bin/ls README.md -",
    "echo x | tee -",
    "mkdir -",
    "xxd README.md -h",
    "xxd - -p",
    "printf %n PATH; ls",
    "npm pack --dry-run",
    "pytest --version",
    'env --version touch PWN; uniq "x$"{a,b}""',
)
"""Commands that were once believed to only read."""


STOPPED = "stopped: this command was allowed as read-only and tried to write made"


@tool(read_only=True, danger=DangerLevel.SAFE, effects=lambda _, __: ())
async def write_as_reader(ctx: Context) -> Output:
    """A tool that is believed to read and writes."""
    request = ProcessRequest(argv=("touch", "made"), directory=ctx.files.root, limits=ProcessLimits(processes=64))
    ended = await ctx.processes.run(request)
    if ended.exit_code:
        raise failed("failed", ended, "touch made")
    return Output(data={}, command="touch made")


@tool(read_only=True, danger=DangerLevel.SAFE, effects=lambda _, __: ())
async def connect_as_reader(ctx: Context) -> Output:
    """A tool that is believed to read and connects to a socket in the workspace."""
    code = "import socket; socket.socket(socket.AF_UNIX).connect('socket')"
    argv = ("python3", "-c", code)
    ended = await ctx.processes.run(
        ProcessRequest(argv=argv, directory=ctx.files.root, limits=ProcessLimits(processes=64))
    )
    if ended.exit_code:
        raise failed("failed", ended, "connect")
    return Output(data={}, command="connect")


class Person:
    """Answers every question the same way and remembers what was asked."""

    def __init__(self, *, agrees: bool) -> None:
        self.agrees = agrees
        self.questions: list[Request] = []

    async def __call__(self, request: Request) -> bool:
        self.questions.append(request)
        return self.agrees


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


def repository(world: World) -> Path:
    root = world.workspace
    (root / "src").mkdir()
    (root / "0").mkdir()
    for name in ("README.md", "src/a.py", "conftest.py"):
        (root / name).write_text("open('PWN', 'w')\n")
    (root / "package.json").write_text('{"name": "x", "version": "1.0.0", "scripts": {"prepack": "touch PWN"}}')
    (root / "0/ls").write_text("#!/bin/sh\ntouch PWN\n")
    (root / "0/ls").chmod(0o755)
    return root


async def run(world: World, command: str, person: Person | None = None, mode: Mode = "default") -> ToolResult:
    async with world.reeve(settings=world.settings(policy=Policy(mode=mode)), approve=person) as reeve:
        return await reeve.call("bash", {"command": command})


@pytest.mark.parametrize("mode", ["default", "plan"])
async def test_a_wrong_belief_about_a_program_has_no_effect(world: World, mode: Mode) -> None:
    root = repository(world)
    before = snapshot(root)
    refusing = Person(agrees=False)
    changed = {}

    async with world.reeve(settings=world.settings(policy=Policy(mode=mode)), approve=refusing) as reeve:
        for command in EXPLOITS:
            await reeve.call("bash", {"command": command})
            if (after := snapshot(root)) != before:
                changed[command] = after.keys() ^ before.keys()
                before = after

    assert changed == {}


async def test_what_only_reads_runs_with_the_workspace_read_only(world: World) -> None:
    (world.workspace / "private").write_text("mine\n")
    (world.workspace / "private").chmod(0o600)

    result = await run(world, "cat private; ls -a | sort")

    assert result.success, result.to_text()
    assert result.meta.to_dict()["runs"] == "look"
    assert result.output.startswith("mine\n")


async def test_a_program_that_was_to_read_and_tried_to_write_is_asked_about(world: World) -> None:
    person = Person(agrees=True)
    async with world.reeve(tools=[write_as_reader], approve=person) as reeve:
        result = await reeve.call("write_as_reader", {})

    assert [request.verdict.reason for request in person.questions] == [STOPPED]
    assert result.success, result.to_text()
    assert (world.workspace / "made").exists()
    assert result.meta.to_dict()["runs"] == "work"


async def test_where_nobody_can_be_asked_the_error_says_what_was_stopped(world: World) -> None:
    async with world.reeve(tools=[write_as_reader]) as reeve:
        result = await reeve.call("write_as_reader", {})

    assert result.error is not None
    assert result.error.message.startswith(STOPPED)
    assert not (world.workspace / "made").exists()


async def test_plan_mode_never_asks_about_a_write(world: World) -> None:
    person = Person(agrees=True)
    settings = world.settings(policy=Policy(mode="plan"))
    async with world.reeve(settings=settings, tools=[write_as_reader], approve=person) as reeve:
        result = await reeve.call("write_as_reader", {})

    assert result.error is not None
    assert result.error.message.startswith(STOPPED)
    assert person.questions == []
    assert not (world.workspace / "made").exists()


async def test_the_first_calls_are_confined_even_if_they_come_at_once(world: World) -> None:
    async with world.reeve() as reeve:
        results = await asyncio.gather(*(reeve.call("bash", {"command": "ls"}) for _ in range(4)))

    assert [result.meta.to_dict()["runs"] for result in results] == ["look"] * 4


@pytest.mark.parametrize("made", ["before", "later"])
async def test_what_only_looks_cannot_write_to_a_program_of_the_host(world: World, made: str) -> None:
    """Neither a pipe nor a socket is read-only where its file system is."""
    pipe = world.workspace / "pipe"
    (world.workspace / "-opipe").write_text("sent")
    with socket.socket(socket.AF_UNIX) as server:
        async with world.reeve(tools=[connect_as_reader]) as reeve:
            if made == "later":
                await reeve.call("bash", command="ls")
            os.mkfifo(pipe)
            server.bind(os.path.relpath(world.workspace / "socket"))
            server.listen()
            server.setblocking(False)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            try:
                sent = await reeve.call("bash", command="sort *")
                connected = await reeve.call("connect_as_reader")
                assert os.read(reader, 1) == b""
            finally:
                os.close(reader)

        assert [result.meta.runs for result in (sent, connected)] == [Confinement.LOOK] * 2
        assert [result.success for result in (sent, connected)] == [False, False]
        with pytest.raises(BlockingIOError):
            server.accept()
