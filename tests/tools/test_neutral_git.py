"""Git without approval, in repositories whose settings name programs for everything."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.integrity.test_watch import shell
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.approval.request import Request
from toolreeve.config import Trial

READERS = """
status
status --short --branch
diff
diff --cached
diff HEAD~1
diff --stat
diff --ext-diff
diff --textconv HEAD~1
log
log -p
log --stat -2
log -p --ext-diff
log --show-signature -1
show
show --textconv HEAD:f.x
show HEAD~1
blame f.x
grep one
grep --textconv one
ls-files -m
ls-files --eol
ls-tree HEAD
cat-file -p HEAD
cat-file --textconv HEAD:f.x
cat-file --filters HEAD:f.x
diff-files -p
diff-index -p HEAD
diff-index HEAD
diff-tree -p HEAD
rev-parse HEAD
rev-list HEAD
describe --always --dirty
shortlog HEAD
branch -a
tag
remote -v
stash list
reflog
check-attr -a f.x
for-each-ref
whatchanged -p
archive HEAD
submodule status
worktree list
config --list
-C nested status
-C nested diff
-C nested/deep log -p
-C linked status
-C linked diff HEAD~1
-C bare.git log -p
-C sub status
-C sub diff HEAD
""".strip().splitlines()


def _hostile(workspace: Path) -> str:
    """Each program leaves a file that tells of it, wherever it can write."""

    def program(name: str) -> str:
        path = workspace / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {workspace}/ran-{name}\ncat 2>/dev/null\nexit 0\n")
        path.chmod(0o755)
        return str(path)

    hooks = workspace / "programs/hooks"
    hooks.mkdir(parents=True, exist_ok=True)
    for hook in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {workspace}/ran-{hook}\n")
        (hooks / hook).chmod(0o755)
    (workspace / "programs/included").write_text(
        f'[diff "y"]\n\ttextconv = {program("included")}\n[filter "y"]\n\tclean = {program("included")}\n'
        f"[core]\n\tfsmonitor = {program('included')}\n"
    )
    return f"""
[core]
    fsmonitor = {program("fsmonitor")}
    sshCommand = {program("ssh")}
    pager = {program("pager")}
    editor = {program("editor")}
    hooksPath = {hooks}
    alternateRefsCommand = {program("alternates")}
[diff]
    external = {program("external")}
[diff "x"]
    textconv = {program("textconv")}
    command = {program("diff-command")}
[filter "x"]
    clean = {program("clean")}
    smudge = {program("smudge")}
    process = {program("process")}
    required = true
[merge "x"]
    driver = {program("merge")}
[pager]
    log = {program("pager-log")}
    diff = {program("pager-diff")}
    status = {program("pager-status")}
[alias]
    log = !{program("alias")}
[gpg]
    program = {program("gpg")}
[log]
    showSignature = true
[interactive]
    diffFilter = {program("interactive")}
[credential]
    helper = {program("credential")}
[include]
    path = {workspace}/programs/included
"""


@pytest.fixture
def workspace(world: World) -> Path:
    top = world.workspace
    shell(
        top,
        """
        one() { git init -q "$1"; cd "$1"
            printf '*.x filter=x diff=x merge=x\\n*.y filter=y diff=y\\n' > .gitattributes
            for n in one two three; do echo $n > f.x; echo $n > f.y; git add -A; git commit -qm $n; done; cd -; }
        one source; one nested; one nested/deep
        mv source/.git .; cp -r source/. .; rm -rf source; git checkout -q .
        git clone -q --bare . bare.git; git worktree add -q linked
        git submodule --quiet add ./bare.git sub
        """,
    )
    settings = _hostile(top)
    for config in (
        ".git/config",
        "nested/.git/config",
        "nested/deep/.git/config",
        "bare.git/config",
        ".git/modules/sub/config",
    ):
        with (top / config).open("a") as file:
            file.write(settings)
    for directory in (".", "nested", "nested/deep", "linked", "sub"):
        for name in ("f.x", "f.y"):
            (top / directory / name).write_text("changed\n")
    hooks = top / "nested/.git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").write_text(f"#!/bin/sh\ntouch {top}/ran-own-hook\n")
    (hooks / "post-index-change").chmod(0o755)
    return top


@pytest.fixture
async def reeve(world: World, workspace: Path) -> AsyncIterator[Toolreeve]:
    async def refuse(_: Request) -> bool:
        return False

    async with Toolreeve(settings=world.settings(), approve=refuse) as runtime:
        yield runtime


async def test_no_git_that_runs_unasked_runs_what_a_repository_names(reeve: Toolreeve, workspace: Path) -> None:
    ran: dict[str, list[str]] = {}
    unasked = 0
    for reader in READERS:
        for command in (f"git {reader}", f"git --no-pager {reader}"):
            result = await reeve.call("bash", {"command": command})
            unasked += result.error is None or result.error.code.name != "DENIED"
            if found := sorted(path.name for path in workspace.glob("ran-*")):
                ran[command] = found
            for path in workspace.glob("ran-*"):
                path.unlink()

    assert ran == {}
    assert unasked >= 70, unasked


async def test_what_git_is_started_with_does_not_matter(reeve: Toolreeve, workspace: Path) -> None:
    for command in (
        "env -u GIT_CONFIG_COUNT git status",
        "unset GIT_CONFIG_COUNT; git diff; git log -p",
        "cd nested && git diff",
    ):
        await reeve.call("bash", {"command": command})

    assert list(workspace.glob("ran-*")) == []


async def test_what_a_person_approved_uses_the_real_settings(world: World, workspace: Path) -> None:
    async def agree(_: Request) -> bool:
        return True

    async with Toolreeve(settings=world.settings(trial=Trial(use="off")), approve=agree) as runtime:
        await runtime.call("bash", {"command": "git status; touch asked"})

    assert (workspace / "asked").exists()
    assert list(workspace.glob("ran-*"))
