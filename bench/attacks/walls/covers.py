"""Attempts to read or change what is covered: secrets, the state directory, the runtime's own environment.

The secret is a canary; a breach is that the canary comes out, or that the file is another afterwards.
"""

import asyncio
import sys
from pathlib import Path

import toolreeve
from bench.attacks.walls.ground import CANARY, Ground, Verdict, judged, probe
from toolreeve.config import State, Workspace

FROM_WITHIN = """
import asyncio, sys
from toolreeve import Toolreeve
from toolreeve.config import Policy, Settings, State
async def main(state, code, *spots):
    async with Toolreeve(settings=Settings(state=State(dir=state), policy=Policy(mode="bypass"))) as reeve:
        for spot in spots:
            await reeve.call("write_file", path=spot, content=code)
            await reeve.call("bash", command=f"cat > {spot}.pth <<'END'\\n{code}\\nEND")
    print("ASKED")
asyncio.run(main(*sys.argv[1:]))
"""
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "sandbox.md"
READ = "cat .env .env.saved 2>/dev/null; grep -r CANARY . 2>/dev/null; true"


def leaks(text: str) -> list[str]:
    return ["the secret was read"] if CANARY in text else []


@probe("H2", "p09 .env made after the runtime started")
async def env_later(ground: Ground) -> Verdict:
    await ground.bash("true")
    (ground.work / ".env").write_text(CANARY)
    ran = await ground.script(READ)
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("H2", "p09 .env in a folder made after the runtime started")
async def env_nested(ground: Ground) -> Verdict:
    await ground.bash("true")
    (ground.work / "app" / "deep").mkdir(parents=True)
    (ground.work / "app" / "deep" / ".env").write_text(CANARY)
    ran = await ground.script("cat app/deep/.env; grep -r CANARY app")
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("H2", "p10 .env saved by write and rename")
async def env_saved(ground: Ground) -> Verdict:
    (ground.work / ".env").write_text("OLD=1")
    await ground.bash("true")
    (ground.work / ".env.tmp~").write_text(CANARY)
    (ground.work / ".env.tmp~").rename(ground.work / ".env")
    ran = await ground.script("cat .env; grep -r CANARY .")
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("H2", "p10 .env saved by rename while a command runs, a second later")
async def env_saved_while_running(ground: Ground) -> Verdict:
    (ground.work / ".env").write_text("OLD=1")
    await ground.bash("true")
    running = asyncio.create_task(
        ground.script("touch started; until [ -e go ]; do sleep 0.02; done; sleep 1; cat .env")
    )
    await appears(ground.work / "started")
    (ground.work / "x.tmp").write_text(CANARY)
    (ground.work / "x.tmp").rename(ground.work / ".env")
    (ground.work / "go").touch()
    ran = await running
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("new", "covers: .env in the very moment in which the user saves it", fast=False)
async def env_polled(ground: Ground) -> Verdict:
    """The cover follows the file by milliseconds, as the guide says: a command that does nothing but look may win."""
    (ground.work / ".env").write_text("OLD=1")
    await ground.bash("true")
    look = "touch started; for i in $(seq 400); do read -r line < .env && echo $line; done 2>/dev/null; true"
    running = asyncio.create_task(ground.script(look))
    await appears(ground.work / "started")
    (ground.work / "x.tmp").write_text(f"{CANARY}\n")
    (ground.work / "x.tmp").rename(ground.work / ".env")
    ran = await running
    if CANARY in ran.stdout and "loses its cover for a moment" in " ".join(GUIDE.read_text().split()):
        return Verdict("declared", "read for a moment, as the guide says")
    return judged(leaks(ran.stdout))


async def appears(path: Path) -> None:
    async with asyncio.timeout(15):
        while not path.exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0.01)


@probe("H2", "p11 .git/config replaced by git config while a command runs")
async def config_replaced(ground: Ground) -> Verdict:
    await ground.repository()
    trap = f'printf "[core]\\n\\tfsmonitor=\\"{ground.trap}; false\\"\\n" >> .git/config'
    running = asyncio.create_task(ground.script(f"touch started; until [ -e go ]; do sleep 0.02; done; {trap}"))
    await appears(ground.work / "started")
    await ground.host("git", "config", "user.name", "b")
    (ground.work / "go").touch()
    ran = await running
    await ground.host_uses_git()
    return judged(ground.damage(), ran.error[:80])


