import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.changes import NO_CHANGES, Changes
from toolreeve.sandbox.integrity.watch import Watch
from toolreeve.sandbox.kernel import inotify

Run = Callable[[str], Changes]


def shell(directory: Path, script: str) -> None:
    identity = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(
        ["bash", "-euc", script],
        cwd=directory,
        env={**os.environ, **identity, **who, "GIT_CONFIG_GLOBAL": "/dev/null"},
        check=True,
        capture_output=True,
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    shell(
        folder,
        "git init -q; echo 1 > f; git add f; git commit -qm 1; mkdir -p a/b .github; echo x > .github/x; echo > .env",
    )
    return folder


@pytest.fixture(params=["events", "listing"])
def watch(request: pytest.FixtureRequest, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Both ways to the same result: a machine that gives watches, and one that has none left."""
    watching = Watch(GuardTable(roots=(str(workspace),)))
    if request.param == "listing":
        monkeypatch.setattr(inotify, "_library", object())
    watching.start()
    assert bool(watching.incomplete) == (request.param == "listing")
    yield watching
    watching.close()


@pytest.fixture
def run(workspace: Path, watch: Watch) -> Run:
    def ran(script: str) -> Changes:
        shell(workspace, script)
        return _relative(watch.drain(), workspace)

    return ran


def _relative(changes: Changes, workspace: Path) -> Changes:
    def short(paths: frozenset[str]) -> frozenset[str]:
        return frozenset(os.path.relpath(path, workspace) for path in paths)

    former = {os.path.relpath(path, workspace): data for path, data in changes.former.items()}
    return Changes(
        appeared=short(changes.appeared),
        changed=short(changes.changed),
        gone=short(changes.gone),
        hidden=short(changes.hidden),
        former=former,
    )


def test_paths_that_exist_at_the_start_are_known_and_no_change(workspace: Path, watch: Watch) -> None:
    assert watch.guarded() == {f"{workspace}/{name}" for name in (".git/config", ".git/hooks", ".github")}
    assert watch.hidden() == {f"{workspace}/.env"}
    assert watch.drain() == NO_CHANGES


MODULE = ".git/modules/a/b/config"


@pytest.mark.parametrize(
    ("script", "appeared"),
    [
        ("mkdir .vscode; echo > .vscode/tasks.json", {".vscode"}),
        ("mkdir -p x/y/z; echo > x/y/z/.mcp.json", {"x/y/z/.mcp.json"}),
        ("ln -s nowhere .idea", {".idea"}),
        ("ln -s .idea .idea", {".idea"}),
        ("echo ../evil > .git/commondir", {".git/commondir"}),
        ("echo > .git/config.worktree; echo > .git/info/attributes", {".git/config.worktree", ".git/info/attributes"}),
        ("git init -q new", {"new/.git/config", "new/.git/hooks"}),
        ("git init -q --bare new", {"new/config", "new/hooks"}),
        ("git worktree add -q w", {".git/worktrees/w/commondir", ".git/worktrees/w/gitdir", "w/.git"}),
        ("mkdir -p .git/modules/a/b; cd .git/modules/a/b; echo > HEAD; echo > config; mkdir objects", {MODULE}),
        ("mkdir r; cd r; echo > config; mkdir objects refs; echo > HEAD", {"r/config"}),
        ("mkdir r; cd r; echo > HEAD; echo ../.git > commondir; mkdir hooks; : > hooks/x", {"r/commondir", "r/hooks"}),
        ("mkdir t; cp -r .git t/.git; mv t moved", {"moved/.git/config", "moved/.git/hooks"}),
        ("git branch config; git branch hooks/config; git gc -q; echo > config; mkdir hooks; echo > HEAD", set()),
    ],
)  # fmt: skip
def test_guarded_paths_that_appear_are_seen(run: Run, script: str, appeared: set[str]) -> None:
    assert run(script).appeared == appeared


def test_a_directory_that_is_moved_in_is_walked(run: Run, tmp_path: Path) -> None:
    shell(tmp_path, "mkdir -p o/p; git init -q o/p; echo > o/.env")

    changes = run(f"mv {tmp_path}/o here")

    assert changes.appeared == {"here/p/.git/config", "here/p/.git/hooks"}
    assert changes.hidden == {"here/.env"}


def test_what_is_made_below_a_directory_that_was_moved_is_seen(run: Run) -> None:
    assert not run("mkdir -p d/e; mv a z")

    assert run("mv d z/d; echo > z/d/e/.mcp.json; echo > z/b/.env") == Changes(
        appeared=frozenset({"z/d/e/.mcp.json"}), hidden=frozenset({"z/b/.env"})
    )


def test_a_changed_file_that_git_reads_comes_with_its_accepted_content(run: Run, watch: Watch, workspace: Path) -> None:
    held = (workspace / ".git/config").read_bytes()

    for script in ("git config user.name x", "echo '[a]' >> .git/config"):
        changes = run(script)
        assert changes.changed == {".git/config"}
        assert changes.former == {".git/config": held}

    watch.accept(f"{workspace}/.git/config")
    accepted = (workspace / ".git/config").read_bytes()
    assert run("echo '[b]' >> .git/config").former == {".git/config": accepted}


def test_a_write_by_another_name_of_the_file_is_seen(run: Run) -> None:
    run("ln .git/config other")

    assert run("echo '[x]' >> other").changed == {".git/config"}


def test_secrets_are_seen_wherever_and_however_they_are_made(run: Run, workspace: Path, watch: Watch) -> None:
    assert run("echo 2 > e; mv e .env; mkdir -p n/m; echo > n/m/.env.local; mkdir .ssh; echo > .ssh/x").hidden == {
        ".env",
        "n/m/.env.local",
        ".ssh",
    }
    assert run("rm n/m/.env.local; mv .ssh q").hidden == {"n/m/.env.local", ".ssh"}
    assert watch.hidden() == {f"{workspace}/.env"}


def test_what_appeared_and_vanished_is_not_reported(run: Run) -> None:
    assert not run("mkdir .vscode; echo > .vscode/x; rm -r .vscode")


def test_what_is_gone_is_reported(run: Run, workspace: Path, watch: Watch) -> None:
    assert run("rm -r .github").gone == {".github", ".github/x"}
    assert f"{workspace}/.github" not in watch.guarded()


def test_a_link_that_vanishes_while_it_is_inspected_loses_no_other_event(workspace: Path, watch: Watch) -> None:
    """The events behind it in the same buffer would be lost with an error."""
    script = "while :; do ln -s x .git/objects/y; rm .git/objects/y; done"
    with subprocess.Popen(["bash", "-c", script], cwd=workspace, stderr=subprocess.DEVNULL) as flicker:
        planted = []
        seen: set[str] = set()
        for number in range(200):
            planted.append(f"{workspace}/a/b/{number}/.mcp.json")
            Path(planted[-1]).parent.mkdir()
            Path(planted[-1]).write_text("{}")
            seen |= watch.drain().appeared
        flicker.kill()
    seen |= watch.drain().appeared

    assert seen >= set(planted)


def test_lost_events_are_made_up_for(run: Run, workspace: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    script = (
        f"echo > .mcp.json; for i in $(seq {most}); do : > n$i; done; mkdir late; echo > late/.mcp.json; rm -r .github"
    )

    changes = run(script)

    assert changes.appeared == {".mcp.json", "late/.mcp.json"}
    assert changes.gone == {".github", ".github/x"}
    assert run("echo > a/.mcp.json").appeared == {"a/.mcp.json"}


def test_a_root_that_was_replaced_is_watched_again(run: Run, workspace: Path) -> None:
    run("cd ..; mv workspace old; cp -r old workspace; rm -rf old")

    assert run(f"cd {workspace}; echo > .mcp.json").appeared == {".mcp.json"}


def test_directories_beyond_the_limit_are_reported(workspace: Path) -> None:
    watching = Watch(GuardTable(roots=(str(workspace),)), most_directories=3)
    watching.start()

    assert "more than 3 directories" in watching.incomplete
    watching.close()


def test_what_the_runtime_runs_from_is_not_walked(workspace: Path) -> None:
    shell(workspace, "mkdir -p .venv/lib/x; echo > .venv/lib/.mcp.json")
    watching = Watch(GuardTable(roots=(str(workspace),), environment=(f"{workspace}/.venv",)))
    watching.start()

    assert f"{workspace}/.venv/lib/.mcp.json" not in watching.guarded()
    watching.close()


REPOSITORIES = """git init -q --bare r.git; git -C r.git config core.sshCommand "ssh -i k";
git init -q lib; (cd lib; git commit -q --allow-empty -m 1); git submodule -q add "$PWD/lib" sub; rm -rf lib"""


@pytest.mark.parametrize("repository", ["r.git", ".git/modules/sub"])
def test_a_repository_stays_one_while_its_head_is_away(
    run: Run, workspace: Path, watch: Watch, repository: str
) -> None:
    run(REPOSITORIES)
    for path in watch.guarded():
        watch.accept(path)
    settings = str(workspace / repository / "config")

    moved = run(f"mv {repository}/HEAD {repository}/H")
    assert (moved.appeared, moved.gone, settings in watch.guarded()) == (frozenset(), frozenset(), True)
    written = run(f"git config -f {repository}/config core.fsmonitor evil; mv {repository}/H {repository}/HEAD")
    assert written.changed == {f"{repository}/config"}
    assert set(written.former) == {f"{repository}/config"}


def test_settings_of_a_submodule_are_guarded_without_a_head(workspace: Path) -> None:
    shell(workspace, REPOSITORIES + "; rm .git/modules/sub/HEAD")
    watching = Watch(GuardTable(roots=(str(workspace),)))
    watching.start()

    assert str(workspace / ".git/modules/sub/config") in watching.guarded()
    watching.close()
