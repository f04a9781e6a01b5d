"""Floods: more, larger or deeper files than are inspected leave nothing unguarded."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.integrity.test_watch import shell
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.process import Ended, ProcessRequest
from toolreeve.core.secrets.paths import NEARBY
from toolreeve.sandbox.integrity import inventory
from toolreeve.sandbox.integrity.quarantine import Quarantine, QuarantinedPath, QuarantineOutcome, Suspect
from toolreeve.sandbox.integrity.watch import Watch
from toolreeve.sandbox.kernel import inotify
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

DEEP = "import os\nos.mkdir('.aider.conf.yml')\nos.chdir('.aider.conf.yml')\n"
DEEP += "for _ in range(1500):\n    os.mkdir('a')\n    os.chdir('a')\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    shell(folder, "git init -q; mkdir -p services/api; echo key > services/api/.env; git init -q services/api")
    return folder


@pytest.fixture
def guards(workspace: Path) -> GuardTable:
    return GuardTable(roots=(str(workspace),))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """On another file system than the workspace."""
    folder = Path("/dev/shm", f"toolreeve-floods-{os.getpid()}-{tmp_path.name}")
    assert folder.parent.stat().st_dev != tmp_path.stat().st_dev
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


@pytest.fixture(params=["same file system", "another"])
def quarantine(request: pytest.FixtureRequest, tmp_path: Path, elsewhere: Path, guards: GuardTable) -> Quarantine:
    return Quarantine(str(elsewhere if request.param == "another" else tmp_path / "state"), guards)


def left(workspace: Path, guards: GuardTable, quarantine: Quarantine, script: str) -> tuple[str, ...]:
    """What is said about what a script left."""
    watch = Watch(guards)
    watch.start()
    try:
        shell(workspace, script)
        return quarantine.settle(watch, watch.drain())
    finally:
        watch.close()


def is_hidden(path: Path, watch: Watch) -> bool:
    return any(str(each) in watch.hidden() for each in (path, *path.parents))


async def bash(sandbox: Sandbox, workspace: Path, script: str) -> Ended:
    return await sandbox.run(ProcessRequest(argv=("bash", "-c", script), directory=str(workspace)))


def test_directories_beyond_the_limit_are_hidden(workspace: Path, guards: GuardTable) -> None:
    shell(workspace, "mkdir d{1..60}")
    watch = Watch(guards, most_directories=50)
    watch.start()

    assert is_hidden(workspace / "services/api/.env", watch)
    assert is_hidden(workspace / "services/api/.git/config", watch)
    assert "more than 50 directories" in watch.incomplete
    watch.close()


def test_directories_of_the_first_walk_stay_watched_whatever_is_made(workspace: Path, guards: GuardTable) -> None:
    watch = Watch(guards, most_directories=50)
    watch.start()
    guarded = watch.guarded()
    shell(workspace, "mkdir d{1..60} services/e{1..60}")
    watch.drain()
    shell(workspace, f"for i in $(seq {inotify.MOST_QUEUED // 4}); do : > n$i; done")  # events are lost
    watch.drain()

    assert guarded <= watch.guarded()
    assert f"{workspace}/services/api/.env" in watch.hidden()
    shell(workspace, "for i in d{1..60}; do echo > $i/.env; done; echo > services/api/.mcp.json")
    assert f"{workspace}/services/api/.mcp.json" in watch.drain().appeared
    assert all(is_hidden(workspace / f"d{number}/.env", watch) for number in range(1, 61))
    watch.close()


def test_directories_within_the_limit_again_are_listed_again(workspace: Path, guards: GuardTable) -> None:
    watch = Watch(guards, most_directories=50)
    watch.start()
    shell(workspace, "mkdir d{1..60}")
    watch.drain()
    assert watch.incomplete
    shell(workspace, "rmdir d{1..59}")
    watch.drain()
    watch.drain()

    assert watch.incomplete == ""
    assert watch.hidden() == {f"{workspace}/services/api/.env"}
    watch.close()


async def test_no_command_reads_or_writes_beyond_the_limit(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell(workspace, "mkdir d{1..60}")
    monkeypatch.setitem(Watch.__init__.__kwdefaults__ or {}, "most_directories", 50)
    sandbox = Sandbox(Layout(workspace=str(workspace)), Strictness(require="full"))
    try:
        ended = await bash(sandbox, workspace, "cat services/api/.env; echo x >> services/api/.git/config; echo over")
    finally:
        await sandbox.close()

    assert ended.stdout == b"over\n"
    assert any("more than 50 directories" in notice for notice in ended.quarantined)
    assert "x" not in (workspace / "services/api/.git/config").read_text().splitlines()


async def test_more_secrets_than_can_be_hidden_are_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "MOST_COVERED", 20)
    sandbox = Sandbox(Layout(workspace=str(workspace)), Strictness(require="full"))
    try:
        await bash(sandbox, workspace, "mkdir k; for i in {1..30}; do : > k/$i.env; done")
        with pytest.raises(ToolError) as raised:
            await bash(sandbox, workspace, "true")
    finally:
        await sandbox.close()

    assert raised.value.code == ErrorCode.LIMIT
    assert "workspace.sensitive_allow" in str(raised.value)
    assert f"'{workspace}/k' holds 30" in str(raised.value)


def test_an_event_costs_the_same_however_many_names_are_known(workspace: Path, guards: GuardTable) -> None:
    def cost(names: int) -> int:
        shell(workspace, f"mkdir -p k; for i in $(seq {names}); do : > k/$i.env; done")
        watch = Watch(guards)
        watch.start()
        shell(workspace, "for i in {1..50}; do mkdir a; rmdir a; done")
        lines = lines_run(watch.drain)
        watch.close()
        return lines

    few, many = cost(1), cost(2000)
    assert many < few * 2


def lines_run(work: Callable[[], object]) -> int:
    count = 0

    def trace(_frame: object, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def test_a_deep_directory_keeps_nothing_else_from_being_assessed(
    workspace: Path, guards: GuardTable, quarantine: Quarantine
) -> None:
    notices = left(workspace, guards, quarantine, f'python3 -c "{DEEP}"; mkdir .vscode; echo > .vscode/tasks.json')

    assert [notice.partition(":")[0] for notice in notices] == ["quarantined .aider.conf.yml", "quarantined .vscode"]
    assert not (workspace / ".aider.conf.yml").exists()
    assert not (workspace / ".vscode").exists()
    for held in quarantine.list():
        quarantine.delete(held)
    assert not list(workspace.glob(f"{NEARBY}*"))


def test_large_files_are_neither_read_nor_copied_in_full(
    workspace: Path, guards: GuardTable, quarantine: Quarantine, elsewhere: Path
) -> None:
    left(workspace, guards, quarantine, "mkdir .vscode; for i in {1..250}; do truncate -s 60G .vscode/$i; done")

    [held] = quarantine.list()
    assert held.sha256 == {}
    assert held.stamp
    assert sum(path.lstat().st_blocks for path in elsewhere.rglob("*")) * 512 < 1 << 20
    quarantine.release(held)
    assert (workspace / ".vscode/250").stat().st_size == 60 << 30


async def test_others_are_served_while_something_is_quarantined(workspace: Path, tmp_path: Path) -> None:
    begun, served = threading.Event(), threading.Event()

    class Slow(Quarantine):
        def take(self, judged: Iterable[Suspect], call: str = "") -> QuarantineOutcome:
            begun.set()
            assert served.wait(60)
            return super().take(judged, call)

    layout = Layout(workspace=str(workspace))
    slow = Slow(str(tmp_path / "state"), layout.table())
    sandbox = Sandbox(layout, Strictness(require="full"), quarantine=slow)
    try:
        planting = asyncio.create_task(bash(sandbox, workspace, "mkdir .vscode"))
        await asyncio.to_thread(begun.wait, 60)
        other = await bash(sandbox, workspace, "echo served")
        served.set()
        ended = await planting
    finally:
        served.set()
        await sandbox.close()

    assert other.stdout == b"served\n"
    assert len(ended.quarantined) == 1
    assert not (workspace / ".vscode").exists()


@pytest.fixture
def small(elsewhere: Path, guards: GuardTable) -> Quarantine:
    """Has room for little of what comes from another file system."""
    return Quarantine(str(elsewhere), guards, most_copied=1 << 20)


def fill(workspace: Path, guards: GuardTable, quarantine: Quarantine) -> dict[str, QuarantinedPath]:
    script = "for i in a b c; do mkdir -p $i/.vscode; head -c 700000 /dev/urandom > $i/.vscode/tasks.json; done"
    left(workspace, guards, quarantine, script)
    return {Path(held.path).parent.name: held for held in quarantine.list()}


def test_copies_are_bounded_in_all_and_the_rest_is_hidden_in_the_workspace(
    workspace: Path, guards: GuardTable, small: Quarantine, elsewhere: Path
) -> None:
    held = fill(workspace, guards, small)

    assert [held[name].kept is None for name in "abc"] == [True, False, False]
    assert sum(path.lstat().st_size for path in elsewhere.rglob("tasks.json")) == 700_000
    watch = Watch(guards)
    watch.start()
    assert all(is_hidden(Path(small.content(held[name])), watch) for name in "bc")
    watch.close()
    for name in "abc":
        small.release(held[name])
        assert (workspace / name / ".vscode/tasks.json").stat().st_size == 700_000
    assert not list(workspace.glob(f"{NEARBY}*"))


async def test_no_command_reaches_what_is_kept_in_the_workspace(
    workspace: Path, guards: GuardTable, small: Quarantine
) -> None:
    held = fill(workspace, guards, small)
    folder = Path(small.content(held["b"])).parent
    sandbox = Sandbox(Layout(workspace=str(workspace)), Strictness(require="full"))
    try:
        script = f"ls {folder}/content; echo x > {folder}/content/tasks.json; mv {folder} y; rm -rf {folder}; echo over"
        ended = await bash(sandbox, workspace, script)
    finally:
        await sandbox.close()

    assert ended.stdout == b"over\n"
    small.release(held["b"])


@pytest.mark.parametrize("name", ["a", "b"])
def test_what_was_changed_since_is_not_released(
    workspace: Path, guards: GuardTable, small: Quarantine, name: str
) -> None:
    held = fill(workspace, guards, small)[name]
    Path(small.content(held), "tasks.json").write_text("evil")

    with pytest.raises(OSError, match="was changed since it was quarantined"):
        small.release(held)

    assert not (workspace / name / ".vscode").exists()


def test_a_file_that_is_still_open_cannot_change_what_is_released(
    workspace: Path, guards: GuardTable, quarantine: Quarantine
) -> None:
    watch = Watch(guards)
    watch.start()
    with open(workspace / ".mcp.json", "w+") as file:
        file.write("{}")
        file.flush()
        quarantine.settle(watch, watch.drain())
        [held] = quarantine.list()
        quarantine.release(held)
        file.write("evil")
    watch.close()

    assert (workspace / ".mcp.json").read_text() == "{}"
