"""A runtime is killed while a command runs: the next one assesses the leftovers."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.integrity.test_planting import EVIL, HOOK, PLANTS, host, prepare
from tests.sandbox.integrity.test_watch import shell
from tests.sandbox.runner import UNPRIVILEGED_UID, WHO, Runner
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.integrity.quarantine import Quarantine, QuarantinedPath
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

LEFT = {
    "a folder for an editor": ("mkdir .vscode; echo evil > .vscode/tasks.json", ".vscode"),
    "servers for agents": ("echo evil > .mcp.json", ".mcp.json"),
    "a hook": (f"mkdir .git/hooks; {HOOK} > .git/hooks/post-checkout", ".git/hooks/post-checkout"),
    "a nested repository": (f"git init -q x; {EVIL} > x/.git/config", "x/.git/config"),
    "a directory moved in": ("mkdir -p a/b; echo > a/b/.mcp.json; mv a/b c", "c/.mcp.json"),
    "what a link waited for": ("echo evil > later.json", ".cursor"),
}
Start = Callable[..., Runner]


@pytest.fixture
def work() -> Iterator[Path]:
    folder = open_folder()
    (folder / "work").mkdir()
    (folder / "extra").mkdir()
    (folder / "extra").chmod(0o777)
    (folder / "state").mkdir()
    (folder / "state").chmod(0o777)
    prepare(folder / "work")
    (folder / "work/.cursor").symlink_to("later.json")
    os.mkfifo(folder / "work/begun")
    os.mkfifo(folder / "work/go")
    yield folder / "work"
    shutil.rmtree(folder)


@pytest.fixture(params=WHO)
def start(request: pytest.FixtureRequest, work: Path) -> Iterator[Start]:
    """Start a runtime in the workspace."""
    started: list[Runner] = []

    def run(**layout: object) -> Runner:
        state = str(work.parent / "state/quarantine")
        started.append(Runner(request.param, work, quarantine=state, layout=layout))
        return started[-1]

    yield run
    for runner in started:
        if runner.process.returncode is None:
            runner.close()


def run_and_kill(runner: Runner, script: str = "true") -> None:
    """Kill the runtime when the command has done this, and see the command die."""
    whole = f"exec 3> begun; {script}; echo >&3; read < go"
    environment = {"GIT_CONFIG_GLOBAL": "/dev/null"}
    runner.send([{"argv": ["bash", "-c", whole], "environment": environment, "limits": {"timeout": 60}}])
    with (runner.workspace / "begun").open() as begun:
        assert begun.readline() == "\n"
        runner.kill()
        assert begun.read() == ""


def person(runner: Runner, script: str) -> None:
    """What the person whose workspace it is does outside."""
    whose = {"user": UNPRIVILEGED_UID, "group": UNPRIVILEGED_UID} if runner.who == "user" and os.geteuid() == 0 else {}
    subprocess.run(["bash", "-ec", script], cwd=runner.workspace, check=True, **whose)  # type: ignore[call-overload]


def held(work: Path) -> list[QuarantinedPath]:
    return Quarantine(str(work.parent / "state/quarantine"), GuardTable(roots=(str(work),))).list()


def baselines(work: Path) -> list[Path]:
    return sorted((work.parent / "state/quarantine/.baselines").glob("*.json"))


@pytest.mark.parametrize("left", LEFT)
def test_what_a_command_planted_is_quarantined_at_the_next_start(start: Start, work: Path, left: str) -> None:
    script, path = LEFT[left]
    run_and_kill(start(), script)
    runner = start()

    first = runner.bash("true")
    second = runner.bash("true")

    assert [each.path for each in held(work)] == [f"{work}/{path}"]
    [notice] = first["quarantined"]
    assert notice.startswith(f"a runtime was killed while a command ran: quarantined {path}: ")
    assert second["quarantined"] == []
    assert not os.path.lexists(work / path)


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_is_planted_for_the_git_of_the_host_by_a_kill(start: Start, work: Path, plant: str) -> None:
    run_and_kill(start(), f"( {PLANTS[plant]} )")

    start().bash("true")

    assert not host(work)


def test_the_first_result_reports_it_even_for_a_command_that_cannot_write(start: Start, work: Path) -> None:
    run_and_kill(start(), "echo > .mcp.json")

    assert len(start().bash("true", confinement="look")["quarantined"]) == 1
    assert not (work / ".mcp.json").exists()


def test_harmless_leftovers_and_an_untouched_workspace_are_not_disturbed(start: Start, work: Path) -> None:
    shell(work, "mkdir .vscode .git/hooks; echo 1 > .vscode/tasks.json; echo 2 > .mcp.json; echo 3 > .git/hooks/x")
    shell(work, "git config alias.x '!id'")
    run_and_kill(start(), "git init -q new; git clone -q . copy")
    files = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}

    runner = start()

    assert runner.bash("true")["quarantined"] == []
    assert {path: path.read_bytes() for path in work.rglob("*") if path.is_file()} == files


def test_what_commands_could_not_change_may_be_changed_after_the_kill(start: Start, work: Path) -> None:
    shell(work, "mkdir .vscode; echo 1 > .vscode/tasks.json; git config alias.x '!id'")
    runner = start()
    run_and_kill(runner)
    person(runner, "echo 2 > .vscode/tasks.json; echo 3 > .vscode/more.json; git config user.name Somebody")

    assert start().bash("true")["quarantined"] == []
    assert (work / ".vscode/more.json").read_text() == "3\n"
    assert "Somebody" in (work / ".git/config").read_text()
    assert "!id" in (work / ".git/config").read_text()


@pytest.mark.parametrize("busy", [False, True])
def test_what_the_person_made_while_no_command_ran_is_kept(start: Start, work: Path, *, busy: bool) -> None:
    runner = start()
    runner.bash("true")
    person(runner, "mkdir .vscode; echo 1 > .vscode/tasks.json; git init -q mine; git -C mine config alias.x '!id'")

    if busy:
        run_and_kill(runner)
    else:
        runner.kill()

    assert start().bash("true")["quarantined"] == []
    assert (work / ".vscode/tasks.json").read_text() == "1\n"


def test_what_the_person_made_after_the_kill_is_quarantined_and_can_be_released(start: Start, work: Path) -> None:
    runner = start()
    run_and_kill(runner)
    person(runner, "echo mine > .mcp.json")

    assert len(start().bash("true")["quarantined"]) == 1
    [found] = held(work)
    Quarantine(str(work.parent / "state/quarantine"), GuardTable(roots=(str(work),))).release(found)
    assert (work / ".mcp.json").read_text() == "mine\n"


def test_settings_that_were_replaced_are_restored_and_not_accepted(start: Start, work: Path) -> None:
    runner = start()
    run_and_kill(runner)
    former = (work / ".git/config").read_bytes()
    evil = f"cp .git/config new; {EVIL} >> new; mv new .git/config"
    person(runner, evil)
    runner = start()

    [notice] = runner.bash("true")["quarantined"]

    assert "core.fsmonitor; its former content is restored" in notice
    assert (work / ".git/config").read_bytes() == former
    run_and_kill(runner)
    person(runner, evil)
    assert len(start().bash("true")["quarantined"]) == 1
    assert (work / ".git/config").read_bytes() == former


def test_two_runtimes_in_one_workspace_do_not_disturb_each_other(start: Start, work: Path) -> None:
    first, second = start(), start()
    first.bash("true")
    whole = "exec 3> begun; echo > .mcp.json; echo >&3; read < go"
    first.send([{"argv": ["bash", "-c", whole], "limits": {"timeout": 60}}])
    with (work / "begun").open() as begun:
        assert begun.readline() == "\n"

        assert second.bash("true")["quarantined"] == []
        assert (work / ".mcp.json").exists()
        assert len(baselines(work)) == 2
        first.kill()
        assert begun.read() == ""

    assert second.bash("true")["quarantined"] == []
    third = start()
    assert len(third.bash("true")["quarantined"]) == 1
    assert not (work / ".mcp.json").exists()
    assert second.bash("echo works")["stdout"] == "works\n"
    second.close()
    third.close()
    assert baselines(work) == []


def test_a_baseline_is_written_only_when_what_is_accepted_changes(start: Start, work: Path) -> None:
    runner = start()
    runner.bash("true")
    [path] = baselines(work)
    before = path.stat()

    runner.bash("echo 1 > ordinary; mkdir folder; rm ordinary")
    runner.bash("git status")

    assert path.stat() == before
    person(runner, "echo > .mcp.json")
    runner.bash("true")
    assert path.stat() != before
    assert f"{work}/.mcp.json" in json.loads(path.read_bytes())["paths"]
    runner.close()
    assert list(path.parent.iterdir()) == []


def test_after_a_crash_of_the_machine_an_idle_mark_does_not_count(start: Start, work: Path) -> None:
    runner = start()
    runner.bash("true")
    runner.kill()
    person(runner, "echo > .mcp.json")
    [path] = baselines(work)
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "boot": "another"}))

    assert len(start().bash("true")["quarantined"]) == 1


def test_each_root_is_assessed_when_a_runtime_is_started_with_it(start: Start, work: Path) -> None:
    extra = str(work.parent / "extra")
    run_and_kill(start(writable=[extra]), f"echo > .mcp.json; echo > {extra}/.mcp.json")

    assert len(start().bash("true")["quarantined"]) == 1
    assert not (work / ".mcp.json").exists()
    assert len(start(writable=[extra]).bash("true")["quarantined"]) == 1
    assert not Path(extra, ".mcp.json").exists()


def test_a_baseline_that_cannot_be_read_is_reported(start: Start, work: Path) -> None:
    run_and_kill(start(), "echo > .mcp.json")
    [path] = baselines(work)
    path.write_text("{")
    runner = start()

    [notice] = runner.bash("true")["quarantined"]

    assert "its baseline cannot be read" in notice


async def test_a_state_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "file").touch()
    layout = Layout(workspace=str(tmp_path / "work"))
    quarantine = Quarantine(str(tmp_path / "file/quarantine"), layout.table())
    sandbox = Sandbox(layout, Strictness(), quarantine=quarantine)
    try:
        ended = await sandbox.run(ProcessRequest(argv=("true",), directory=str(tmp_path / "work")))

        assert "state.dir" in sandbox.unwatched
        assert ended.quarantined == (sandbox.unwatched,)
    finally:
        await sandbox.close()
