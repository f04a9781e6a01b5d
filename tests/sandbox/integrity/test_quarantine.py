import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.integrity.test_watch import shell
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.integrity.watch import Watch

Run = Callable[..., tuple[str, ...]]

HARMLESS = [
    "git init -q new",
    "git init -q --bare new",
    "git clone -q . copy",
    "git clone -q --bare . copy.git",
    "git worktree add -q w",
    "git clone -q . c; cd c; git worktree add -q ../w",
    "git clone -q . c; cd c; git submodule --quiet add ../ sub; git submodule --quiet add ../ deep/sub",
    "git init -q n; cd n; git config user.email a@b; git remote add origin https://example.org/x; git switch -qc main2",
    "git clone -q . c; git -C c submodule --quiet add ../ sub; git clone -q --recurse-submodules c d",
    "printf '*.py text diff=python\\n*.bin filter=lfs\\n' > .gitattributes",
    "git branch config; git switch -qc hooks/config",
    "mkdir -p r/hooks; echo > r/config; echo > r/hooks/pre-commit",
]
EVIL = '[core]\\n\\tfsmonitor = \\"id; false\\"\\n'
SUBMODULE = "c/.git/modules/s/config"
TODO = ".git/rebase-merge/git-rebase-todo"
HARMFUL = [
    ("mkdir .vscode; echo > .vscode/tasks.json", ".vscode"),
    ("echo > .mcp.json", ".mcp.json"),
    ("ln -s nowhere .idea", ".idea"),
    ("cp -r .git evil; echo ../evil > .git/commondir", ".git/commondir"),
    (f'cp -r .git evil; printf "{EVIL}" > evil/config', "evil/config"),
    (f'git init -q new; printf "{EVIL}" >> new/.git/config', "new/.git/config"),
    (f'git clone -q . c; cd c; git submodule --quiet add ../ s; printf "{EVIL}" > .git/modules/s/config', SUBMODULE),
    (f'printf "{EVIL}" > .git/config.worktree', ".git/config.worktree"),
    ("git init -q new; echo id > new/.git/hooks/post-checkout", "new/.git/hooks/post-checkout"),
    ("rm -rf .git/hooks; mkdir .git/hooks; echo id > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    ("rm -rf .git/hooks; ln -s ../x .git/hooks", ".git/hooks"),
    ("mkdir w; cp -r .git evil; echo 'gitdir: ../evil' > w/.git", "w/.git"),
    ("git init -q new; ln new/.git/config other", "new/.git/config"),
    ("echo '*.x filter=evil' > .gitattributes", ".gitattributes"),
    ("printf '[submodule \"s\"]\\npath=s\\nurl=x\\nupdate=!id\\n' > .gitmodules", ".gitmodules"),
    ("mkdir .git/rebase-merge; echo 'exec id' > .git/rebase-merge/git-rebase-todo", TODO),
    ("mkdir r; cd r; echo > HEAD; echo ../x > commondir", "r/commondir"),
    ("mkfifo .mcp.json", ".mcp.json"),
    ("mkdir -p d/.claude/x; echo > d/.claude/x/y; chmod 0 d/.claude; chmod 500 d", "d/.claude"),
    ("git worktree add -q w; echo 'gitdir: /etc' > w/.git", "w/.git"),
    ("git worktree add -q w; echo /etc > .git/worktrees/w/commondir", ".git/worktrees/w/commondir"),
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    shell(folder, "git init -q; echo 1 > f; git add f; git commit -qm 1")
    return folder


@pytest.fixture
def guards(workspace: Path) -> GuardTable:
    return GuardTable(roots=(str(workspace),))


@pytest.fixture(params=["same file system", "another"])
def quarantine(request: pytest.FixtureRequest, tmp_path: Path, guards: GuardTable) -> Iterator[Quarantine]:
    if request.param == "same file system":
        yield Quarantine(str(tmp_path / "state/quarantine"), guards)
        return
    folder = Path("/dev/shm", f"toolreeve-{os.getpid()}-{tmp_path.name}")
    assert folder.parent.stat().st_dev != tmp_path.stat().st_dev
    yield Quarantine(str(folder), guards)
    shell(folder.parent, f"rm -rf {folder}")


@pytest.fixture
def run(workspace: Path, guards: GuardTable, quarantine: Quarantine) -> Iterator[Run]:
    watch = Watch(guards)
    watch.start()

    def ran(script: str) -> tuple[str, ...]:
        shell(workspace, script)
        return quarantine.settle(watch, watch.drain(), call="call-1")

    yield ran
    watch.close()


@pytest.mark.parametrize("script", HARMLESS)
def test_ordinary_git_is_left_alone(run: Run, script: str) -> None:
    assert run(script) == ()


@pytest.mark.parametrize(("script", "path"), HARMFUL)
def test_what_the_host_would_obey_is_quarantined_and_can_be_released(
    run: Run, quarantine: Quarantine, workspace: Path, script: str, path: str
) -> None:
    notices = run(script)

    held = {each.path: each for each in quarantine.list()}[f"{workspace}/{path}"]
    assert any(notice.startswith(f"quarantined {path}: ") and held.id in notice for notice in notices)
    assert not os.path.lexists(workspace / path)
    assert held.call == "call-1"
    assert run("true") == ()
    if held.kind != "other":
        quarantine.release(held)
        assert os.path.lexists(workspace / path)
    else:
        quarantine.delete(held)
    assert quarantine.find(held.id) is None


def test_the_manifest_describes_what_was_quarantined(run: Run, quarantine: Quarantine, workspace: Path) -> None:
    run("mkdir .vscode; printf x > .vscode/tasks.json")

    [held] = quarantine.list()
    assert (held.kind, held.reason, held.path) == ("directory", "VS Code obeys it", f"{workspace}/.vscode")
    assert held.sha256 == {"tasks.json": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"}
    assert Path(quarantine.content(held), "tasks.json").read_text() == "x"


def test_the_former_content_of_a_file_is_restored(run: Run, quarantine: Quarantine, workspace: Path) -> None:
    before = (workspace / ".git/config").read_bytes()

    [notice] = run(f'printf "{EVIL}" >> .git/config')

    assert (workspace / ".git/config").read_bytes() == before
    assert "core.fsmonitor" in notice
    assert "its former content is restored" in notice
    assert Path(quarantine.content(quarantine.list()[0])).read_bytes() != before


def test_content_from_before_the_command_is_harmless(
    workspace: Path, guards: GuardTable, quarantine: Quarantine
) -> None:
    shell(workspace, "git config alias.x '!id'; git config filter.lfs.clean x")
    watch = Watch(guards)
    watch.start()
    shell(workspace, "git config user.name x")

    assert quarantine.settle(watch, watch.drain()) == ()
    watch.close()


def test_nothing_is_released_over_an_existing_path(run: Run, quarantine: Quarantine, workspace: Path) -> None:
    run("echo 1 > .mcp.json")
    shell(workspace, "echo 2 > .mcp.json")
    [held] = quarantine.list()

    with pytest.raises(FileExistsError) as raised:
        quarantine.release(held)

    assert raised.value.errno == errno.EEXIST
    assert (workspace / ".mcp.json").read_text() == "2\n"
    quarantine.delete(held)
    assert quarantine.list() == []


def test_a_parent_that_became_a_link_is_not_followed(
    workspace: Path, guards: GuardTable, quarantine: Quarantine, tmp_path: Path
) -> None:
    watch = Watch(guards)
    watch.start()
    shell(workspace, f"mkdir d; echo > d/.mcp.json; mkdir {tmp_path}/outside; echo mine > {tmp_path}/outside/.mcp.json")
    changes = watch.drain()
    shell(workspace, f"mv d e; ln -s {tmp_path}/outside d")

    assert quarantine.settle(watch, changes) == ()
    assert (tmp_path / "outside/.mcp.json").read_text() == "mine\n"
    assert len(quarantine.settle(watch, watch.drain())) == 1
    watch.close()
