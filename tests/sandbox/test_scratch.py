"""Temporary folders: nothing that a command leaves in them is found by another."""

import os
import sys

import pytest

from tests.sandbox.runner import Runner

FOLDERS = ["/tmp", "/dev/shm", "$HOME"]
DEEP = "import os; [(os.mkdir('d'), os.chdir('d')) for _ in range(3000)]"

LEFTOVERS = {
    "a file": "echo x > f",
    "no rights": "mkdir -p a/b; echo x > a/b/f; chmod 000 a/b a",
    "a deep tree": f'{os.path.realpath(sys.executable)} -c "{DEEP}"',
    "long names": "n=$(printf 'x%.0s' $(seq 250)); for i in $(seq 40); do mkdir $n; cd $n; done",
    "many names": "for i in $(seq 5000); do : > $i; done",
    "links and pipes": "ln -s / root; ln -s loop loop; mkfifo pipe; mkdir -p .removed-0/.removed-1",
    "odd names": "touch -- -rf ' ' $'new\\nline' $'\\xff' '*'",
    "a full file system": "dd if=/dev/zero of=f bs=1M count=70 2>/dev/null; true",
}


@pytest.mark.parametrize("left", LEFTOVERS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_command_finds_nothing_of_an_earlier_one(runner: Runner, folder: str, left: str) -> None:
    listing = (
        f"ls -A {folder} | grep -v '^toolreeve-test-' | grep -v '^pytest-'; df --output=iused,used {folder} | tail -1"
    )
    before = runner.bash(listing)["stdout"]

    made = runner.bash(f"cd {folder}; {LEFTOVERS[left]}", limits={"file_size_mb": 100})
    after = runner.bash(listing)["stdout"]

    assert "exit_code" in made, made
    assert after == before


def test_the_rights_of_a_folder_are_not_left_changed(runner: Runner) -> None:
    show = "stat -c '%a %n' /tmp /dev/shm $HOME; getfattr -d /tmp 2>/dev/null"
    before = runner.bash(show)["stdout"]

    runner.bash("chmod 000 /tmp /dev/shm $HOME; setfattr -n user.x -v y $HOME")

    assert runner.bash(show)["stdout"] == before


@pytest.mark.parametrize("call", ["shmget(4711, 4096, {})", "semget(4711, 1, {})", "msgget(4711, {})"])
def test_what_a_command_shared_by_key_is_not_found_by_another(runner: Runner, call: str) -> None:
    find, make = call.format("0o666"), call.format("0o1666")
    program = (
        f"import ctypes, time; library = ctypes.CDLL(None); print(library.{find}); library.{make}; time.sleep(0.2)"
    )
    argv = [os.path.realpath(sys.executable), "-I", "-c", program]

    together = runner.all([{"argv": argv, "limits": {}} for _ in range(4)])
    later = runner.run(*argv)

    assert {each["stdout"] for each in (*together, later)} == {"-1\n"}


def test_home_is_a_folder_of_its_own_and_steers_no_later_git(runner: Runner) -> None:
    ended = runner.bash("[ $HOME != /tmp ] && git config --global core.fsmonitor 'touch planted' && cat ~/.gitconfig")
    later = runner.bash(
        "git init -q repository && cd repository && git status --short; git config --get core.fsmonitor"
    )

    assert "fsmonitor" in ended["stdout"]
    assert later["stdout"] == ""
    assert not (runner.workspace / "repository/planted").exists()
    runner.bash("rm -rf repository")


def test_commands_at_the_same_time_do_not_share_their_folders(runner: Runner) -> None:
    script = "ls -A /tmp/mine ~/mine /dev/shm/mine 2>/dev/null; touch /tmp/mine ~/mine /dev/shm/mine; sleep 0.2"

    ended = runner.all([{"argv": ["bash", "-c", script], "limits": {}} for _ in range(6)])

    assert {each["stdout"] for each in ended} == {""}
