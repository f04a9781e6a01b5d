"""Hiding places for the host's git: names of secrets, bulk folders, and the state of what git is doing."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.integrity.test_watch import shell
from tests.sandbox.runner import WHO, Runner

EVIL = r'printf "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = \"touch $TOP/ESCAPED; false\"\n"'
NESTED = (
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; TOP=$PWD;"
    "git init -q s; git -C s commit -q --allow-empty -m 1; H=$(git -C s rev-parse HEAD);"
    f"{EVIL} > s/.git/config; git update-index --add --cacheinfo 160000,$H,"
)
LOOKS_BARE = "mkdir -p b/objects b/refs; echo ref: refs/heads/main > b/HEAD"
PLANTS = {
    **{
        f"a repository called {name}": f"{NESTED}{name}; mv s {name}"
        for name in ("sub.key", "prod.env", ".docker", "id_rsa", ".ssh")
    },
    "a repository in a folder called as a secret": f"{NESTED}a.key/b/s; mkdir -p a.key/b; mv s a.key/b/s",
    "a bare repository called as a secret": f"TOP=$PWD; git clone -q --bare . x; {EVIL} > x/config;"
    " printf '\tworktree = ..\n' >> x/config; mv x x.key",
    **{
        f"a repository in {bulk} of what looks like one": f"{NESTED}x/{bulk}/s; {LOOKS_BARE}; mkdir -p b/{bulk};"
        f" mv s b/{bulk}; mv b x"
        for bulk in ("objects", "refs", "lfs", "annex", "logs")
    },
    "a repository in lfs of .git": f"{NESTED}x; mkdir -p .git/lfs; mv s .git/lfs/s; ln -s .git/lfs/s y;"
    " mkdir x; echo gitdir: $PWD/.git/lfs/s/.git > x/.git",
}
PROGRAM = "mkdir -p git-merge-x; printf '#!/bin/sh\ntouch ESCAPED\n' > evil; chmod +x evil"
STATES = {
    "the strategy of a rebase": f"git rebase -q -m other; {PROGRAM}; echo x/../evil > .git/rebase-merge/strategy;"
    " echo > .git/rebase-merge/strategy_opts; echo pick $(git rev-parse main) x > .git/rebase-merge/git-rebase-todo",
    "the options of a cherry-pick": f"git cherry-pick other main; {PROGRAM};"
    " git config -f .git/sequencer/opts options.strategy x/../evil",
    "a command of a rebase": "git rebase -q -m other; echo exec touch ESCAPED > .git/rebase-merge/git-rebase-todo",
    "what rerere copies": "mkdir -p .git/rr-cache/$(printf a%.0s {1..40}); echo x > $(echo .git/rr-cache/*)/preimage;"
    r' printf "$(printf a%.0s {1..40})\t../victim\0" > .git/MERGE_RR',
    "a remote in a file": "mkdir -p .git/remotes; echo 'URL: ext::touch ESCAPED' > .git/remotes/origin",
    "a branch in a file": "mkdir -p .git/branches; echo 'ext::touch ESCAPED' > .git/branches/origin",
}
ENVIRONMENT = {
    **{f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_EDITOR": "true",
}
GO_ON = """
    export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_CONFIG_GLOBAL=/dev/null
    export GIT_CONFIG_KEY_1=protocol.ext.allow GIT_CONFIG_VALUE_1=always GIT_EDITOR=true
    export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a
    git status; for d in x.key .git/lfs/s; do (cd $d && git status); done
    git fetch; git add f; git rebase --continue; git cherry-pick --continue; git commit --allow-empty -m 4"""


def host(work: Path) -> bool:
    """What a person does next, with their own git. Whether a plant ran, or a file from outside came in."""
    subprocess.run(["bash", "-c", GO_ON], cwd=work, check=False, capture_output=True)
    came_in = [path for path in work.rglob("postimage") if "victim" in path.read_text()]
    return bool([*work.rglob("ESCAPED"), *came_in])


@pytest.fixture
def work() -> Iterator[Path]:
    folder = open_folder()
    (folder / "work").mkdir()
    (folder / "victim").write_text("a victim's words")
    shell(
        folder / "work",
        "git init -q -b main; echo 1 > f; git add f; git commit -qm 1; git switch -qc other; echo 2 > f;"
        "git commit -qam 2; git switch -q main; echo 3 > f; git commit -qam 3; rm -rf .git/hooks",
    )
    yield folder / "work"
    shutil.rmtree(folder)


@pytest.fixture(params=WHO)
def runner(request: pytest.FixtureRequest, work: Path) -> Iterator[Runner]:
    held = work.parent / "state"
    held.mkdir()
    held.chmod(0o777)
    made = Runner(request.param, work, quarantine=str(held / "quarantine"))
    yield made
    made.close()


@pytest.mark.parametrize("plant", [*PLANTS, *STATES])
def test_nothing_is_hidden_for_the_git_of_the_host(runner: Runner, plant: str) -> None:
    ended = runner.bash((PLANTS | STATES)[plant], environment=ENVIRONMENT, limits={"processes": 60})

    assert ended.get("quarantined"), ended
    assert not host(runner.workspace)


@pytest.mark.parametrize("plant", [*PLANTS, *STATES])
def test_the_same_plant_grows_where_nothing_confines_it(work: Path, plant: str) -> None:
    environment = {**ENVIRONMENT, "PATH": "/usr/bin:/bin"}
    script = (PLANTS | STATES)[plant]
    subprocess.run(["bash", "-c", script], cwd=work, check=False, capture_output=True, env=environment)

    assert host(work)


def test_a_secret_stays_hidden_in_what_a_command_made_look_like_a_repository(runner: Runner) -> None:
    (runner.workspace / "logs").mkdir()
    (runner.workspace / "logs/prod.env").write_text("a secret")

    for _ in range(2):
        ended = runner.bash("mkdir -p objects refs; echo ref: refs/heads/main > HEAD; sleep 0.1; cat logs/prod.env")

        assert "a secret" not in ended["stdout"], ended


EVERYDAY = """
git rebase -q -m other
echo 4 > f; git add f; git rebase --continue
git cherry-pick other~1..other
git cherry-pick --abort; git status --short
git -c rerere.enabled=true merge -q other~1; git stash list
echo 5 > f; git stash -q; git stash pop -q; git commit -qam 5
git bisect start HEAD HEAD~2; git bisect run true; git bisect reset
git branch fix.key; git branch prod.env; git switch -q fix.key; git commit -q --allow-empty -m 6; git log -1 prod.env
git worktree add -q tree; cd tree; echo 7 > g; git add g; git commit -qm 7; git rebase -q -f HEAD~1
git clone -q . copy; git -C copy switch -qc topic; git clone -q --bare . bare; git -C bare log -1
git -c protocol.file.allow=always submodule --quiet add $PWD/bare parts/one; git commit -qm 8; git -C parts/one log -1
git gc -q; git fsck; git -C copy fetch -q
mkdir -p .github2 src; echo > src/conftest.py; echo > Makefile; echo > package.json; echo '{}' > tsconfig.json
echo nodejs 20.1 > .tool-versions; echo 3.12 > .python-version; echo '* text=auto' > .gitattributes
tar cf t.tar src Makefile; mkdir out; tar xf t.tar -C out; echo > .editorconfig; echo > .gitignore
echo yarnPath: x > .yarnrc.yml; echo > .env.example; mkdir -p .venv/bin; echo > .venv/bin/activate
""".strip().splitlines()


def test_everyday_work_goes_on_from_command_to_command_without_notices(runner: Runner) -> None:
    for script in EVERYDAY:
        ended = runner.bash(script, environment=ENVIRONMENT, limits={"processes": 60, "cpu_seconds": 60})

        assert ended.get("quarantined") == [], (script, ended)
        conflict = "could not apply" in ended["stderr"]
        assert ended["exit_code"] == 0 or conflict, (script, ended)
    assert runner.bash("git status --short .git; git fsck")["exit_code"] == 0


@pytest.mark.parametrize("who", WHO)
def test_what_is_secret_and_obeyed_cannot_be_moved_into_a_home(who: str, work: Path) -> None:
    held = work.parent / "state"
    held.mkdir()
    held.chmod(0o777)
    folders = ".ssh .kube .aws .gnupg .docker .config/gcloud .mozilla".split()
    files = ".npmrc .my.cnf .netrc .terraformrc".split()
    runner = Runner(who, work, quarantine=str(held / "quarantine"), home=True)
    try:
        ended = runner.bash(
            f"mkdir .config; for n in {' '.join(folders)}; do mkdir t; echo x > t/config; mv t $n; done;"
            f" for n in {' '.join(files)}; do echo x > t; mv t $n; done",
            limits={"processes": 60},
        )
    finally:
        runner.close()

    assert len(ended["quarantined"]) == len(folders + files), ended
    assert [name for name in folders + files if (work / name).exists()] == []
