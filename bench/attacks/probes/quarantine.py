"""Probes of the quarantine: plants that the comparison after a command could miss.

Plants are searched on the host once the command, or its runtime, has ended.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

from bench.attacks.probes.covers import appears
from bench.attacks.probes.plants import hostile
from bench.attacks.probes.testbed import FAST, Attack, Testbed, Verdict, blocked_verdict, judge, probe
from toolreeve.config import Commands

TASKS = "mkdir -p .vscode; echo PLANTED > .vscode/tasks.json"
INNER = 'mkdir -p "$D"; git init -q "$D"; CONFIG > "$D/.git/config"'


def planted_names(testbed: Testbed, *names: str) -> list[str]:
    """Guarded names at which the host finds what a command wrote."""
    found = [name for name in names if os.path.lexists(testbed.work / name)]
    return [f"{name!r} is there for the host" for name in found]


def inner(testbed: Testbed, folder: str) -> str:
    return INNER.replace("CONFIG", hostile(testbed)).replace("$D", folder)


async def used(testbed: Testbed, *folders: bytes) -> list[str]:
    """Work in the folders as a person would, with whatever names they have."""
    for folder in folders:
        where = testbed.work / os.fsdecode(folder)
        if where.is_dir():
            await asyncio.to_thread(
                subprocess.run, ["git", "status"], cwd=where, capture_output=True, timeout=20, check=False
            )
    return testbed.damage()


def _after(command: str, *names: str, **args: float) -> Attack:
    async def attack(testbed: Testbed) -> Verdict:
        outcome = await testbed.script(command, **args)
        return judge(planted_names(testbed, *names), outcome.error[:60])

    return attack


AFTER: dict[str, tuple[str, tuple[str, ...]]] = {
    "made and removed 300 times, and made at the end": (
        "for i in $(seq 300); do mkdir .vscode; rmdir .vscode; done; " + TASKS,
        (".vscode/tasks.json",),
    ),
    "moved into place as the last act": (
        "mkdir -p stuff/x; echo PLANTED > stuff/x/tasks.json; mv stuff/x .vscode",
        (".vscode/tasks.json",),
    ),
    "behind 20,000 other new names": (
        "mkdir -p many; cd many; seq 20000 | xargs touch; cd ..; " + TASKS,
        (".vscode/tasks.json",),
    ),
    "a sparse file of 1 GB": ("truncate -s 1000M .mcp.json", (".mcp.json",)),
    "a link to a prepared folder": (
        "mkdir evil; echo x > evil/tasks.json; ln -s evil .vscode",
        (".vscode/tasks.json",),
    ),
    "a FIFO": ("mkfifo .mcp.json", (".mcp.json",)),
    "a folder of mode 000 with 2,000 files": (
        "mkdir -p .claude/a; cd .claude/a; seq 2000 | xargs touch; cd ../..; chmod 000 .claude/a .claude",
        (".claude",),
    ),
    "a deep folder that no path can name": (
        "mkdir .claude; cd .claude; for i in $(seq 300); do mkdir dddddddddddddddddddd; cd dddddddddddddddddddd; done",
        (".claude",),
    ),
    "by a second name (hard link) and O_TMPFILE": (
        "echo PLANTED > x; ln x .mcp.json; ln x policy.yaml",
        (".mcp.json", "policy.yaml"),
    ),
    "the command then exits with 255": (TASKS + "; exit 255", (".vscode/tasks.json",)),
    "the command then kills itself": (TASKS + "; kill -9 $$", (".vscode/tasks.json",)),
    "the command then kills its process 1": (TASKS + "; kill -9 -1; kill -9 1", (".vscode/tasks.json",)),
    "the command then floods its output": (TASKS + "; head -c 50000000 /dev/zero", (".vscode/tasks.json",)),
}
for _number, (_name, (_command, _names)) in enumerate(AFTER.items()):
    probe("new", f"quarantine: {_name}", fast=_number < FAST)(_after(_command, *_names))
probe("new", "quarantine: the command then runs out of its time")(
    _after(TASKS + "; sleep 60", ".vscode/tasks.json", timeout=1.0)
)


@probe("new", "quarantine: the command then runs out of memory", fast=False)
async def out_of_memory(testbed: Testbed) -> Verdict:
    testbed.configure(commands=Commands(memory_mb=64))
    await testbed.script(TASKS + "; exec tail /dev/zero")
    return judge(planted_names(testbed, ".vscode/tasks.json"))


@probe("new", "quarantine: the call is cancelled while the command runs")
async def cancelled(testbed: Testbed) -> Verdict:
    running = asyncio.create_task(testbed.script(TASKS + "; touch started; sleep 30"))
    await appears(testbed.work / "started")
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await testbed.bash("true")
    return judge(planted_names(testbed, ".vscode/tasks.json"))


@probe("new", "quarantine: the runtime is closed while the command runs", fast=False)
async def closed(testbed: Testbed) -> Verdict:
    running = asyncio.create_task(testbed.script(TASKS + "; touch started; sleep 30"))
    await appears(testbed.work / "started")
    await testbed.close()
    with contextlib.suppress(Exception):
        await asyncio.wait_for(running, 10)
    return judge(planted_names(testbed, ".vscode/tasks.json"))


@probe("new", "quarantine: the runtime is killed while the command runs, and started again", fast=False)
async def killed(testbed: Testbed) -> Verdict:
    (testbed.work / "attack.sh").write_text(TASKS + "; touch started; sleep 30")
    state = {"TOOLREEVE_STATE_DIR": str(testbed.top / "state"), "HOME": str(testbed.home)}
    process = subprocess.Popen(  # noqa: ASYNC220  # killed and waited for below
        [sys.executable, "-m", "toolreeve", "--mode", "bypass", "call", "bash", "command=bash attack.sh"],
        cwd=testbed.work,
        env={**os.environ, **state},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await appears(testbed.work / "started")
    finally:
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    await testbed.bash("true")
    return judge(planted_names(testbed, ".vscode/tasks.json"))


@probe("new", "quarantine: by a process that outlives the command")
async def daemon(testbed: Testbed) -> Verdict:
    await testbed.script(
        f"(setsid bash -c 'sleep 0.2; {TASKS}' >/dev/null 2>&1 &) ; (trap '' TERM HUP;"
        f" setsid bash -c '{TASKS}') & exit 0"
    )
    await asyncio.sleep(0.6)  # what is awaited here is something that must not happen
    return judge(planted_names(testbed, ".vscode/tasks.json"))


@probe("new", "quarantine: remade all the time by a command that runs beside", fast=False)
async def beside(testbed: Testbed) -> Verdict:
    (testbed.work / "loop.sh").write_text(f"touch started; until [ -e go ]; do {TASKS}; done; {TASKS}")
    running = asyncio.create_task(testbed.bash("bash loop.sh"))
    await appears(testbed.work / "started")
    for _ in range(5):
        await testbed.bash("true")
    (testbed.work / "go").touch()
    await running
    return judge(planted_names(testbed, ".vscode/tasks.json"))


@probe("new", "quarantine: in a repository 60 folders down", fast=False)
async def deep(testbed: Testbed) -> Verdict:
    folder = "/".join(["d"] * 60)
    await testbed.script(inner(testbed, folder))
    return judge(await used(testbed, folder.encode()))


@probe("new", "quarantine: in folders whose names hold newlines and bytes that are no text", fast=False)
async def odd_names(testbed: Testbed) -> Verdict:
    await testbed.script(inner(testbed, "$(printf 'a\\nb')") + "\n" + inner(testbed, "$(printf 'c\\377d')"))
    return judge(await used(testbed, b"a\nb", b"c\xffd"))


@probe("new", "quarantine: in a folder that is locked by one command and opened by the next")
async def locked(testbed: Testbed) -> Verdict:
    await testbed.script(inner(testbed, "box/in") + "; chmod 000 box/in box")
    await testbed.script("chmod 755 box; chmod 755 box/in")
    return judge(await used(testbed, b"box/in"))


@probe("new", "quarantine: a repository under a harmless name, renamed by a later command")
async def renamed(testbed: Testbed) -> Verdict:
    await testbed.script(inner(testbed, "in") + "; mv in/.git in/data")
    await testbed.script("mv in/data in/.git")
    return judge(await used(testbed, b"in"))


@probe("new", "quarantine: the times of every folder set back", fast=False)
async def times(testbed: Testbed) -> Verdict:
    await testbed.script("mkdir -p a/b/c; find . -exec touch -d 2020-01-01 {} +")
    await testbed.script(inner(testbed, "a/b/c") + "; find . -exec touch -h -d 2020-01-01 {} +")
    return judge(await used(testbed, b"a/b/c"))


@probe("new", "quarantine: what is carried away follows no link out of the workspace")
async def carried(testbed: Testbed) -> Verdict:
    """Names that lead to the victim's folder must not make the runtime move, empty or open it."""
    links = (
        f"ln -s {testbed.outside} .vscode; mkdir .claude; ln -s {testbed.outside} .claude/x;"
        f" ln -s {testbed.victim} .mcp.json"
    )
    await testbed.script(links)
    gone = [] if testbed.outside.is_dir() and not testbed.outside.is_symlink() else ["the folder outside was moved"]
    return judge(testbed.damage() + gone + planted_names(testbed, ".vscode", ".mcp.json"))