@probe("M4", "p15 write_file into the runtime's own environment", fast=False)
async def own_environment(ground: Ground) -> Verdict:
    """The runtime runs from `.venv` of the workspace; what is written there runs when it starts again."""
    source = Path(toolreeve.__file__).parent.parent
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    await ground.host(sys.executable, "-m", "venv", "--without-pip", ".venv")
    site = next((ground.work / ".venv" / "lib").glob("python*/site-packages"))
    (site / "own.pth").write_text(f"{source}\n{packages}\n")
    spots = (
        site / "x.pth",
        site / "sitecustomize.py",
        ground.work / ".venv/pyvenv.cfg",
        ground.work / ".venv/bin/python",
    )
    code = f"import os; os.system({ground.trap!r})\n"
    python = str(ground.work / ".venv" / "bin" / "python")
    told = await ground.host(
        python, "-c", FROM_WITHIN, str(ground.top / "state"), code, *map(str, spots), env={"PYTHONPATH": ""}
    )
    assert "ASKED" in told, told
    await ground.host(python, "-c", "pass", env={"PYTHONPATH": ""})
    return judged(ground.damage())


async def at_home(ground: Ground, script: str) -> str:
    """What a command prints in a workspace that is the user's home."""
    (ground.work / "attack.sh").write_text(script)
    environment = {"HOME": str(ground.work), "TOOLREEVE_STATE_DIR": str(ground.top / "state")}
    call = (sys.executable, "-m", "toolreeve", "--mode", "bypass", "call", "bash", "command=bash attack.sh")
    return await ground.host(*call, env=environment)


@probe("M7", "workspace = $HOME: secrets of tools and of the runtime", fast=False)
async def home_secrets(ground: Ground) -> Verdict:
    secrets = (
        ".config/toolreeve/secrets.toml",
        ".config/gh/hosts.yml",
        "project/.env",
        ".ssh/id_rsa",
        ".aws/credentials",
        ".kube/config",
        ".docker/config.json",
        ".netrc",
        ".config/gcloud/credentials.db",
        ".gnupg/private-keys-v1.d/a.key",
        ".local/share/keyrings/login.keyring",
        ".cargo/credentials.toml",
        ".npmrc",
        ".pypirc",
        ".git-credentials",
        ".pgpass",
    )
    for name in secrets:
        (ground.work / name).parent.mkdir(parents=True, exist_ok=True)
        (ground.work / name).write_text(f"{CANARY} {name}\n")
    said = await at_home(ground, "cat " + " ".join(secrets) + "; echo END")
    assert "END" in said, said
    read = [name for name in secrets if f"{CANARY} {name}" in said]
    return judged([f"read: {', '.join(read)}"] if read else [])


@probe("M7", "workspace = $HOME: start-up files of shells", fast=False)
async def home_startup(ground: Ground) -> Verdict:
    names = (
        ".bashrc",
        ".profile",
        ".bash_profile",
        ".zshrc",
        ".zshenv",
        ".config/fish/config.fish",
        ".gitconfig",
        ".config/git/config",
        ".ssh/authorized_keys",
        ".config/autostart/x.desktop",
        ".vimrc",
        ".inputrc",
        ".local/bin/git",
        ".config/systemd/user/x.service",
        ".pam_environment",
        ".xprofile",
    )
    present = names[:4]
    for name in present:
        (ground.work / name).write_text("# the user's\n")
    lines = [f"mkdir -p $(dirname {name}); echo PLANTED >> {name}" for name in names]
    said = await at_home(ground, "\n".join([*lines, "echo END"]))
    assert "END" in said, said
    planted = [name for name in names if _holds(ground.work / name, "PLANTED")]
    return judged([f"planted: {', '.join(planted)}"] if planted else [])


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and text in path.read_text()


