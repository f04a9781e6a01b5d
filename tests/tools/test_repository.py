import subprocess
from pathlib import Path

import pytest

from tests.tools.approving_runtime import ApprovingRuntime, approving_runtime
from tests.world import World
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.tools.repository import REPOSITORY_TOOLS, read_numbers, read_status


def git(root: Path, *arguments: str) -> str:
    identity = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "init.defaultBranch=main",
    )
    done = subprocess.run(["git", *identity, *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def fall_for_it(root: Path) -> None:
    for arguments in (("status",), ("--no-pager", "diff")):
        subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)


def committed(runtime: ApprovingRuntime) -> None:
    git(runtime.root, "init", "-q")
    runtime.write("a.txt", "one\ntwo\n")
    runtime.write("b.txt", "b\n")
    git(runtime.root, "add", ".")
    git(runtime.root, "commit", "-q", "-m", "first")


def test_both_are_safe_and_only_look() -> None:
    assert {tool.name: (tool.spec.danger, tool.spec.read_only) for tool in REPOSITORY_TOOLS} == {
        "git_status": (DangerLevel.SAFE, True),
        "git_diff": (DangerLevel.SAFE, True),
    }


async def test_git_status_reports_the_branch_and_counts_what_changed(world: World) -> None:
    async with approving_runtime(world) as runtime:
        committed(runtime)
        clean = await runtime.data("git_status")
        runtime.write("a.txt", "one\nthree\n")
        runtime.write("new.txt", "")
        git(runtime.root, "mv", "b.txt", "c.txt")
        data = await runtime.data("git_status")

        assert (clean["branch"], clean["clean"]) == ("main", True)
        assert {key: data[key] for key in ("branch", "staged", "changed", "untracked", "conflicts", "clean")} == {
            "branch": "main",
            "staged": 1,
            "changed": 1,
            "untracked": 1,
            "conflicts": 0,
            "clean": False,
        }
        assert data["stdout"].startswith("On branch main\n")
        assert runtime.asked == []


async def test_git_diff_shows_what_is_staged_or_what_is_not(world: World) -> None:
    async with approving_runtime(world) as runtime:
        committed(runtime)
        runtime.write("a.txt", "one\nthree\n")
        runtime.write("b.txt", "b\nb\n")
        git(runtime.root, "add", "b.txt")
        unstaged, staged = await runtime.data("git_diff"), await runtime.data("git_diff", staged=True)

    assert "-two\n+three\n" in unstaged["stdout"]
    assert (unstaged["files"], unstaged["insertions"], unstaged["deletions"]) == (1, 1, 1)
    assert "+b\n" in staged["stdout"]
    assert (staged["files"], staged["insertions"], staged["deletions"]) == (1, 1, 0)


async def test_where_there_is_no_repository_that_is_said(world: World) -> None:
    async with approving_runtime(world) as runtime:
        code, message = await runtime.failure("git_status")

    assert code is ErrorCode.TOOL_EXEC
    assert "exit code 128" in message


ATTACKS = {
    "file monitor": "[core]\n\tfsmonitor = {evil}\n",
    "external diff": "[diff]\n\texternal = {evil}\n",
    "diff driver": '[diff "x"]\n\tcommand = {evil}\n',
    "text conversion": '[diff "x"]\n\ttextconv = {evil}\n',
    "filter": '[filter "x"]\n\tclean = {evil}\n\trequired = true\n',
    "filter process": '[filter "x"]\n\tprocess = {evil}\n',
    "filter by include": "[include]\n\tpath = ../more\n",
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_hostile_repository_runs_nothing(world: World, attack: str, tmp_path: Path) -> None:
    """The attack is real: plain git is seen to fall for it."""
    async with approving_runtime(world) as runtime:
        committed(runtime)
        proof = tmp_path / "proof"
        evil = runtime.write("evil", f"#!/bin/sh\necho RAN; echo RAN >&2; touch {proof} {runtime.root}/proof\n")
        evil.chmod(0o755)
        runtime.write("more", f'[filter "x"]\n\tclean = {evil}\n')
        runtime.write(".gitattributes", "*.txt diff=x filter=x\n")
        with (runtime.root / ".git/config").open("a") as config:
            config.write(ATTACKS[attack].format(evil=evil))
        runtime.write("a.txt", "one\nthree\n")

        results = [(await runtime.call("git_status")).to_flat(), (await runtime.call("git_diff")).to_flat()]

        assert not [each for each in results if "RAN" in each["stdout"] + each["stderr"]]
        assert not (runtime.root / "proof").exists()
        assert results[1]["success"]
        fall_for_it(runtime.root)
        assert proof.exists()


async def test_looking_changes_nothing_not_even_gits_own_files(world: World) -> None:
    async with approving_runtime(world) as runtime:
        committed(runtime)
        (runtime.root / "a.txt").touch()
        before = (runtime.root / ".git/index").read_bytes()
        await runtime.data("git_status")

        assert (runtime.root / ".git/index").read_bytes() == before


def test_odd_names_do_not_confuse_the_counts() -> None:
    assert read_status("# branch.head a b\0001 .M N... 1 1 1 a a 1 u\n? x\0? ? y\0") == {
        "branch": "a b",
        "ahead": 0,
        "behind": 0,
        "staged": 0,
        "changed": 1,
        "untracked": 1,
        "conflicts": 0,
        "clean": False,
    }
    assert read_status("# branch.ab +2 -3\0")["behind"] == 3
    assert read_numbers("1\t2\ta\tb\0-\t-\tpicture.png\0") == {"files": 2, "insertions": 1, "deletions": 2}


async def test_outside_a_repository_both_say_so_and_print_no_usage(world: World) -> None:
    async with approving_runtime(world) as runtime:
        for name in ("git_diff", "git_status"):
            result = await runtime.call(name)
            assert result.error is not None
            assert "fatal: not a git repository" in result.error.message
            assert "usage" not in result.to_text()
