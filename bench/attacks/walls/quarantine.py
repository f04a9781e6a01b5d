"""Attempts to leave something planted behind the back of whoever compares the workspace after a command.

What was planted is looked for on the host once the command, or its runtime, has ended.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

from bench.attacks.walls.covers import appears
from bench.attacks.walls.ground import FAST, Attack, Ground, Verdict, held, judged, probe
from bench.attacks.walls.planted import hostile
from toolreeve.config import Commands

TASKS = "mkdir -p .vscode; echo PLANTED > .vscode/tasks.json"
INNER = 'mkdir -p "$D"; git init -q "$D"; CONFIG > "$D/.git/config"'


def planted(ground: Ground, *names: str) -> list[str]:
    """Guarded names at which the host finds what a command wrote."""
    found = [name for name in names if os.path.lexists(ground.work / name)]
    return [f"{name!r} is there for the host" for name in found]


def inner(ground: Ground, folder: str) -> str:
    return INNER.replace("CONFIG", hostile(ground)).replace("$D", folder)


async def used(ground: Ground, *folders: bytes) -> list[str]:
    """Work in the folders as a person would, with whatever names they have."""
    for folder in folders:
        where = ground.work / os.fsdecode(folder)
        if where.is_dir():
            await asyncio.to_thread(
                subprocess.run, ["git", "status"], cwd=where, capture_output=True, timeout=20, check=False
            )
    return ground.damage()


def _after(command: str, *names: str, **args: float) -> Attack:
    async def attack(ground: Ground) -> Verdict:
        ran = await ground.script(command, **args)
        return judged(planted(ground, *names), ran.error[:60])

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
async def out_of_memory(ground: Ground) -> Verdict:
    ground.configure(commands=Commands(memory_mb=64))
    await ground.script(TASKS + "; exec tail /dev/zero")
    return judged(planted(ground, ".vscode/tasks.json"))


@probe("new", "quarantine: the call is cancelled while the command runs")
async def cancelled(ground: Ground) -> Verdict:
    running = asyncio.create_task(ground.script(TASKS + "; touch started; sleep 30"))
    await appears(ground.work / "started")
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await ground.bash("true")
    return judged(planted(ground, ".vscode/tasks.json"))


@probe("new", "quarantine: the runtime is closed while the command runs", fast=False)
async def closed(ground: Ground) -> Verdict:
    running = asyncio.create_task(ground.script(TASKS + "; touch started; sleep 30"))
    await appears(ground.work / "started")
    await ground.close()
    with contextlib.suppress(Exception):
        await asyncio.wait_for(running, 10)
    return judged(planted(ground, ".vscode/tasks.json"))


@probe("new", "quarantine: the runtime is killed while the command runs, and started again", fast=False)
async def killed(ground: Ground) -> Verdict:
    (ground.work / "attack.sh").write_text(TASKS + "; touch started; sleep 30")
    state = {"TOOLREEVE_STATE_DIR": str(ground.top / "state"), "HOME": str(ground.home)}
    process = subprocess.Popen(  # noqa: ASYNC220  # killed and waited for below
        [sys.executable, "-m", "toolreeve", "--mode", "bypass", "call", "bash", "command=bash attack.sh"],
        cwd=ground.work,
        env={**os.environ, **state},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await appears(ground.work / "started")
    finally:
        process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(process.wait)
    await ground.bash("true")
    return judged(planted(ground, ".vscode/tasks.json"))


@probe("new", "quarantine: by a process that outlives the command")
async def daemon(ground: Ground) -> Verdict:
    await ground.script(
        f"(setsid bash -c 'sleep 0.2; {TASKS}' >/dev/null 2>&1 &) ; (trap '' TERM HUP;"
        f" setsid bash -c '{TASKS}') & exit 0"
    )
    await asyncio.sleep(0.6)  # what is awaited here is something that must not happen
    return judged(planted(ground, ".vscode/tasks.json"))


@probe("new", "quarantine: remade all the time by a command that runs beside", fast=False)
async def beside(ground: Ground) -> Verdict:
    (ground.work / "loop.sh").write_text(f"touch started; until [ -e go ]; do {TASKS}; done; {TASKS}")
    running = asyncio.create_task(ground.bash("bash loop.sh"))
    await appears(ground.work / "started")
    for _ in range(5):
        await ground.bash("true")
    (ground.work / "go").touch()
    await running
    return judged(planted(ground, ".vscode/tasks.json"))


@probe("new", "quarantine: in a repository 60 folders down", fast=False)
async def deep(ground: Ground) -> Verdict:
    folder = "/".join(["d"] * 60)
    await ground.script(inner(ground, folder))
    return judged(await used(ground, folder.encode()))


@probe("new", "quarantine: in folders whose names hold newlines and bytes that are no text", fast=False)
async def odd_names(ground: Ground) -> Verdict:
    await ground.script(inner(ground, "$(printf 'a\\nb')") + "\n" + inner(ground, "$(printf 'c\\377d')"))
    return judged(await used(ground, b"a\nb", b"c\xffd"))


@probe("new", "quarantine: in a folder that is locked by one command and opened by the next")
async def locked(ground: Ground) -> Verdict:
    await ground.script(inner(ground, "box/in") + "; chmod 000 box/in box")
    await ground.script("chmod 755 box; chmod 755 box/in")
    return judged(await used(ground, b"box/in"))


@probe("new", "quarantine: a repository under a harmless name, renamed by a later command")
async def renamed(ground: Ground) -> Verdict:
    await ground.script(inner(ground, "in") + "; mv in/.git in/data")
    await ground.script("mv in/data in/.git")
    return judged(await used(ground, b"in"))


@probe("new", "quarantine: the times of every folder set back", fast=False)
async def times(ground: Ground) -> Verdict:
    await ground.script("mkdir -p a/b/c; find . -exec touch -d 2020-01-01 {} +")
    await ground.script(inner(ground, "a/b/c") + "; find . -exec touch -h -d 2020-01-01 {} +")
    return judged(await used(ground, b"a/b/c"))


@probe("new", "quarantine: what is carried away follows no link out of the workspace")
async def carried(ground: Ground) -> Verdict:
    """Names that lead to the victim's folder must not make the runtime move, empty or open it."""
    links = (
        f"ln -s {ground.outside} .vscode; mkdir .claude; ln -s {ground.outside} .claude/x;"
        f" ln -s {ground.victim} .mcp.json"
    )
    await ground.script(links)
    gone = [] if ground.outside.is_dir() and not ground.outside.is_symlink() else ["the folder outside was moved"]
    return judged(ground.damage() + gone + planted(ground, ".vscode", ".mcp.json"))


