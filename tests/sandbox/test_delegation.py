"""Control groups that root handed to an ordinary user, made for real, hold what that user's commands use."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.kernel.test_memory_use import ATTACKS, PRELUDE, outcome
from tests.sandbox.runner import ROOT, UNPRIVILEGED_UID, Runner
from toolreeve.sandbox.kernel import cgroup

UNIFIED = Path("/sys/fs/cgroup/unified")
SPARE = "hugetlb"
"""A controller that version 2 holds beside version 1, and that nobody here uses."""


def delegate(group: Path) -> None:
    group.mkdir()
    for path in (group, *group.glob("cgroup.*"), *group.glob("tasks")):
        os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)


def first_version() -> cgroup.Bases | None:
    found = cgroup.find() if os.geteuid() == 0 else ""
    return found if isinstance(found, cgroup.Bases) and found.names is cgroup.V1 else None


@pytest.fixture(scope="module")
def delegated() -> Iterator[Runner]:
    """A runtime of an ordinary user in groups that are theirs."""
    bases = first_version()
    if bases is None:
        pytest.skip("the memory and pids controllers of version 1 are not ours to delegate")
    folder = open_folder() / "work"
    folder.mkdir()
    groups = [base / f"delegated-{os.getpid()}" for base in bases.paths]
    for group in groups:
        delegate(group)
    runner = Runner("user", folder, groups=[str(group) for group in groups])
    yield runner
    runner.close()
    for group in groups:
        for left in group.glob("toolreeve-*"):
            left.rmdir()
        group.rmdir()


def test_a_command_runs_in_a_group_below_the_delegated_one(delegated: Runner) -> None:
    ended = delegated.bash("id -u; cat /proc/self/cgroup")

    assert ended["stdout"].startswith(f"{UNPRIVILEGED_UID}\n")
    assert f"/delegated-{os.getpid()}/toolreeve-" in ended["stdout"]
    assert ended["sandbox"] == "full"


@pytest.mark.parametrize("name", ATTACKS)
def test_a_delegated_group_holds_memory_in_the_kernel(delegated: Runner, name: str) -> None:
    limits = {"memory_mb": 60, "timeout": 25, "cpu_seconds": 25, "processes": 16, "open_files": 900}

    ended = delegated.python(PRELUDE + ATTACKS[name], limits=limits)

    assert outcome(ended) == "stopped: limit of 60 MB of memory reached (max_memory_mb)"


def test_memory_that_belongs_to_no_process_is_counted_and_so_allowed(delegated: Runner) -> None:
    ended = delegated.python("import os; os.write(os.memfd_create('x'), bytes(1 << 20)); print('made')")

    assert ended["stdout"] == "made\n"


def test_a_delegated_group_holds_the_number_of_processes(delegated: Runner) -> None:
    ended = delegated.bash("for i in {1..40}; do sleep 5 & done; wait", limits={"processes": 20})

    assert (ended.get("limit_hit") or ended.get("message")) == "stopped: limit of 20 processes reached (max_processes)"


FIND = """
import json, os, sys
from pathlib import Path
from tests.sandbox.runner import drop_root
from toolreeve.sandbox.kernel import cgroup
group = Path(sys.argv[1])
(group / "cgroup.procs").write_text("0")
drop_root()
found = cgroup.find_delegated(Path(sys.argv[2]), group, frozenset({sys.argv[3]}))
own = Path("/proc/self/cgroup").read_text().rpartition("0::")[2].strip()
print(json.dumps([found if isinstance(found, str) else str(found.memory), own]))
"""


def found_in(group: Path) -> list[str]:
    """Where a process of an ordinary user in that group can make others, and where it is itself afterwards."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", FIND, str(group), str(UNIFIED), SPARE]
    answer = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True).stdout
    found: list[str] = json.loads(answer)
    return found


@pytest.fixture
def slice_of_user() -> Iterator[Path]:
    """What systemd makes for a user: a group of theirs that hands controllers down, and a scope in it."""
    offered = UNIFIED / "cgroup.controllers"
    if os.geteuid() != 0 or not offered.exists() or SPARE not in offered.read_text().split():
        pytest.skip("no control groups of version 2 with a spare controller to delegate")
    control = UNIFIED / "cgroup.subtree_control"
    had = SPARE in control.read_text().split()
    control.write_text(f"+{SPARE}")
    group = UNIFIED / f"delegated-{os.getpid()}"
    delegate(group)
    (group / "cgroup.subtree_control").write_text(f"+{SPARE}")
    delegate(group / "scope")
    yield group
    for left in (*group.glob("scope/*/"), group / "scope", *group.glob("*/"), group):
        with contextlib.suppress(FileNotFoundError):
            left.rmdir()
    if not had:
        control.write_text(f"-{SPARE}")


def test_a_process_alone_in_its_scope_divides_it(slice_of_user: Path) -> None:
    scope = slice_of_user / "scope"

    assert found_in(scope) == [str(scope), f"/{slice_of_user.name}/scope/toolreeve-runtime"]


def test_a_process_that_shares_its_scope_divides_the_slice(slice_of_user: Path) -> None:
    scope = slice_of_user / "scope"
    with subprocess.Popen(["sleep", "60"]) as neighbour:
        (scope / "cgroup.procs").write_text(str(neighbour.pid))
        try:
            assert found_in(scope) == [str(slice_of_user), f"/{slice_of_user.name}/scope"]
        finally:
            neighbour.send_signal(signal.SIGKILL)


def test_a_scope_that_belongs_to_root_is_not_used(slice_of_user: Path) -> None:
    for group in (slice_of_user, slice_of_user / "scope"):
        for path in (group, *group.glob("cgroup.*")):
            os.chown(path, 0, 0)

    assert "Permission denied" in found_in(slice_of_user / "scope")[0]
