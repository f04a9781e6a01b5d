"""Probes of git that runs without asking, in repositories with hostile settings.

The hostile program reports to a socket in the workspace, which only the probe listens on: a breach is that it ran.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.attacks.probes.testbed import PYTHON, Testbed, Verdict, blocked_verdict, judge, probe
from toolreeve.config import Policy

COMMANDS = (
    "git status",
    "git status --porcelain",
    "git diff",
    "git diff --cached",
    "git diff HEAD",
    "git diff --stat",
    "git diff --ext-diff",
    "git diff --textconv HEAD",
    "git log -p -2",
    "git log --show-signature -1",
    "git log --ext-diff -p -1",
    "git log --stat",
    "git show",
    "git show HEAD:file.txt",
    "git show --textconv HEAD:file.txt",
    "git show --ext-diff HEAD",
    "git blame file.txt",
    "git grep one",
    "git grep --textconv one",
    "git ls-files -m",
    "git ls-files --others",
    "git ls-files --eol",
    "git ls-tree HEAD",
    "git cat-file --filters HEAD:file.txt",
    "git cat-file --textconv HEAD:file.txt",
    "git cat-file -p HEAD",
    "git describe --always --dirty",
    "git diff-index HEAD",
    "git diff-files -p",
    "git diff-tree -p HEAD",
    "git shortlog -s HEAD",
    "git branch -v",
    "git tag -v signed",
    "git verify-commit HEAD",
    "git remote -v",
    "git remote show origin",
    "git ls-remote origin",
    "git stash list",
    "git stash show -p",
    "git reflog",
    "git rev-parse HEAD",
    "git rev-list --all",
    "git for-each-ref",
    "git whatchanged -1 -p",
    "git count-objects",
    "git config --list",
    "git check-attr -a file.txt",
    "git hash-object file.txt",
    "git archive HEAD | wc -c",
    "git -C . status",
    "git --no-pager diff",
    "git worktree list",
    "git submodule status",
    "git range-diff HEAD~1..HEAD HEAD~1..HEAD",
    "git diff --no-index file.txt other.txt",
)
SETTINGS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.sshCommand",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.x.textconv",
    "diff.x.command",
    "filter.x.clean",
    "filter.x.smudge",
    "merge.x.driver",
    "gpg.program",
    "gpg.ssh.program",
    "credential.helper",
    "interactive.diffFilter",
    "pager.diff",
    "pager.log",
    "pager.status",
    "tar.tar.command",
)


class Recorder:
    """Counts the reports of the hostile program."""

    def __init__(self, testbed: Testbed) -> None:
        self.path = testbed.work / "recorder.sock"
        self.program = testbed.work / "hostile.py"
        self.program.write_text(
            "import socket, sys\n"
            f"line = socket.socket(socket.AF_UNIX)\nline.connect({str(self.path)!r})\n"
            "line.send(b'ran')\nprint(1)\n"
        )
        self.command = f"{PYTHON} -I -S {self.program}"
        self.count = 0

    def heard(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        writer.close()


@asynccontextmanager
async def recording(testbed: Testbed) -> AsyncIterator[Recorder]:
    recorder = Recorder(testbed)
    server = await asyncio.start_unix_server(recorder.heard, recorder.path)
    recorder.path.chmod(0o777)
    try:
        yield recorder
    finally:
        server.close()


async def hostile_repository(testbed: Testbed, command: str) -> None:
    await testbed.repository()
    (testbed.work / ".gitattributes").write_text("*.txt diff=x filter=x merge=x\n")
    (testbed.work / "other.txt").write_text("two\n")
    lines = [
        "git add -A; git commit -q -m two; git tag signed; echo more >> file.txt; git stash -q; echo yet >> file.txt"
    ]
    lines += [f"git config {name} '{command}'" for name in SETTINGS]
    lines += ["git config log.showSignature true", "git config remote.origin.url 'ssh://nowhere.example/x'"]
    lines += ["git config remote.second.url 'ext::" + command + "'", "git config protocol.ext.allow always"]
    lines += [
        f"printf '#!/bin/sh\\n{command}\\n' > .git/hooks/post-index-change; chmod +x .git/hooks/post-index-change"
    ]
    await testbed.host("bash", "-c", "\n".join(lines))


@probe("H3", f"{len(COMMANDS)} unasked git commands, {len(SETTINGS)} hostile settings")
async def readers(testbed: Testbed) -> Verdict:
    async with recording(testbed) as recorder:
        await hostile_repository(testbed, recorder.command)
        testbed.configure(policy=Policy(mode="default"))
        triggered: list[str] = []
        asked = 0
        for command in COMMANDS:
            before = recorder.count
            result = await testbed.bash(command, timeout=10)
            asked += "APPROVAL" in result.error
            if recorder.count > before:
                triggered.append(command)
        breach = [f"{len(triggered)} of {len(COMMANDS) - asked} ran it: {', '.join(triggered)}"] if triggered else []
        return judge(breach, f"{len(COMMANDS) - asked} unasked, none ran it")


@probe("H3", "the program can be heard at all (the recorder works)")
async def control(testbed: Testbed) -> Verdict:
    """Asked for by name, the hostile program reports: silence in the other probes means that it did not run."""
    async with recording(testbed) as recorder:
        await testbed.bash(recorder.command)
        return blocked_verdict("heard") if recorder.count else judge(["the recorder hears nothing"])


@probe("H3", "the workspace is unchanged by commands that only read", fast=False)
async def unchanged(testbed: Testbed) -> Verdict:
    await hostile_repository(testbed, f"touch {testbed.work}/CHANGED; false")
    testbed.configure(policy=Policy(mode="default"))
    for command in COMMANDS[:12]:
        await testbed.bash(command, timeout=10)
    return judge(["a command that only reads changed the workspace"] if (testbed.work / "CHANGED").exists() else [])


HOME_FILES = {
    ".gitconfig in a kept HOME": ("$HOME/.gitconfig", '[core]\\n\\tfsmonitor=\\"{command}; false\\"\\n', "git status"),
    ".config/git/config in a kept HOME": (
        "$HOME/.config/git/config",
        '[core]\\n\\tfsmonitor=\\"{command}; false\\"\\n',
        "git status",
    ),
}


@probe("H3", "p19 ~/.gitconfig of an earlier command")
async def kept_home(testbed: Testbed) -> Verdict:
    async with recording(testbed) as recorder:
        await testbed.repository()
        for path, text, use in HOME_FILES.values():
            filled = text.format(command=recorder.command)
            await testbed.script(f'mkdir -p $(dirname {path}); printf "{filled}" > {path}')
            await testbed.bash(use)
        return judge([f"{recorder.count} later commands ran it"] if recorder.count else [])


@probe("new", "kept HOME: usercustomize.py, .pth and bash start-up files of an earlier command", fast=False)
async def kept_python(testbed: Testbed) -> Verdict:
    async with recording(testbed) as recorder:
        code = f'import os; os.system(\\"{recorder.command}\\")'
        await testbed.script(
            f"for v in $(ls -d /usr/lib/python3.* | sed 's#.*/##') python3.11 python3.12 python3.13; do\n"
            f'd=$HOME/.local/lib/$v/site-packages; mkdir -p $d; echo "{code}" > $d/usercustomize.py;'
            f' echo "{code}" > $d/x.pth; done\n'
            f"echo '{recorder.command}' | tee $HOME/.bashrc $HOME/.bash_profile $HOME/.profile $HOME/.bash_logout;"
            f" mkdir -p $HOME/bin; printf '#!/bin/sh\\n{recorder.command}\\n' > $HOME/bin/ls; chmod +x $HOME/bin/ls"
        )
        for use in ("/usr/bin/python3 -c pass || true", "bash -lc ls", "bash -ic true", "ls"):
            await testbed.bash(use)
        return judge([f"{recorder.count} later commands ran it"] if recorder.count else [])


@probe("new", "kept environment: GIT_DIR, LD_PRELOAD, BASH_ENV and cwd of an earlier command")
async def kept_environment(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.script(
        "export GIT_DIR=/tmp/x LD_PRELOAD=/tmp/x.so BASH_ENV=/tmp/x; cd /tmp; umask 000; ulimit -n 10;"
        " exec bash -c true"
    )
    outcome = await testbed.script("env; pwd; umask; ulimit -n; git rev-parse --git-dir")
    found = [name for name in ("GIT_DIR=", "LD_PRELOAD=", "BASH_ENV=") if name in outcome.stdout]
    if str(testbed.work) not in outcome.stdout or "0000" in outcome.stdout.split():
        found.append("cwd or umask")
    return judge([f"kept: {', '.join(found)}"] if found else [])
