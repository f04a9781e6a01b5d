"""Commands over layers, as root and as an ordinary user: nothing of them reaches the host."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import WHO, Runner

OPTIONS = {"layout": {"layer_mb": 16}, "require": "full"}
GIT = ("git", "-c", "user.name=n", "-c", "user.email=e", "-c", "safe.directory=*")
LIMITS = {"processes": 64, "memory_mb": 512, "file_size_mb": 100}


@pytest.fixture(params=WHO)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    workspace = open_folder() / "work, a:b\\c"
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / "folder").mkdir()
    (workspace / "file").write_text("old\n")
    (workspace / ".env").write_text("TOKEN=secret\n")
    made = Runner(request.param, workspace, **OPTIONS)
    yield made
    made.close()


def attempt(runner: Runner, script: str, call: str = "call", **request: Any) -> dict[str, Any]:
    return runner.bash(script, confinement="try", call=call, limits=LIMITS, **request)


def listing(workspace: Path) -> dict[str, str]:
    return {
        str(path.relative_to(workspace)): path.read_text() if path.is_file() else "" for path in workspace.rglob("*")
    }


def test_a_command_sees_its_own_changes_and_the_host_sees_none(runner: Runner) -> None:
    before = listing(runner.workspace)

    ended = attempt(runner, "echo new > file; mkdir made; rmdir folder; cat file; ls")

    assert ended["stdout"] == "new\nfile\nmade\n", ended
    assert (ended["changed"], ended["problems"]) == (["file", "folder", "made"], [""])
    assert listing(runner.workspace) == before


def test_what_is_covered_stays_covered(runner: Runner) -> None:
    ended = attempt(runner, "cat .env; echo x > .git/hooks/pre-commit; mv .git moved; rm -rf .env; mv folder moved")

    assert "secret" not in ended["stdout"]
    assert ended["stderr"].count("Permission denied") == 1
    assert "pre-commit: Read-only file system" in ended["stderr"]
    assert ended["stderr"].count("Device or resource busy") == 2
    assert sorted(ended["changed"]) == ["folder", "moved"]


@pytest.mark.parametrize("confinement", ["look", "try", "work"])
def test_git_takes_no_hidden_file_that_it_tracks_for_a_changed_one(runner: Runner, confinement: str) -> None:
    for name in (".env", "server.pem"):
        (runner.workspace / name).write_text("-----BEGIN PRIVATE KEY-----\n")
        os.utime(runner.workspace / name, (1_700_000_000, 1_700_000_000))
    for arguments in (["init", "-q"], ["add", "-f", ".env", "server.pem"], ["commit", "-qm", "x"]):
        subprocess.run([*GIT, "-C", str(runner.workspace), *arguments], check=True)
    subprocess.run(["chmod", "-R", "a+rwX", str(runner.workspace)], check=True)

    ended = runner.bash(
        "git status --porcelain --untracked-files=no; git diff; cat .env", confinement=confinement, call="call"
    )

    assert (ended["stdout"], ended["stderr"]) == ("", "cat: .env: Permission denied\n")


def test_a_secret_that_appears_later_is_covered_in_the_next_trial(runner: Runner) -> None:
    attempt(runner, "true", "first")
    (runner.workspace / "sub").mkdir()
    (runner.workspace / "sub/.env").write_text("TOKEN=later\n")
    (runner.workspace / "sub/.env").chmod(0o644)

    ended = attempt(runner, "cat sub/.env", "second")

    assert "later" not in str(ended)
    assert "Permission denied" in ended["stderr"]


def test_nothing_survives_between_trials(runner: Runner) -> None:
    attempt(runner, "echo x > left; echo x > /tmp/left; echo x > ~/.gitconfig; ipcmk -M 10 || true", "first")

    ended = attempt(runner, "ls left /tmp/left ~/.gitconfig; ipcs -m | grep -c 0x", "second")

    assert ended["stderr"].count("No such file") == 3, ended
    assert ended["stdout"] == "0\n"


def test_a_child_that_goes_its_own_way_ends_before_the_layer_is_read(runner: Runner) -> None:
    script = "setsid nohup bash -c 'while :; do echo x >> file; done' > /dev/null 2>&1 & sleep 0.1; echo done"

    ended = attempt(runner, script)
    after = attempt(runner, "ps ax | grep -c '[e]cho x' ; cat file", "second")

    assert (ended["stdout"], ended["changed"]) == ("done\n", ["file"])
    assert after["stdout"] == "0\nold\n"


def test_the_commands_of_one_call_share_a_layer_and_two_calls_do_not(runner: Runner) -> None:
    def step(script: str, call: str) -> dict[str, Any]:
        return {"argv": ("bash", "-c", script), "limits": LIMITS, "confinement": "try", "call": call}

    together = runner.all([step(f"echo {name} > {name}; ls", name) for name in ("one", "two")])

    assert [ended["changed"] for ended in together] == [["one"], ["two"]]
    assert ["two" in together[0]["stdout"], "one" in together[1]["stdout"]] == [False, False]


def test_a_layer_holds_no_more_than_its_size(runner: Runner) -> None:
    ended = attempt(runner, "dd if=/dev/zero of=big bs=1M count=64")

    assert "No space left on device" in ended["stderr"]
    assert ended["problems"] == ["it changed more than a trial can hold (trial.layer_mb = 16)"]
    assert not (runner.workspace / "big").exists()


def test_a_layer_holds_no_more_entries_than_it_may(runner: Runner) -> None:
    script = "import os\ntry:\n  for n in range(70000): os.close(os.open(f'folder/{n}', os.O_CREAT))\n"
    script += "except OSError as e: print(e.errno, 60000 < n < 65536)"

    ended = runner.python(script, confinement="try", call="call", limits=LIMITS)

    assert ended["stdout"] == "28 True\n", ended


FORGERIES: dict[str, Callable[[str], str]] = {
    "whiteout": lambda _: "os.mknod('w', stat.S_IFCHR, 0)",
    "xattr whiteout": lambda _: "os.setxattr('file', 'trusted.overlay.whiteout', b'y')",
    "redirect": lambda _: "os.setxattr('folder', 'trusted.overlay.redirect', b'/etc')",
    "setuid": lambda _: "os.chmod('file', 0o4755); assert not os.stat('file').st_mode & stat.S_ISUID; raise OSError",
    "device": lambda _: "os.mknod('d', stat.S_IFBLK, os.makedev(8, 0))",
    "unmount": lambda root: f"raise OSError(ctypes.CDLL(None).umount2({root!r}.encode(), 2) and 'refused')",
    "inet socket": lambda _: "import socket; socket.socket(socket.AF_INET)",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_layer_cannot_be_forged_nor_lifted(runner: Runner, name: str) -> None:
    act = FORGERIES[name](str(runner.workspace))
    script = f"import os, stat, ctypes\ntry:\n  {act}\nexcept OSError: print('refused')\nprint(open('file').read())"

    ended = runner.python(script, confinement="try", call="call", limits=LIMITS)

    assert ended["stdout"] == "refused\nold\n\n", ended


def test_a_socket_of_the_host_in_the_workspace_cannot_be_reached(runner: Runner) -> None:
    path = runner.workspace / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        ended = runner.python(
            f"import socket\ntry: socket.socket(socket.AF_UNIX).connect({str(path)!r}); print('reached')\n"
            "except OSError as e: print(e.errno)",
            confinement="try",
            call="call",
            limits=LIMITS,
        )

    assert ended["stdout"] != "reached\n", ended


EXPLOITS = (
    """bash -c "echo $ \\"{"';touch PWN;:'","'"}"'\"""",
    """awk 'BEGIN { x = length /"/; system("touch PWN"); y=1 } #"'""",
    """awk --posix --assign 'BEGIN{system("touch PWN")}' x""",
    "sqlite3 -cmd '.shell touch PWN' -version",
    "sed -e 'w file' --version",
    "zip -qrm - folder > /dev/null",
    "gzip -S -c file",
    "xz -S -c file",
    "chmod --reference=/bin/ls file -",
    "echo x | tee -",
    "mkdir -",
    "rm -rf folder file; touch PWN; ln -s / l; mkfifo p; truncate -s0 file",
)