@probe("new", "quarantine: the user's own files are left where they are", fast=False)
async def own_files(ground: Ground) -> Verdict:
    """The other way round: a user who makes such a file while a command runs keeps it, or is told where it is."""
    (ground.work / ".vscode").mkdir()
    (ground.work / ".vscode" / "settings.json").write_text("{}")
    await ground.bash("true")
    (ground.work / ".vscode" / "settings.json").write_text('{"mine": 1}')
    ran = await ground.script("echo x >> .vscode/settings.json; rm -rf .vscode; mv .vscode gone; true")
    kept = ground.work / ".vscode" / "settings.json"
    return judged(
        [] if kept.exists() and kept.read_text() == '{"mine": 1}' else ["the user's file was changed"], ran.error[:60]
    )


@probe("new", "quarantine: guarded files removed or emptied by a command", fast=False)
async def removed(ground: Ground) -> Verdict:
    await ground.repository()
    (ground.work / "policy.yaml").write_text("rules: []\n")
    before = {name: (ground.work / name).read_bytes() for name in ("policy.yaml", ".git/config")}
    await ground.script(
        "rm -f policy.yaml .git/config; : > policy.yaml; : > .git/config; truncate -s 0 policy.yaml;"
        " mv .git x; rm -rf .git/hooks"
    )
    changed = [
        name
        for name, text in before.items()
        if not (ground.work / name).exists() or (ground.work / name).read_bytes() != text
    ]
    return judged([f"changed: {', '.join(changed)}"] if changed else [])


@probe("new", "quarantine: FIFOs in guarded places stop nobody who compares")
async def fifos(ground: Ground) -> Verdict:
    await ground.repository()
    await ground.script(
        "mkfifo .env .git/commondir sub.env; mkdir -p n/.git m; mkfifo n/.git/config m/.git m/.env m/config;"
        " rm -f .git/info/attributes; mkfifo .git/info/attributes"
    )
    async with asyncio.timeout(15):
        ran = await ground.bash("echo still here")
        read = await ground.call("read_file", path="file.txt")
    return (
        held(ran.stdout.strip())
        if read.ok and ("still" in ran.stdout or ran.error)
        else judged(["the runtime stands still"])
    )
