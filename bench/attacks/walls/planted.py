"""Attempts to plant what the host runs or obeys later: git, editors, agents, CI, shells.

After the command a person works in the folder; nothing that the command left may run, or be found by its guarded name.
"""

from bench.attacks.walls.ground import FAST, Attack, Ground, Verdict, judged, probe

STEERING = (
    ".vscode/tasks.json",
    ".vscode/settings.json",
    ".idea/workspace.xml",
    ".zed/tasks.json",
    ".cursor/mcp.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".mcp.json",
    "toolreeve.toml",
    "policy.yaml",
    "tools.yaml",
    "auto_approval_policies.yaml",
    "governors.yaml",
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
)
HOSTILE = (
    'printf "[core]\\n\\trepositoryformatversion=0\\n\\tbare=false\\n\\tfsmonitor=\\"{trap}; false\\"\\n'
    '\\thooksPath={hooks}\\n"'
)


def hostile(ground: Ground, hooks: str = "hooks") -> str:
    """A shell command that prints a configuration whose reader runs the trap."""
    return HOSTILE.format(trap=ground.trap, hooks=hooks)


async def plant(ground: Ground, command: str, *, uses: str = "") -> Verdict:
    """Run it in the sandbox, then work on the host as a person would."""
    ran = await ground.script(command)
    await ground.host_uses_git()
    if uses:
        await ground.host("bash", "-c", uses)
    return judged(ground.damage(), ran.error[:80])


@probe("H1", "p01 .git/commondir")
async def commondir(ground: Ground) -> Verdict:
    await ground.repository()
    return await plant(ground, f"cp -r .git evil; {hostile(ground)} > evil/config; echo ../evil > .git/commondir")


@probe("H1", "p02 .git as a file of a linked worktree", fast=False)
async def git_file(ground: Ground) -> Verdict:
    main = await ground.repository(ground.top / "main")
    await ground.host("git", "worktree", "add", "-q", str(ground.work / "tree"), cwd=main)
    ground.work = ground.work / "tree"
    return await plant(
        ground,
        f"git init -q evil; {hostile(ground)} > evil/.git/config; rm -f .git; echo 'gitdir: evil/.git' > .git;"
        " echo 'gitdir: evil/.git' | dd of=.git",
    )


@probe("H1", "p03 git init where no repository is")
async def git_init(ground: Ground) -> Verdict:
    return await plant(ground, f"git init -q .; {hostile(ground)} > .git/config")


@probe("H1", "p04 .git/hooks missing")
async def hooks_missing(ground: Ground) -> Verdict:
    await ground.repository()
    await ground.host("rm", "-rf", ".git/hooks")
    script = f"#!/bin/sh\\n{ground.trap}\\n"
    make = (
        f"mkdir .git/hooks; for h in pre-commit post-checkout; do printf '{script}' > .git/hooks/$h;"
        " chmod +x .git/hooks/$h; done"
    )
    return await plant(ground, make)


@probe("H1", "p05 .git/hooks a link into the workspace", fast=False)
async def hooks_link(ground: Ground) -> Verdict:
    await ground.repository()
    await ground.host("bash", "-c", "rm -rf .git/hooks; mkdir githooks; ln -s ../githooks .git/hooks")
    script = f"#!/bin/sh\\n{ground.trap}\\n"
    return await plant(ground, f"printf '{script}' > githooks/pre-commit; chmod +x githooks/pre-commit")


@probe("H1", "p06 a nested repository of the user's")
async def nested(ground: Ground) -> Verdict:
    await ground.repository()
    inner = await ground.repository(ground.work / "inner")
    ran = await ground.script(
        f"{hostile(ground)} > inner/.git/config; printf '#!/bin/sh\\n{ground.trap}\\n'"
        " > inner/.git/hooks/pre-commit; chmod +x inner/.git/hooks/pre-commit"
    )
    await ground.host_uses_git(inner)
    await ground.host_uses_git()
    return judged(ground.damage(), ran.error[:80])


@probe("H1", "p06 a nested repository that the command makes", fast=False)
async def nested_new(ground: Ground) -> Verdict:
    await ground.repository()
    ran = await ground.script(f"git init -q inner; {hostile(ground)} > inner/.git/config")
    inner = ground.work / "inner"
    if inner.exists():
        await ground.host_uses_git(inner)
    return judged(ground.damage(), ran.error[:80])


@probe("H1", "p07 the configuration of a submodule")
async def submodule(ground: Ground) -> Verdict:
    other = await ground.repository(ground.top / "other")
    await ground.repository()
    await ground.host("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    await ground.host("git", "commit", "-q", "-m", "sub")
    config = (
        "printf '[core]\\n\\trepositoryformatversion=0\\n\\tbare=false\\n\\tworktree=../../../sub\\n"
        '\\tfsmonitor="%s; false"\\n\''
    )
    return await plant(ground, f"{config} '{ground.trap}' > .git/modules/sub/config; touch sub/new")


@probe("H1", "p07 .git/worktrees/*/gitdir and config.worktree")
async def worktrees(ground: Ground) -> Verdict:
    await ground.repository()
    await ground.host("git", "worktree", "add", "-q", "tree")
    await ground.host("git", "config", "extensions.worktreeConfig", "true")
    ran = await ground.script(
        f"{hostile(ground)} > .git/worktrees/tree/config.worktree; {hostile(ground)} > .git/config.worktree"
    )
    await ground.host_uses_git(ground.work / "tree")
    await ground.host_uses_git()
    return judged(ground.damage(), ran.error[:80])


def _steering(name: str) -> Attack:
    async def attack(ground: Ground) -> Verdict:
        ran = await ground.script(f"mkdir -p $(dirname {name}) && echo PLANTED > {name}")
        target = ground.work / name
        found = [f"{name} is there for the host"] if target.exists() and "PLANTED" in target.read_text() else []
        return judged(found, ran.error[:80])

    return attack


for _number, _name in enumerate(STEERING):
    probe("H1", f"p08 {_name} missing", fast=_number < FAST)(_steering(_name))


@probe("H1", "p14 the folder's time is set back")
async def set_back(ground: Ground) -> Verdict:
    """A name that appeared unseen would stay writable for later commands."""
    program = """
import os
found = os.stat(".")
os.makedirs(".vscode", exist_ok=True)
open(".vscode/tasks.json", "w").write("{}")
os.utime(".", ns=(found.st_atime_ns, found.st_mtime_ns))
"""
    await ground.python(program)
    await ground.script("mkdir -p .vscode; echo PLANTED > .vscode/tasks.json")
    target = ground.work / ".vscode" / "tasks.json"
    return judged([".vscode/tasks.json is there for the host"] if target.exists() else [])