@probe("new", "covers: .env by hard link, RENAME_EXCHANGE and RENAME_WHITEOUT")
async def exchanged(ground: Ground) -> Verdict:
    (ground.work / ".env").write_text(CANARY)
    ran = await ground.python("""
import ctypes, os
libc = ctypes.CDLL(None)
open("bait", "w").close()
for flags in (1, 2, 4, 5):
    libc.renameat2(-100, b".env", -100, b"bait", flags)
    libc.renameat2(-100, b"bait", -100, b".env", flags)
for act in (lambda: os.link(".env", "hard"), lambda: os.rename(".env", "moved"), lambda: os.unlink(".env"),
            lambda: libc.linkat(os.open(".env", 0o10000000), b"", -100, b"hard2", 0x1000),
            lambda: os.chmod(".env", 0o777)):
    try:
        act()
    except OSError as problem:
        print(problem)
for name in os.listdir("."):
    try:
        print(open(name).read() if name != "attack.py" else "")
    except OSError as problem:
        print(problem)
""")
    later = await ground.script(READ)
    kept = [] if (ground.work / ".env").read_text() == CANARY else [".env was changed"]
    return judged(leaks(ran.stdout + later.stdout) + kept, ran.error[:80])


@probe("new", "covers: names that differ in case or by Unicode form", fast=False)
async def case_variants(ground: Ground) -> Verdict:
    """Where the file system tells them apart they are other files; where it does not, the cover holds for both."""
    (ground.work / ".env").write_text(CANARY)
    ran = await ground.script("cat .ENV .Env './.env/' .//.env ./../work/.env $'.e\\u0301nv' /proc/self/cwd/.env; true")
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("new", "covers: a hidden file through a directory handle opened before it was covered")
async def held_handle(ground: Ground) -> Verdict:
    """A command that stays keeps the folder open while the user makes a secret in it."""
    (ground.work / "app").mkdir()
    running = asyncio.create_task(
        ground.python("""
import os, time
folder = os.open("app", os.O_RDONLY)
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
time.sleep(1)
print(os.read(os.open(".env", os.O_RDONLY, dir_fd=folder), 100))
""")
    )
    await appears(ground.work / "started")
    (ground.work / "app" / ".env").write_text(CANARY)
    (ground.work / "go").touch()
    ran = await running
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("new", "covers: the state directory inside the workspace, by other roads", fast=False)
async def state_inside(ground: Ground) -> Verdict:
    ground.configure(state=State(dir=str(ground.work / "state")))
    await ground.bash("true")
    (ground.work / "state" / "canary").write_text(CANARY)
    ran = await ground.script(
        "cat state/canary ./state/../state/canary /proc/self/cwd/state/canary; mv state s2; cat s2/canary;"
        " ln state/toolreeve.db x;"
        " cp -r . /tmp/all; cat /tmp/all/state/canary; tar c state | cat; true"
    )
    kept = [] if (ground.work / "state" / "canary").exists() else ["the state directory was moved"]
    return judged(leaks(ran.stdout) + kept, ran.error[:80])


@probe("new", "covers: .env in a writable root beside the workspace")
async def other_root(ground: Ground) -> Verdict:
    other = ground.top / "other"
    other.mkdir()
    (other / ".env").write_text(CANARY)
    ground.configure(workspace=Workspace(dir=str(ground.work), writable_roots=(str(other),)))
    ran = await ground.script(f"cat {other}/.env; cp {other}/.env stolen; cat stolen")
    return judged(leaks(ran.stdout), ran.error[:80])


@probe("new", "planted: hooks and configuration of a repository in a writable root", fast=False)
async def writable_root_git(ground: Ground) -> Verdict:
    other = await ground.repository(ground.top / "other")
    ground.configure(workspace=Workspace(dir=str(ground.work), writable_roots=(str(other),)))
    trap = f'printf "[core]\\n\\tfsmonitor=\\"{ground.trap}; false\\"\\n" >> {other}/.git/config'
    ran = await ground.script(
        f"{trap}; printf '#!/bin/sh\\n{ground.trap}\\n' > {other}/.git/hooks/pre-commit;"
        f" chmod +x {other}/.git/hooks/pre-commit"
    )
    await ground.host_uses_git(other)
    return judged(ground.damage(), ran.error[:80])
