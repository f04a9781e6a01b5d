"""Plants for the host: what a command leaves, and what the host's own git and tools make of it afterwards."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.integrity.test_watch import shell
from tests.sandbox.runner import WHO, Runner

EVIL = r'printf "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = \"touch $PWD/ESCAPED; false\"\n"'
HOOK = r'printf "#!/bin/sh\ntouch $PWD/ESCAPED\n"'
COPY = f"cp -r .git evil; {EVIL} > evil/config"
MODULE = ".git/modules/sub"
PLANTS = {
    "commondir": f"{COPY}; echo ../evil > .git/commondir",
    "a .git file": f"{COPY}; mkdir w; echo 'gitdir: ../evil' > w/.git; cp .git/index evil",
    "a repository of its own": f"git init -q new; {EVIL} > new/.git/config",
    "a bare repository": f"git clone -q --bare . b; {EVIL} > b/config; printf '\tworktree = ..\n' >> b/config",
    "hooks that were missing": f"mkdir .git/hooks && cd .git/hooks && {HOOK} > post-checkout && chmod +x post-checkout",
    "hooks by a link": f"mkdir h; {HOOK} > h/post-checkout; chmod +x h/post-checkout; ln -s ../h .git/hooks",
    "a nested repository": f"mkdir -p x/y; git init -q x/y; {EVIL} > x/y/.git/config",
    "a submodule": f"{EVIL} > {MODULE}/config",
    "hooks of a submodule": f"mkdir {MODULE}/hooks; cd {MODULE}/hooks; {HOOK} > post-checkout; chmod +x post-checkout",
    "settings of a worktree": f"{EVIL} > .git/worktrees/linked/config.worktree",
    "commondir of a worktree": f"{COPY}; echo $PWD/evil > .git/worktrees/linked/commondir",
    "the pointer of a worktree": f"{COPY}; echo gitdir: $PWD/evil > linked/.git",
    "a repository moved in": f"mkdir t; git init -q t/r; {EVIL} > t/r/.git/config; mv t/r moved",
    "settings by a hard link": f"git init -q new; ln new/.git/config other; {EVIL} > other",
    "the folder's time put back": f"git init -q new; {EVIL} > new/.git/config; touch -r f . new new/.git",
    "an attribute and its driver": "git init -q new; cd new; echo '* filter=evil' > .gitattributes; echo > g;"
    ' git config filter.evil.clean "touch $OLDPWD/ESCAPED; cat"',
}
FILES = """
.vscode/tasks.json .idea/x.xml .zed/tasks.json .cursor/mcp.json .claude/settings.json .codex/config.toml
.gemini/settings.json .mcp.json .github/workflows/x.yml .gitlab-ci.yml toolreeve.toml policy.yaml tools.yaml
auto_approval_policies.yaml governors.yaml .toolreeve/x .devcontainer/devcontainer.json .husky/pre-commit
.pre-commit-config.yaml Jenkinsfile x.code-workspace sub2/.mcp.json .windsurf/x opencode.json .circleci/config.yml
.hg/hgrc .jj/repo/config.toml .bzr/branch/branch.conf .vim/coc-settings.json .bsp/x.json .lazy.lua x.sublime-workspace
.cargo/config.toml .emacs.desktop .npmrc .yarnrc .Rprofile .irbrc .lazygit.yml hie.yaml
""".split()


def host(work: Path) -> bool:
    """What a person does next, with their own git. Whether anything of the plant ran."""
    everything = """
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*' GIT_CONFIG_GLOBAL=/dev/null
        for d in . w new b x/y sub linked moved; do
            [ -d $d ] && (cd $d; git status; git diff; git add -A; git checkout -q -B other) ; done; true"""
    subprocess.run(["bash", "-c", everything], cwd=work, check=True, capture_output=True)
    return bool(list(work.rglob("ESCAPED")))


def prepare(work: Path) -> None:
    shell(
        work, "git init -q; echo 1 > f; git add f; git commit -qm 1; git clone -q --bare . ../origin; rm -rf .git/hooks"
    )
    shell(work, "git submodule --quiet add $PWD/../origin sub; git commit -qm 2; git worktree add -q linked")
    shell(work, "git config extensions.worktreeConfig true; rm -rf .git/modules/sub/hooks; rm -rf ../origin")


@pytest.fixture
def work() -> Iterator[Path]:
    folder = open_folder()
    (folder / "work").mkdir()
    prepare(folder / "work")
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


@pytest.mark.parametrize("plant", PLANTS)
def test_nothing_is_planted_for_the_git_of_the_host(runner: Runner, plant: str) -> None:
    for _ in range(2):  # what is judged harmless first must not be changed later
        ended = runner.bash(PLANTS[plant], environment={"GIT_CONFIG_GLOBAL": "/dev/null"})
        assert ended.get("sandbox") == "full", ended

    assert not host(runner.workspace)


@pytest.mark.parametrize("plant", PLANTS)
def test_the_same_plant_grows_where_nothing_confines_it(work: Path, plant: str) -> None:
    subprocess.run(["bash", "-c", PLANTS[plant]], cwd=work, check=False, capture_output=True)

    assert host(work)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_the_host_obeys_is_quarantined(runner: Runner, name: str) -> None:
    for command in (f"mkdir -p $(dirname {name}); echo evil > {name}", f"mkdir -p a/b/$(dirname {name})"
                    f"; echo evil > a/b/{name}; for i in a/b/* a/b/.[a-z]*; do mv $i .; done"):  # fmt: skip
        ended = runner.bash(command)

        assert not (runner.workspace / name).exists()
        assert any("toolreeve quarantine release" in notice for notice in ended["quarantined"])
    left = [path for path in runner.workspace.rglob("*") if path.name == Path(name).name]
    assert name in ("policy.yaml", "tools.yaml", "governors.yaml") or left == []


def test_ordinary_git_works_without_notices(runner: Runner) -> None:
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    ended = runner.bash(
        "git init -q new && cd new && echo 1 > a && git add a && git commit -qm 1 && cd .. && git clone -q new copy &&"
        " git -C copy worktree add -q ../tree && git -C tree status --short && git switch -qc topic && git commit -q"
        " --allow-empty -m 3 && echo all done",
        environment=who,
        limits={"processes": 40},
    )

    assert (ended["stdout"], ended["quarantined"]) == ("all done\n", []), ended
    assert (
        "all done" in runner.bash("git -C new log && git -C tree status && git -C copy diff && echo all done")["stdout"]
    )


def test_two_commands_at_once_plant_nothing_either(runner: Runner) -> None:
    scripts = [
        f"mkdir -p d{n}; git init -q d{n}/r; {EVIL} > d{n}/r/.git/config; echo > d{n}/.mcp.json" for n in range(4)
    ]
    ended = runner.all([{"argv": ["bash", "-c", script], "limits": {"processes": 40}} for script in scripts])

    assert sum(len(each["quarantined"]) for each in ended) == 8, ended
    assert not list(runner.workspace.rglob(".mcp.json"))
    assert not list(runner.workspace.glob("d*/r/.git/config"))


def test_what_is_written_again_and_again_is_not_accepted(runner: Runner) -> None:
    again = "for i in 1 2 3 4 5 6 7 8; do cp evil x; mv x new/.git/config; sleep 0.02; done"
    ended = runner.bash(f"git init -q new; {EVIL} > evil; {again}", limits={"processes": 40})

    assert len(ended["quarantined"]) == 1, ended
    assert not (runner.workspace / "new/.git/config").exists()
