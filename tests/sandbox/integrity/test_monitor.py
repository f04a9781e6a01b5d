"""Covers that stay: files that are made or saved by rename, between commands and during them."""

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import UNPRIVILEGED_UID, WHO, Runner
from toolreeve.core.process import ProcessRequest
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

SECRETS = [".env", "deep/er/.env", "deep/.env.production", "deep/er/id_rsa"]
GUARDED = [".git/config", ".mcp.json", "deep/.git/config", ".vscode/tasks.json"]


@pytest.fixture(params=WHO)
def runner(request: pytest.FixtureRequest) -> Iterator[Runner]:
    folder = open_folder()
    work = folder / "work"
    for name in ("deep/er", ".git/hooks", "deep/.git", "src"):
        (work / name).mkdir(parents=True)
    for name in (".git/config", "deep/.git/config"):
        (work / name).write_text("[core]\n")
    os.mkfifo(work / "begun")
    os.mkfifo(work / "go")
    runner = Runner(request.param, work)
    yield runner
    runner.close()
    shutil.rmtree(folder)


def save(runner: Runner, path: Path, text: str) -> None:
    """As editors and git do: write another file, and rename it over the first."""
    path.parent.mkdir(exist_ok=True)
    other = path.with_name("saved~")
    other.write_text(text)
    if runner.who == "user" and os.geteuid() == 0:
        os.chown(other, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
        os.chown(path.parent, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    other.rename(path)


def meanwhile(runner: Runner, script: str) -> None:
    """Begin a command, which waits; when this returns it runs."""
    whole = f"echo > begun; read < go; {script}"
    runner.send([{"argv": ["bash", "-c", whole], "limits": {"timeout": 20}}])
    (runner.workspace / "begun").read_text()


def go_on(runner: Runner) -> dict[str, object]:
    (runner.workspace / "go").write_text("\n")
    return runner.answer()


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_made_or_saved_later_is_hidden(runner: Runner, name: str) -> None:
    assert runner.bash("true")["sandbox"] == "full"

    for version in ("made", "saved", "saved again"):
        save(runner, runner.workspace / name, version)
        ended = runner.bash(f"cat {name}; cp {name} copy; ln {name} hard; mv {name} moved; cat copy hard moved")

        assert ended["stdout"] == ""
    assert (runner.workspace / name).read_text() == "saved again"


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_saved_during_a_command_is_hidden_from_it(runner: Runner, name: str) -> None:
    save(runner, runner.workspace / name, "before")
    meanwhile(runner, f"while cat {name} 2> /dev/null; do :; done > /dev/null; cat {name}; echo over")

    save(runner, runner.workspace / name, "after")
    ended = go_on(runner)

    assert ended["stdout"] == "over\n"


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_first_made_during_a_command_is_hidden_from_it(runner: Runner, name: str) -> None:
    meanwhile(
        runner, f"until [ -e {name} ]; do :; done; while cat {name} 2> /dev/null; do :; done > /dev/null; echo over"
    )

    save(runner, runner.workspace / name, "after")
    ended = go_on(runner)

    assert ended["stdout"] == "over\n"


@pytest.mark.parametrize("name", GUARDED)
def test_a_guarded_file_saved_during_a_command_stays_read_only(runner: Runner, name: str) -> None:
    save(runner, runner.workspace / name, "before")
    meanwhile(runner, f"while [ -w {name} ]; do :; done; echo planted > {name}; mv {name} gone; cat {name}")

    save(runner, runner.workspace / name, "after")
    ended = go_on(runner)

    assert ended["stdout"] == "after"
    assert (runner.workspace / name).read_text() == "after"


def test_a_repository_replaced_during_a_command_stays_read_only(runner: Runner) -> None:
    covered = "while [ -w .git/config ] || [ -w .git/hooks ]; do :; done"
    meanwhile(runner, f"{covered}; echo planted > .git/config; touch .git/hooks/x; mv .git gone")

    other = runner.workspace / "src/other"
    shutil.copytree(runner.workspace / ".git", other)
    (other / "config").write_text("[user]\n")
    if runner.who == "user" and os.geteuid() == 0:
        for path in (other, *other.rglob("*")):
            os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    (runner.workspace / ".git").rename(runner.workspace / "src/former")
    other.rename(runner.workspace / ".git")
    ended = go_on(runner)

    assert (runner.workspace / ".git/config").read_text() == "[user]\n"
    assert str(ended["stderr"]).count("Read-only") == 2
    assert "busy" in str(ended["stderr"])


async def test_a_guarded_file_that_goes_and_comes_back_during_a_command_stays_read_only(tmp_path: Path) -> None:
    config = tmp_path / ".git/config"
    config.parent.mkdir()
    config.write_text("before")
    begun = asyncio.Event()
    sandbox = Sandbox(Layout(workspace=str(tmp_path)), Strictness(require="full"))
    saved = "until grep -q after .git/config 2> /dev/null; do :; done"
    script = f"echo begun; {saved}; while [ -w .git/config ]; do :; done; echo planted > .git/config"
    request = ProcessRequest(argv=("bash", "-c", script), directory=str(tmp_path))
    try:
        running = asyncio.create_task(sandbox.run(request, lambda *_: begun.set()))
        await begun.wait()
        config.unlink()
        for _ in range(3):  # turns of the loop, in which it is noticed that the file is gone
            await asyncio.sleep(0)
        (tmp_path / "saved").write_text("after")
        (tmp_path / "saved").rename(config)
        ended = await running
    finally:
        await sandbox.close()

    assert b"Read-only" in ended.stderr
    assert config.read_text() == "after"


@pytest.mark.parametrize("during", [False, True])
def test_the_target_of_a_link_stays_covered_when_it_is_saved(runner: Runner, *, during: bool) -> None:
    save(runner, runner.workspace / "src/settings", "before")
    save(runner, runner.workspace / "src/servers.json", "before")
    (runner.workspace / ".env").symlink_to("src/settings")
    (runner.workspace / ".mcp.json").symlink_to("src/servers.json")
    waiting = "while cat src/settings || [ -w .mcp.json ]; do :; done > /dev/null 2>&1;"
    attempt = "cat .env src/settings; echo planted > src/servers.json; cat .mcp.json"
    runner.bash("true")
    if during:
        meanwhile(runner, waiting + attempt)

    save(runner, runner.workspace / "src/settings", "after")
    save(runner, runner.workspace / "src/servers.json", "after")
    ended = go_on(runner) if during else runner.bash(attempt)

    assert ended["stdout"] == "after"
    assert (runner.workspace / "src/servers.json").read_text() == "after"


def test_what_a_command_makes_is_protected_from_the_next_whatever_time_it_gives_it(runner: Runner) -> None:
    runner.bash("mkdir .zed .claude; echo mine > .zed/tasks.json; touch -d @0 . .zed .zed/tasks.json .claude")

    ended = runner.bash("echo x > .zed/tasks.json; touch .claude/settings.json; mv .zed gone; cat .zed/tasks.json")

    assert ended["stdout"] == "mine\n"
    assert str(ended["stderr"]).count("Read-only") == 2


def test_mounts_of_one_sandbox_do_not_show_in_another(runner: Runner) -> None:
    """Covers reach the commands of a place; nothing comes back, and nothing reaches the host."""
    mounts = Path("/proc/self/mounts").read_text()
    count = "cut -d' ' -f2 /proc/self/mounts | sort -u | wc -l"
    before = runner.bash(count)["stdout"]

    save(runner, runner.workspace / ".env", "x")
    after = runner.bash(count)["stdout"]
    again = runner.all([{"argv": ["bash", "-c", count], "limits": {}} for _ in range(8)])

    assert int(after) == int(before) + 1
    assert {each["stdout"] for each in again} == {after}
    assert Path("/proc/self/mounts").read_text() == mounts


def test_many_secrets_at_once_are_hidden(runner: Runner) -> None:
    runner.bash("true")
    for number in range(300):
        (runner.workspace / f"src/{number}").mkdir()
        (runner.workspace / f"src/{number}/.env").write_text("x")
        (runner.workspace / f"src/{number}").chmod(0o777)

    ended = runner.bash("cat src/*/.env; ls -d src/*/.env | wc -l")

    assert ended["stdout"] == "300\n"
