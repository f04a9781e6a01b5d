"""Probes that plant files for the host: git, editors, agents, CI, shells.

After the command a person works in the folder; nothing that the command left may run, or exist under a guarded name.
"""

from bench.attacks.probes.testbed import FAST, Attack, Testbed, Verdict, judge, probe

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


def hostile(testbed: Testbed, hooks: str = "hooks") -> str:
    """A shell command that prints a configuration whose reader runs the trap."""
    return HOSTILE.format(trap=testbed.trap, hooks=hooks)


async def plant(testbed: Testbed, command: str, *, uses: str = "") -> Verdict:
    """Run it in the sandbox, then work on the host as a person would."""
    outcome = await testbed.script(command)
    await testbed.host_uses_git()
    if uses:
        await testbed.host("bash", "-c", uses)
    return judge(testbed.damage(), outcome.error[:80])


@probe("H1", "p01 .git/commondir")
async def commondir(testbed: Testbed) -> Verdict:
    await testbed.repository()
    return await plant(testbed, f"cp -r .git evil; {hostile(testbed)} > evil/config; echo ../evil > .git/commondir")


@probe("H1", "p02 .git as a file of a linked worktree", fast=False)
async def git_file(testbed: Testbed) -> Verdict:
    main = await testbed.repository(testbed.top / "main")
    await testbed.host("git", "worktree", "add", "-q", str(testbed.work / "tree"), cwd=main)
    testbed.work = testbed.work / "tree"
    return await plant(
        testbed,
        f"git init -q evil; {hostile(testbed)} > evil/.git/config; rm -f .git; echo 'gitdir: evil/.git' > .git;"
        " echo 'gitdir: evil/.git' | dd of=.git",
    )


@probe("H1", "p03 git init where no repository is")
async def git_init(testbed: Testbed) -> Verdict:
    return await plant(testbed, f"git init -q .; {hostile(testbed)} > .git/config")


@probe("H1", "p04 .git/hooks missing")
async def hooks_missing(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("rm", "-rf", ".git/hooks")
    script = f"#!/bin/sh\\n{testbed.trap}\\n"
    make = (
        f"mkdir .git/hooks; for h in pre-commit post-checkout; do printf '{script}' > .git/hooks/$h;"
        " chmod +x .git/hooks/$h; done"
    )
    return await plant(testbed, make)


@probe("H1", "p05 .git/hooks a link into the workspace", fast=False)
async def hooks_link(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("bash", "-c", "rm -rf .git/hooks; mkdir githooks; ln -s ../githooks .git/hooks")
    script = f"#!/bin/sh\\n{testbed.trap}\\n"
    return await plant(testbed, f"printf '{script}' > githooks/pre-commit; chmod +x githooks/pre-commit")


@probe("H1", "p06 a nested repository of the user's")
async def nested(testbed: Testbed) -> Verdict:
    await testbed.repository()
    inner = await testbed.repository(testbed.work / "inner")
    outcome = await testbed.script(
        f"{hostile(testbed)} > inner/.git/config; printf '#!/bin/sh\\n{testbed.trap}\\n'"
        " > inner/.git/hooks/pre-commit; chmod +x inner/.git/hooks/pre-commit"
    )
    await testbed.host_uses_git(inner)
    await testbed.host_uses_git()
    return judge(testbed.damage(), outcome.error[:80])


@probe("H1", "p06 a nested repository that the command makes", fast=False)
async def nested_new(testbed: Testbed) -> Verdict:
    await testbed.repository()
    outcome = await testbed.script(f"git init -q inner; {hostile(testbed)} > inner/.git/config")
    inner = testbed.work / "inner"
    if inner.exists():
        await testbed.host_uses_git(inner)
    return judge(testbed.damage(), outcome.error[:80])


@probe("H1", "p07 the configuration of a submodule")
async def submodule(testbed: Testbed) -> Verdict:
    other = await testbed.repository(testbed.top / "other")
    await testbed.repository()
    await testbed.host("git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub")
    await testbed.host("git", "commit", "-q", "-m", "sub")
    config = (
        "printf '[core]\\n\\trepositoryformatversion=0\\n\\tbare=false\\n\\tworktree=../../../sub\\n"
        '\\tfsmonitor="%s; false"\\n\''
    )
    return await plant(testbed, f"{config} '{testbed.trap}' > .git/modules/sub/config; touch sub/new")


@probe("H1", "p07 .git/worktrees/*/gitdir and config.worktree")
async def worktrees(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.host("git", "worktree", "add", "-q", "tree")
    await testbed.host("git", "config", "extensions.worktreeConfig", "true")
    outcome = await testbed.script(
        f"{hostile(testbed)} > .git/worktrees/tree/config.worktree; {hostile(testbed)} > .git/config.worktree"
    )
    await testbed.host_uses_git(testbed.work / "tree")
    await testbed.host_uses_git()
    return judge(testbed.damage(), outcome.error[:80])


def _steering(name: str) -> Attack:
    async def attack(testbed: Testbed) -> Verdict:
        outcome = await testbed.script(f"mkdir -p $(dirname {name}) && echo PLANTED > {name}")
        target = testbed.work / name
        found = [f"{name} is there for the host"] if target.exists() and "PLANTED" in target.read_text() else []
        return judge(found, outcome.error[:80])

    return attack


for _number, _name in enumerate(STEERING):
    probe("H1", f"p08 {_name} missing", fast=_number < FAST)(_steering(_name))


@probe("H1", "p14 the folder's time is set back")
async def set_back(testbed: Testbed) -> Verdict:
    """A name that appeared unseen would stay writable for later commands."""
    program = """
import os
found = os.stat(".")
os.makedirs(".vscode", exist_ok=True)
open(".vscode/tasks.json", "w").write("{}")
os.utime(".", ns=(found.st_atime_ns, found.st_mtime_ns))
"""
    await testbed.python(program)
    await testbed.script("mkdir -p .vscode; echo PLANTED > .vscode/tasks.json")
    target = testbed.work / ".vscode" / "tasks.json"
    return judge([".vscode/tasks.json is there for the host"] if target.exists() else [])
