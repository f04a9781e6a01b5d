"""After a command everything is gone, however it ended and whatever it started."""

import asyncio
import os
import shutil
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import WHO, Runner
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import ProcessLimits, ProcessRequest, Stream
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

DAEMONS = """
sleep {mark} &
setsid sleep {mark} &
nohup sleep {mark} >/dev/null 2>&1 &
(setsid bash -c 'sleep {mark} & sleep {mark} & kill -STOP $$' >/dev/null 2>&1 &) &
(trap '' TERM HUP INT; sleep {mark}) >/dev/null 2>&1 &
disown -a
"""


def new_mark() -> str:
    """A number of seconds that no other process of this machine sleeps."""
    return f"{uuid.uuid4().int % 10**6 + 10**6}.{uuid.uuid4().int % 10**9}"


def with_mark(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark.encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def within(seconds: float, fact: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not fact():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children] + [each for child in children for each in descendants(int(child))]


def groups_of(pid: int) -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").rglob(f"toolreeve-{pid}-*") if path.is_dir()]


def test_daemons_are_gone_when_the_command_has_ended(runner: Runner) -> None:
    mark = new_mark()

    ended = runner.bash(DAEMONS.format(mark=mark) + "echo over")

    assert ended["stdout"] == "over\n"
    assert with_mark(mark) == []


def test_daemons_are_gone_after_a_timeout(runner: Runner) -> None:
    mark = new_mark()

    ended = runner.bash("echo begun;" + DAEMONS.format(mark=mark) + f"sleep {mark}", limits={"timeout": 0.3})

    assert (ended["error"], ended["stdout"]) == ("E_TIMEOUT", "begun\n")
    assert with_mark(mark) == []


def test_a_program_that_stops_itself_and_ignores_signals_ends_all_the_same(runner: Runner) -> None:
    ended = runner.bash("trap '' TERM INT HUP; kill -STOP $$", limits={"timeout": 0.2})

    assert ended["error"] == "E_TIMEOUT"


def test_a_program_that_closes_its_output_cannot_hold_the_call(runner: Runner) -> None:
    ended = runner.bash("exec >&- 2>&- <&-; sleep 600", limits={"timeout": 0.2})

    assert ended["error"] == "E_TIMEOUT"


def test_a_program_that_never_reads_its_input_cannot_hold_the_call(runner: Runner) -> None:
    ended = runner.bash("echo done", stdin="x" * (3 << 20))

    assert ended["stdout"] == "done\n"


def test_input_and_named_files_arrive_byte_for_byte(runner: Runner) -> None:
    text = "line\n\x00\x01 ' \" $x `y` \\ \n" * 20_000

    ended = runner.bash('sha256sum | cut -c1-64; sha256sum < "$DATA" | cut -c1-64', stdin=text, files={"DATA": text})

    first, second = ended["stdout"].split()
    assert first == second


def test_a_program_that_kills_what_it_can_hurts_only_itself(runner: Runner) -> None:
    ended = runner.bash("kill -9 1; kill -9 $PPID; kill -9 -1")

    assert ended["exit_code"] in (0, -9, 1)
    assert runner.bash("echo fine")["stdout"] == "fine\n"


def test_a_private_directory_is_fresh_and_removed(runner: Runner) -> None:
    made = "pwd; ls -A; mkdir -p a/b; echo x > a/b/c; chmod 000 a/b; ln -s / link; echo y > file"

    first, second = (runner.bash(made, private_directory=True)["stdout"] for _ in range(2))

    assert first == second == "/private/work\n"


def test_with_a_private_directory_the_workspace_is_only_read(runner: Runner) -> None:
    (runner.workspace / "given").write_text("given")

    ended = runner.bash(f"cat {runner.workspace}/given; touch {runner.workspace}/new", private_directory=True)

    assert ended["stdout"] == "given"
    assert "Read-only file system" in ended["stderr"]


def test_many_timeouts_with_daemons_leave_nothing(runner: Runner) -> None:
    mark = new_mark()
    killed = {"argv": ["bash", "-c", DAEMONS.format(mark=mark) + "sleep 600"], "limits": {"timeout": 0.05}}
    plain = {"argv": ["sleep", "0.2"], "limits": {}}  # all at once: afterwards every slot is there
    descriptors = Path(f"/proc/{runner.process.pid}/fd")
    runner.all([plain] * 16)
    before, groups = len(list(descriptors.iterdir())), len(groups_of(runner.process.pid))

    ended = [each for _ in range(6) for each in runner.all([killed] * 16)]
    runner.all([plain] * 16)

    assert {each["error"] for each in ended} == {"E_TIMEOUT"}
    assert with_mark(mark) == []
    assert len(list(descriptors.iterdir())) <= before
    assert len(groups_of(runner.process.pid)) <= groups


@pytest.fixture(params=WHO)
def doomed(request: pytest.FixtureRequest) -> Iterator[Runner]:
    folder = open_folder()
    (folder / "work").mkdir()
    runner = Runner(request.param, folder / "work")
    yield runner
    if runner.process.poll() is None:
        runner.close()
    shutil.rmtree(folder)


def test_killing_the_runtime_leaves_nothing(doomed: Runner) -> None:
    mark = new_mark()
    assert doomed.process.stdin is not None
    script = DAEMONS.format(mark=mark) + f"touch begun; sleep {mark}"
    doomed.bash("true")
    pid = doomed.process.pid
    supervisors = descendants(pid)
    doomed.send([{"argv": ["bash", "-c", script], "limits": {}}])
    assert within(10, (doomed.workspace / "begun").exists)
    assert with_mark(mark) != []

    os.kill(pid, signal.SIGKILL)
    doomed.process.wait()

    assert within(5, lambda: with_mark(mark) == [])
    assert within(5, lambda: not any(Path(f"/proc/{supervisor}").exists() for supervisor in supervisors))
    assert within(5, lambda: groups_of(pid) == [])
    doomed.process.stdin.close()


def test_closing_the_sandbox_leaves_nothing(doomed: Runner) -> None:
    mark = new_mark()
    doomed.all([{"argv": ["bash", "-c", "true"], "limits": {}}] * 8)
    pid = doomed.process.pid
    supervisors = descendants(pid)

    doomed.close()

    assert with_mark(mark) == []
    assert not any(Path(f"/proc/{supervisor}").exists() for supervisor in supervisors)
    assert groups_of(pid) == []


def test_a_supervisor_that_dies_is_replaced(doomed: Runner) -> None:
    doomed.bash("true")
    (supervisor, *_) = descendants(doomed.process.pid)

    os.kill(supervisor, signal.SIGKILL)

    assert within(5, lambda: doomed.bash("echo again").get("stdout") == "again\n")
    assert within(5, lambda: supervisor not in descendants(doomed.process.pid))


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    sandbox = Sandbox(Layout(workspace=str(tmp_path), readable=(sys.base_prefix, sys.prefix)), Strictness())
    yield sandbox
    await sandbox.close()


async def test_a_cancelled_command_is_gone_before_its_caller_continues(sandbox: Sandbox, tmp_path: Path) -> None:
    mark, begun = new_mark(), asyncio.Event()
    script = DAEMONS.format(mark=mark) + f"echo begun; sleep {mark}"
    request = ProcessRequest(argv=("bash", "-c", script), directory=str(tmp_path))
    task = asyncio.create_task(sandbox.run(request, lambda _, __: begun.set()))
    await asyncio.wait_for(begun.wait(), 10)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert with_mark(mark) == []


async def test_output_comes_as_it_is_written(sandbox: Sandbox, tmp_path: Path) -> None:
    heard: list[tuple[Stream, bytes]] = []
    release = tmp_path / "go"

    def hear(stream: Stream, data: bytes) -> None:
        heard.append((stream, data))
        release.touch()

    script = "echo first; until [ -e go ]; do sleep 0.01; done; echo second >&2"
    ended = await sandbox.run(ProcessRequest(argv=("bash", "-c", script), directory=str(tmp_path)), hear)

    assert heard == [("stdout", b"first\n"), ("stderr", b"second\n")]
    assert (ended.stdout, ended.stderr) == (b"first\n", b"second\n")


async def test_a_program_that_does_not_exist_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        await sandbox.run(ProcessRequest(argv=("no-such-program",), directory=str(tmp_path)))

    assert (raised.value.code, raised.value.message) == (
        ErrorCode.TOOL_EXEC,
        "'no-such-program' cannot be started: No such file or directory",
    )


async def test_more_commands_than_slots_wait_for_their_turn(tmp_path: Path) -> None:
    sandbox = Sandbox(Layout(workspace=str(tmp_path)), Strictness(concurrency=2))
    limits = [ProcessLimits(), ProcessLimits(open_files=50), ProcessLimits(open_files=60)]
    requests = [
        ProcessRequest(argv=("bash", "-c", f"echo {number}"), directory=str(tmp_path), limits=limits[number % 3])
        for number in range(12)
    ]
    try:
        ended = await asyncio.gather(*map(sandbox.run, requests))
    finally:
        await sandbox.close()

    assert [each.stdout for each in ended] == [f"{number}\n".encode() for number in range(12)]


async def test_the_environment_is_what_was_declared_and_no_more(sandbox: Sandbox, tmp_path: Path) -> None:
    request = ProcessRequest(argv=("env",), directory=str(tmp_path), environment={"A": "1", "LANG": "C"})

    ended = await sandbox.run(request)

    names = {line.split("=")[0] for line in ended.stdout.decode().splitlines()}
    assert names == {"A", "LANG", "PATH", "HOME", "TMPDIR"}
    assert b"LANG=C\n" in ended.stdout


async def test_arguments_too_large_for_a_message_arrive(sandbox: Sandbox, tmp_path: Path) -> None:
    environment = {f"V{number}": "x" * 100_000 for number in range(10)}

    ended = await sandbox.run(
        ProcessRequest(argv=("bash", "-c", "echo ${#V9}"), directory=str(tmp_path), environment=environment)
    )

    assert ended.stdout == b"100000\n"
