"""Links in place of guarded and hidden paths: the tier stays, and targets are covered."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import WHO, Runner

Start = Callable[..., Runner]
LINKS = ["nowhere", "{name}", "src", "/etc", "..", ".", "a/../src", "../victim"]


@pytest.fixture(params=WHO)
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    folder = open_folder()
    (folder / "work/src").mkdir(parents=True)
    (folder / "victim").write_text("theirs")
    (folder / "victim").chmod(0o600)
    started: list[Runner] = []

    def start(**options: Any) -> Runner:
        started.append(Runner(request.param, folder / "work", **options))
        if request.param == "user" and os.geteuid() == 0:
            os.chown(folder / "victim", 65533, 65533)
        return started[-1]

    start.workspace = folder / "work"  # type: ignore[attr-defined]
    yield start
    for runner in started:
        runner.close()
    shutil.rmtree(folder)


def workspace(start: Start) -> Path:
    return start.workspace  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("name", [".vscode", ".idea", ".claude", ".env", ".github", ".mcp.json", ".git"])
def test_no_link_that_a_command_makes_lowers_the_tier(start: Start, name: str) -> None:
    runner = start()
    for target in LINKS:
        made = runner.bash(f"id -u; ln -sfn {target.format(name=name)} {name}")
        after = runner.bash("id -u; chmod 666 ../victim")

        assert (made["sandbox"], after["sandbox"]) == ("full", "full")
        assert after["stdout"] == made["stdout"] != "0\n"
        (runner.workspace / name).unlink()

    assert (runner.workspace.parent / "victim").stat().st_mode & 0o777 == 0o600


def test_a_workspace_full_of_links_is_confined_in_full(start: Start) -> None:
    work = workspace(start)
    (work.parent / "shared.env").write_text("TOKEN=1")
    (work / "conf").mkdir()
    (work / "conf/prod.env.txt").write_text("TOKEN=2")
    (work / "ci/workflows").mkdir(parents=True)
    (work / "ci/workflows/build.yml").write_text("mine")
    (work / "githooks").mkdir()
    (work / ".git").mkdir()
    (work / ".git/config").write_text("[core]\n")
    for name, target in {
        ".env": "../shared.env",
        ".env.local": "conf/prod.env.txt",
        ".github": "ci",
        ".git/hooks": "../githooks",
        ".vscode": "nowhere",
        ".idea": ".idea",
        ".claude": str(work / "src"),
    }.items():
        (work / name).symlink_to(target)
    runner = start()

    ended = runner.bash(
        "cat .env .env.local conf/prod.env.txt; echo x > ci/workflows/build.yml; echo x > .github/new;"
        "touch .git/hooks/pre-commit githooks/pre-commit src/settings.json;"
        "mv conf elsewhere; mv ci elsewhere; mv .github x; rm .env .git/hooks .vscode .idea .claude .env.local;"
        "ln -sfn src .github; mv -T githooks src; ls -A githooks ci src"
    )

    assert ended["sandbox"] == "full"
    assert "TOKEN" not in ended["stdout"]
    assert ended["stdout"] == "ci:\nworkflows\n\ngithooks:\n\nsrc:\n"
    assert (work / "ci/workflows/build.yml").read_text() == "mine"
    assert ended["stderr"].count("busy") >= 8
    assert ended["stderr"].count("Read-only file system") == 5


def test_a_repository_behind_a_link_can_be_used_but_not_steered(start: Start) -> None:
    work = workspace(start)
    (work / "elsewhere").mkdir()
    for name in ("hooks", "objects", "refs"):
        (work / "elsewhere" / name).mkdir()
    (work / "elsewhere/HEAD").write_text("ref: refs/heads/main\n")
    (work / "elsewhere/config").write_text("[core]\n")
    (work / ".git").symlink_to("elsewhere")

    ended = start().bash(
        "echo x > .git/config; touch .git/hooks/h; mv elsewhere e; rm .git; touch .git/index && echo in"
    )

    assert (ended["sandbox"], ended["stdout"]) == ("full", "in\n")
    assert ended["stderr"].count("Read-only") == 2
    assert ended["stderr"].count("busy") == 2


def test_a_link_that_commands_can_change_does_not_decide_what_is_mounted(start: Start) -> None:
    runner = start()
    secret = runner.workspace.parent / "secrets"
    secret.mkdir()
    (secret / "key").write_text("a secret")
    (runner.workspace / "data").symlink_to(secret)
    shown = str(runner.workspace / "data")

    for named in ({"readable": [shown]}, {"writable": [shown]}):
        ended = runner.bash(f"cat {secret}/key {shown}/key", **named)

        assert ended["error"] == "E_PATH_FORBIDDEN"
        assert "is a link that commands can change" in ended["message"]


def test_links_that_change_all_the_time_lower_nothing(start: Start) -> None:
    runner = start()
    swapping = "for i in $(seq 300); do ln -sfn src .vscode; rm -f .vscode; mkdir .vscode; rmdir .vscode; done"
    looking = "id -u; cat ../victim"

    requests = [{"argv": ["bash", "-c", swapping], "limits": {}}]
    for number in range(6):  # each needs a place of its own, built meanwhile
        requests.append(
            {"argv": ["bash", "-c", looking], "limits": {}, "readable": [f"/usr/share/{number}", "/usr/share"]}
        )
    ended = runner.all(requests)

    assert {each.get("sandbox", "none at all") for each in ended} <= {"full", "none at all"}
    assert not [each for each in ended if each.get("stdout", "").startswith("0\n")]


@pytest.mark.parametrize("target", [".", "..", "/", "/usr", "/usr/bin/bash", "/tmp", "/proc"])
def test_no_link_hides_the_system_or_the_workspace(start: Start, target: str) -> None:
    runner = start()

    for name in (".env", ".vscode", ".git"):
        runner.bash(f"ln -s {target} {name}")
    ended = runner.bash("ls -d src && touch src/file /tmp/file && id -u > /dev/null && echo fine")

    assert ended["stdout"] == "src\nfine\n"