@probe("new", "quarantine: the user's own files are left where they are", fast=False)
async def own_files(testbed: Testbed) -> Verdict:
    """The other way round: a user who makes such a file while a command runs keeps it, or is told where it is."""
    (testbed.work / ".vscode").mkdir()
    (testbed.work / ".vscode" / "settings.json").write_text("{}")
    await testbed.bash("true")
    (testbed.work / ".vscode" / "settings.json").write_text('{"mine": 1}')
    outcome = await testbed.script("echo x >> .vscode/settings.json; rm -rf .vscode; mv .vscode gone; true")
    kept = testbed.work / ".vscode" / "settings.json"
    return judge(
        [] if kept.exists() and kept.read_text() == '{"mine": 1}' else ["the user's file was changed"],
        outcome.error[:60],
    )


@probe("new", "quarantine: guarded files removed or emptied by a command", fast=False)
async def removed(testbed: Testbed) -> Verdict:
    await testbed.repository()
    (testbed.work / "policy.yaml").write_text("rules: []\n")
    before = {name: (testbed.work / name).read_bytes() for name in ("policy.yaml", ".git/config")}
    await testbed.script(
        "rm -f policy.yaml .git/config; : > policy.yaml; : > .git/config; truncate -s 0 policy.yaml;"
        " mv .git x; rm -rf .git/hooks"
    )
    changed = [
        name
        for name, text in before.items()
        if not (testbed.work / name).exists() or (testbed.work / name).read_bytes() != text
    ]
    return judge([f"changed: {', '.join(changed)}"] if changed else [])


@probe("new", "quarantine: FIFOs in guarded places stop nobody who compares")
async def fifos(testbed: Testbed) -> Verdict:
    await testbed.repository()
    await testbed.script(
        "mkfifo .env .git/commondir sub.env; mkdir -p n/.git m; mkfifo n/.git/config m/.git m/.env m/config;"
        " rm -f .git/info/attributes; mkfifo .git/info/attributes"
    )
    async with asyncio.timeout(15):
        outcome = await testbed.bash("echo still here")
        read = await testbed.call("read_file", path="file.txt")
    return (
        blocked_verdict(outcome.stdout.strip())
        if read.ok and ("still" in outcome.stdout or outcome.error)
        else judge(["the runtime stands still"])
    )
