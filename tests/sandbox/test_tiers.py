"""Where the kernel supports less: a weaker tier that results name, or a refusal."""

import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.attacks import ATTACKS, PRELUDE
from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import WHO, Runner
from tests.sandbox.test_command import DAEMONS, new_mark, with_mark, within
from toolreeve.sandbox.kernel.syscall_numbers import NUMBERS

PYTHON = "/usr/bin/python3"
"""One that a user without any rights can reach."""
UNSHARE, MOUNT = NUMBERS["unshare"], NUMBERS["mount"]
LANDLOCK = 444
Start = Callable[..., Runner]


@pytest.fixture(params=WHO)
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    folder = open_folder()
    (folder / "work").mkdir()
    (folder / "work").chmod(0o777)
    (folder / "secret").write_text("a secret")
    (folder / "secret").chmod(0o644)
    started: list[Runner] = []

    def start(**options: Any) -> Runner:
        started.append(Runner(request.param, folder / "work", **options))
        return started[-1]

    yield start
    for runner in started:
        runner.close()
    shutil.rmtree(folder)


def test_without_namespaces_landlock_confines_and_says_so(start: Start) -> None:
    runner = start(forbidden=[UNSHARE])
    secret = runner.workspace.parent / "secret"

    ended = runner.bash(f"cat {secret}; cat /etc/shadow; touch {secret}.new; touch inside && echo written")

    assert ended["sandbox"] == "landlock"
    assert ended["stdout"] == "written\n"
    assert ended["stderr"].count("Permission denied") >= 2
    assert sorted(path.name for path in runner.workspace.parent.iterdir()) == ["secret", "work"]


@pytest.mark.parametrize(
    "attack",
    [
        "trace another process",
        "mount",
        "make namespaces",
        "change the root",
        "use the kernel's keyrings",
        "use io_uring",
        "open unusual sockets",
        "plant a setuid file",
        "call by another instruction set",
    ],
)
def test_without_namespaces_these_attacks_still_fail(start: Start, attack: str) -> None:
    ended = start(forbidden=[UNSHARE]).python(PRELUDE + ATTACKS[attack], PYTHON)

    assert ended["sandbox"] == "landlock"
    assert "ESCAPED" not in ended["stdout"], ended["stdout"]
    assert "blocked" in ended["stdout"]


def test_without_namespaces_daemons_are_killed_too(start: Start) -> None:
    runner, mark = start(forbidden=[UNSHARE]), new_mark()

    over = runner.bash(DAEMONS.format(mark=mark) + "echo over")
    late = runner.bash(DAEMONS.format(mark=mark) + f"sleep {mark}", limits={"timeout": 0.3})

    assert (over["stdout"], late["error"]) == ("over\n", "E_TIMEOUT")
    assert within(3, lambda: with_mark(mark) == [])


def test_without_namespaces_stopping_the_slot_saves_no_process(start: Start) -> None:
    runner, mark = start(forbidden=[UNSHARE]), new_mark()

    ended = runner.bash(f"kill -STOP $PPID; setsid sleep {mark}", limits={"timeout": 0.3})

    assert ended["error"] == "E_TIMEOUT"
    assert within(3, lambda: with_mark(mark) == [])
    assert runner.bash("echo fine")["stdout"] == "fine\n"


def test_without_namespaces_temporary_files_are_removed_at_the_end(start: Start) -> None:
    runner = start(forbidden=[UNSHARE])

    scratch = Path(runner.bash("echo x > $TMPDIR/file; echo $TMPDIR")["stdout"].strip())
    left = runner.bash("ls -A $TMPDIR $HOME; [ $HOME != $TMPDIR ] && echo apart")["stdout"]
    private = runner.bash("pwd; ls -A; echo x > file", private_directory=True)["stdout"].split()
    again = runner.bash("pwd; ls -A", private_directory=True)["stdout"].split()

    assert scratch.is_dir()
    assert left.endswith("apart\n")
    assert "file" not in left
    assert (len(private), len(again)) == (1, 1)
    runner.close()
    assert not scratch.exists()


def test_where_full_isolation_is_required_less_is_refused(start: Start) -> None:
    ended = start(forbidden=[UNSHARE], require="full").bash("echo ran")

    assert ended["error"] == "E_PERMISSION"
    assert "does not support the required sandbox (sandbox.require = full): full: PermissionError" in ended["message"]


def test_mounts_that_are_refused_lower_the_tier_too(start: Start) -> None:
    assert start(forbidden=[MOUNT]).bash("true")["sandbox"] == "landlock"


def test_resource_limits_alone_are_refused_unless_they_are_good_enough(start: Start) -> None:
    bare = [UNSHARE, LANDLOCK]

    assert start(forbidden=bare).bash("echo ran")["error"] == "E_PERMISSION"
    assert start(forbidden=bare, require="limits").bash("echo ran")["sandbox"] == "limits"


def test_an_unconfined_choice_shows_in_every_result(start: Start) -> None:
    runner = start(confined=False)

    ended = runner.bash(f"cat {runner.workspace.parent}/secret")

    assert (ended["stdout"], ended["sandbox"]) == ("a secret", "none")


def test_a_failure_that_may_pass_is_an_error_and_lowers_nothing(start: Start) -> None:
    for error in (errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE):
        ended = start(forbidden=[UNSHARE], error=error, require="limits").bash("echo ran")

        assert ended["error"] == "E_TOOL_EXEC"
        assert "nothing weaker is used instead" in ended["message"]


@pytest.mark.parametrize("tier", ["full", "landlock", "limits"])
def test_no_command_of_root_has_the_id_of_root(start: Start, tier: str) -> None:
    forbidden = {"full": [], "landlock": [UNSHARE], "limits": [UNSHARE, LANDLOCK]}
    runner = start(forbidden=forbidden[tier], require="limits")

    ended = runner.bash("id -u; id -g; id -G")

    assert ended["sandbox"] == tier
    assert "0" not in ended["stdout"].split()


@pytest.mark.skipif("root" not in WHO, reason="only root can mount")
def test_where_ids_cannot_be_mapped_no_command_runs_as_root_instead() -> None:
    folder = open_folder()
    runner = Runner("root", folder, cannot_map_ids=True)
    try:
        ended = runner.bash("id -u")
    finally:
        runner.close()

    assert ended["error"] == "E_TOOL_EXEC"
    assert f"the file system of '{folder}' does not support id-mapped mounts" in ended["message"]