@pytest.mark.parametrize("confinement", ["look", "try"])
def test_commands_that_were_once_believed_to_read_change_nothing(runner: Runner, confinement: str) -> None:
    before = listing(runner.workspace)

    for number, script in enumerate(EXPLOITS):
        runner.bash(script, confinement=confinement, call=str(number), limits=LIMITS)

    assert listing(runner.workspace) == before


def test_looking_shows_the_owners_own_files_and_changes_none(runner: Runner) -> None:
    (runner.workspace / "file").chmod(0o600)

    ended = runner.bash("cat file; echo x > file; rm file", confinement="look", limits=LIMITS)

    assert ended["stdout"] == "old\n"
    assert ended["stderr"].count("Read-only file system") == 2


READERS = [
    "cat secrets.yaml deep/a.tfstate .secrets/token",
    "grep -r '' .",
    "python3 -c \"print(open('secrets.yaml').read())\"",
    'for name in s* deep/* .secrets/*; do head -c 99 "$name"; done',
    "ln secrets.yaml other; cp secrets.yaml copy; mv secrets.yaml moved; cat other copy moved; tar c . | cat",
]


@pytest.mark.parametrize("confinement", ["look", "try"])
@pytest.mark.parametrize("script", READERS)
def test_no_reader_sees_sensitive_files_unless_someone_approved(runner: Runner, script: str, confinement: str) -> None:
    sensitive = ("secrets.yaml", "deep/a.tfstate", ".secrets/token")
    runner.bash("true", confinement=confinement, call="before", limits=LIMITS)
    for name in (*sensitive, "deep/secrets/code.py", "deep/site-packages/cacert.pem"):
        (runner.workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (runner.workspace / name).write_text(f"hunter2 {name}\n" if name in sensitive else "public\n")

    ended = runner.bash(script, confinement=confinement, call="call", limits=LIMITS)
    approved = runner.bash("cat secrets.yaml", confinement="work", limits=LIMITS)
    public = runner.bash("cat deep/secrets/code.py deep/*/cacert.pem", confinement=confinement, call="c", limits=LIMITS)

    assert "hunter2" not in ended["stdout"]
    assert "denied" in ended["stderr"], ended
    assert approved["stdout"] == "hunter2 secrets.yaml\n"
    assert public["stdout"] == "public\npublic\n"


def test_a_layer_that_was_filled_is_a_problem_even_if_the_command_goes_on(runner: Runner) -> None:
    ended = attempt(runner, "dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; truncate -s 16200K big; true")

    assert ended["exit_code"] == 0, ended
    assert ended["problems"] == ["it changed more than a trial can hold (trial.layer_mb = 16)"]


def test_a_mount_inside_the_workspace_is_noticed_whenever_it_is_made(tmp_path: Path) -> None:
    inner = str(tmp_path / "inner")
    code = f"""
import os, subprocess
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.trials import Obstacle
obstacle = Obstacle(Layout(workspace={str(tmp_path)!r}, layer_mb=16))
os.mkdir({inner!r})
for command in (["true"], ["mount", "-t", "tmpfs", "none", {inner!r}], ["umount", {inner!r}]):
    subprocess.run(command, check=True)
    print(obstacle.find())
"""

    ended = subprocess.run(
        ["unshare", "--map-root-user", "--mount", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ended.stdout.split("\n") == ["", f"{inner} is a mount of its own inside the workspace", "", ""]
