"""Where control groups can be made, in both versions; folders stand for kernel mounts."""

import os
from pathlib import Path

from toolreeve.sandbox.kernel import cgroup


def own(place: Path, *lines: str) -> Path:
    path = place / "own"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_the_first_version_holds_each_controller_in_its_own_tree(tmp_path: Path) -> None:
    (tmp_path / "memory/mine").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    (tmp_path / "cpuacct").mkdir()

    found = cgroup.find(tmp_path, own(tmp_path, "4:memory:/mine", "3:cpu,cpuacct:/", "2:pids:/", "0::/"))

    assert found == cgroup.Bases(tmp_path / "memory/mine", tmp_path / "pids", cgroup.V1, tmp_path / "cpuacct")


def test_groups_are_used_without_the_controller_that_counts_cpu_time(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "pids").mkdir()

    found = cgroup.find(tmp_path, own(tmp_path, "4:memory:/", "3:cpuacct:/", "2:pids:/"))

    assert found == cgroup.Bases(tmp_path / "memory", tmp_path / "pids", cgroup.V1)


def test_the_second_version_holds_all_in_one_tree(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/cgroup.procs").touch()
    for name in ("cgroup.controllers", "cgroup.subtree_control"):
        (tmp_path / "mine" / name).write_text("cpu memory pids\n")

    found = cgroup.find(tmp_path, own(tmp_path, "0::/mine"))

    assert found == cgroup.Bases(tmp_path / "mine", tmp_path / "mine", cgroup.V2, tmp_path / "mine")


def test_controllers_that_are_not_delegated_are_reported(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/cgroup.controllers").write_text("cpu\n")

    found = cgroup.find(tmp_path, own(tmp_path, "0::/mine"))

    assert found == "the memory and pids controllers are not delegated to us (systemd: Delegate=yes)"


def test_a_machine_without_control_groups_is_reported(tmp_path: Path) -> None:
    assert cgroup.find(tmp_path, tmp_path / "absent") == "no control groups: No such file or directory"


def test_groups_of_dead_runtimes_are_removed(tmp_path: Path) -> None:
    for name in ("memory/toolreeve-999999999-1", f"memory/toolreeve-{os.getpid()}-1", "memory/other", "pids"):
        (tmp_path / name).mkdir(parents=True)

    cgroup.find(tmp_path, own(tmp_path, "4:memory:/", "2:pids:/"))

    assert {path.name for path in (tmp_path / "memory").iterdir()} == {f"toolreeve-{os.getpid()}-1", "other"}


def test_a_group_does_not_swap() -> None:
    """Otherwise its limit would hold for resident memory only, and a command could fill the swap of the machine."""
    bases = cgroup.find()
    if isinstance(bases, str):
        assert os.geteuid() != 0, bases
        return
    group = cgroup.ControlGroup(bases, f"toolreeve-{os.getpid()}-swap")

    control = bases.memory / group.name / bases.names.swap_control
    swaps = control.read_text().strip() if control.exists() else "no swap accounting"

    assert group.close()
    assert swaps in ("0", "no swap accounting")
