"""Programs open their own streams by name, and no streams of others."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import Runner
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

FORGE = """
until [ -e begun ]; do sleep 0.01; done
for stream in /proc/[0-9]*/fd/[12]; do
    case $stream in /proc/$$/*) ;; *) (echo forged >"$stream") 2>/dev/null ;; esac
done
touch tried
"""


def test_a_program_writes_to_its_output_and_errors_by_name(runner: Runner) -> None:
    ended = runner.bash(
        "echo one >/dev/stdout; echo two >/dev/fd/1; echo three >/proc/self/fd/1;"
        "echo four >/dev/stderr; echo five | tee -a /dev/stderr"
    )

    assert (ended["stdout"], ended["stderr"]) == ("one\ntwo\nthree\nfive\n", "four\nfive\n")


def test_a_program_reads_its_input_by_name(runner: Runner) -> None:
    assert runner.bash("cat /dev/stdin", stdin="given")["stdout"] == "given"
    assert runner.bash("cat /dev/stdin && echo nothing")["stdout"] == "nothing\n"


def test_a_command_finds_no_stream_of_another_that_runs_beside_it(runner: Runner) -> None:
    for name in ("begun", "tried"):
        (runner.workspace / name).unlink(missing_ok=True)
    victim = "touch begun; until [ -e tried ]; do sleep 0.01; done; echo mine"

    ended, _ = runner.all([{"argv": ["bash", "-c", script], "limits": {"timeout": 30}} for script in (victim, FORGE)])

    assert (ended["stdout"], ended["stderr"]) == ("mine\n", "")


@pytest.fixture
def workspace() -> Path:
    folder = open_folder()
    (folder / "work").mkdir()
    return folder / "work"


async def test_a_service_opens_the_pipes_of_its_caller_by_name(workspace: Path) -> None:
    sandbox = Sandbox(Layout(workspace=str(workspace)), Strictness(require="full"))
    (stdin, given), (said, stdout), (told, stderr) = os.pipe(), os.pipe(), os.pipe()
    os.write(given, b"given\n")
    os.close(given)
    script = "head -1 /dev/stdin >/dev/stdout; echo said >/dev/stderr"
    request = ProcessRequest(argv=("bash", "-c", script), directory=str(workspace))

    running = await sandbox.start(request, (stdin, stdout, stderr))
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    async with asyncio.timeout(30):
        how = await running.ended
    await sandbox.close()

    assert (how, _all_of(said), _all_of(told)) == ("it ended with exit code 0", b"given\n", b"said\n")


def _all_of(descriptor: int) -> bytes:
    with open(descriptor, "rb") as stream:
        return stream.read()
