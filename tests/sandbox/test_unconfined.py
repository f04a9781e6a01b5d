"""Unconfined programs have limits, a timeout and a process group."""

from pathlib import Path

import pytest

from tests.sandbox.test_command import new_mark, with_mark
from tests.scripted.scripted_world import yes
from tests.world import World
from toolreeve.config.sections.sandbox import Sandbox
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.unconfined import Unconfined


def request(place: Path, script: str, **options: object) -> ProcessRequest:
    return ProcessRequest(argv=("bash", "-c", script), directory=str(place), **options)  # type: ignore[arg-type]


async def test_a_program_runs_with_what_was_declared(tmp_path: Path) -> None:
    script = "cat; cat $DATA; echo $NAME; exit 2"
    asked = request(tmp_path, script, stdin=b"in ", files={"DATA": b"file "}, environment={"NAME": "x"})

    ended = await Unconfined(Layout(workspace=str(tmp_path))).run(asked)

    assert (ended.exit_code, ended.stdout, ended.sandbox) == (2, b"in file x\n", "limits")


async def test_a_timeout_kills_it_with_its_group(tmp_path: Path) -> None:
    mark = new_mark()
    asked = request(tmp_path, f"echo begun; sleep {mark} & sleep {mark}", limits=ProcessLimits(timeout=0.3))

    with pytest.raises(ToolError) as raised:
        await Unconfined(Layout(workspace=str(tmp_path))).run(asked)

    assert (raised.value.code, (raised.value.data or {})["stdout"]) == (ErrorCode.TIMEOUT, "begun\n")
    assert with_mark(mark) == []


async def test_a_file_size_limit_is_named(tmp_path: Path) -> None:
    asked = request(tmp_path, "head -c 5M /dev/zero > large", limits=ProcessLimits(file_size_mb=1))

    with pytest.raises(ToolError) as raised:
        await Unconfined(Layout(workspace=str(tmp_path))).run(asked)

    assert (raised.value.code, raised.value.message) == (
        ErrorCode.LIMIT,
        "stopped: limit of 1 MB per file reached (max_file_size_mb)",
    )


async def test_temporary_files_are_removed(tmp_path: Path) -> None:
    asked = request(tmp_path, "pwd; touch file", private_directory=True)

    ended = await Unconfined(Layout(workspace=str(tmp_path))).run(asked)

    assert not Path(ended.stdout.decode().strip()).exists()


async def test_a_guarded_network_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as raised:
        await Unconfined(Layout(workspace=str(tmp_path))).run(request(tmp_path, "true", network="guarded"))

    assert raised.value.code is ErrorCode.PERMISSION


async def test_each_result_of_a_program_without_a_sandbox_says_so(world: World) -> None:
    settings = world.settings(sandbox=Sandbox(mode="none"))
    async with world.reeve(settings=settings, approve=yes) as reeve:
        ran = await reeve.call("bash", command="echo hi")
        failed = await reeve.call("bash", command="exit 3")
        read = await reeve.call("get_datetime")

    for result in (ran, failed):
        assert "[this ran without a sandbox: sandbox.mode is none]" in result.to_text()
        assert result.to_dict()["meta"]["sandbox"] == "none"
    assert "sandbox" not in read.to_text()
