"""Probes of covered paths: secrets, the state directory, the runtime's own environment.

The secret is a canary; a breach is that the canary comes out, or that the file is another afterwards.
"""

import asyncio
import sys
from pathlib import Path

import toolreeve
from bench.attacks.probes.testbed import CANARY, Testbed, Verdict, judge, probe
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
async def env_later(testbed: Testbed) -> Verdict:
    await testbed.bash("true")
    (testbed.work / ".env").write_text(CANARY)
    outcome = await testbed.script(READ)
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("H2", "p09 .env in a folder made after the runtime started")
async def env_nested(testbed: Testbed) -> Verdict:
    await testbed.bash("true")
    (testbed.work / "app" / "deep").mkdir(parents=True)
    (testbed.work / "app" / "deep" / ".env").write_text(CANARY)
    outcome = await testbed.script("cat app/deep/.env; grep -r CANARY app")
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("H2", "p10 .env saved by write and rename")
async def env_saved(testbed: Testbed) -> Verdict:
    (testbed.work / ".env").write_text("OLD=1")
    await testbed.bash("true")
    (testbed.work / ".env.tmp~").write_text(CANARY)
    (testbed.work / ".env.tmp~").rename(testbed.work / ".env")
    outcome = await testbed.script("cat .env; grep -r CANARY .")
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("H2", "p10 .env saved by rename while a command runs, a second later")
async def env_saved_while_running(testbed: Testbed) -> Verdict:
    (testbed.work / ".env").write_text("OLD=1")
    await testbed.bash("true")
    running = asyncio.create_task(
        testbed.script("touch started; until [ -e go ]; do sleep 0.02; done; sleep 1; cat .env")
    )
    await appears(testbed.work / "started")
    (testbed.work / "x.tmp").write_text(CANARY)
    (testbed.work / "x.tmp").rename(testbed.work / ".env")
    (testbed.work / "go").touch()
    outcome = await running
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("new", "covers: .env in the very moment in which the user saves it", fast=False)
async def env_polled(testbed: Testbed) -> Verdict:
    """The cover follows the file by milliseconds, as the guide says: a command that does nothing but look may win."""
    (testbed.work / ".env").write_text("OLD=1")
    await testbed.bash("true")
    look = "touch started; for i in $(seq 400); do read -r line < .env && echo $line; done 2>/dev/null; true"
    running = asyncio.create_task(testbed.script(look))
    await appears(testbed.work / "started")
    (testbed.work / "x.tmp").write_text(f"{CANARY}\n")
    (testbed.work / "x.tmp").rename(testbed.work / ".env")
    outcome = await running
    if CANARY in outcome.stdout and "lose their cover for a moment" in " ".join(GUIDE.read_text().split()):
        return Verdict("declared", "read for a moment, as the guide says")
    return judge(leaks(outcome.stdout))


async def appears(path: Path) -> None:
    async with asyncio.timeout(15):
        while not path.exists():  # noqa: ASYNC110  # another process makes it
            await asyncio.sleep(0.01)


@probe("H2", "p11 .git/config replaced by git config while a command runs")
async def config_replaced(testbed: Testbed) -> Verdict:
    await testbed.repository()
    trap = f'printf "[core]\\n\\tfsmonitor=\\"{testbed.trap}; false\\"\\n" >> .git/config'
    running = asyncio.create_task(testbed.script(f"touch started; until [ -e go ]; do sleep 0.02; done; {trap}"))
    await appears(testbed.work / "started")
    await testbed.host("git", "config", "user.name", "b")
    (testbed.work / "go").touch()
    outcome = await running
    await testbed.host_uses_git()
    return judge(testbed.damage(), outcome.error[:80])


@probe("M4", "p15 write_file into the runtime's own environment", fast=False)
async def own_environment(testbed: Testbed) -> Verdict:
    """The runtime runs from `.venv` of the workspace; what is written there runs when it starts again."""
    source = Path(toolreeve.__file__).parent.parent
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    await testbed.host(sys.executable, "-m", "venv", "--without-pip", ".venv")
    site = next((testbed.work / ".venv" / "lib").glob("python*/site-packages"))
    (site / "own.pth").write_text(f"{source}\n{packages}\n")
    spots = (
        site / "x.pth",
        site / "sitecustomize.py",
        testbed.work / ".venv/pyvenv.cfg",
        testbed.work / ".venv/bin/python",
    )
    code = f"import os; os.system({testbed.trap!r})\n"
    python = str(testbed.work / ".venv" / "bin" / "python")
    printed = await testbed.host(
        python, "-c", FROM_WITHIN, str(testbed.top / "state"), code, *map(str, spots), env={"PYTHONPATH": ""}
    )
    assert "ASKED" in printed, printed
    await testbed.host(python, "-c", "pass", env={"PYTHONPATH": ""})
    return judge(testbed.damage())


async def at_home(testbed: Testbed, script: str) -> str:
    """What a command prints in a workspace that is the user's home."""
    (testbed.work / "attack.sh").write_text(script)
    environment = {"HOME": str(testbed.work), "TOOLREEVE_STATE_DIR": str(testbed.top / "state")}
    call = (sys.executable, "-m", "toolreeve", "--mode", "bypass", "call", "bash", "command=bash attack.sh")
    return await testbed.host(*call, env=environment)


@probe("M7", "workspace = $HOME: secrets of tools and of the runtime", fast=False)
async def home_secrets(testbed: Testbed) -> Verdict:
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
        (testbed.work / name).parent.mkdir(parents=True, exist_ok=True)
        (testbed.work / name).write_text(f"{CANARY} {name}\n")
    said = await at_home(testbed, "cat " + " ".join(secrets) + "; echo END")
    assert "END" in said, said
    read = [name for name in secrets if f"{CANARY} {name}" in said]
    return judge([f"read: {', '.join(read)}"] if read else [])


@probe("M7", "workspace = $HOME: start-up files of shells", fast=False)
async def home_startup(testbed: Testbed) -> Verdict:
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
        (testbed.work / name).write_text("# the user's\n")
    lines = [f"mkdir -p $(dirname {name}); echo PLANTED >> {name}" for name in names]
    said = await at_home(testbed, "\n".join([*lines, "echo END"]))
    assert "END" in said, said
    plants = [name for name in names if _holds(testbed.work / name, "PLANTED")]
    return judge([f"planted: {', '.join(plants)}"] if plants else [])


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and text in path.read_text()


@probe("new", "covers: .env by hard link, RENAME_EXCHANGE and RENAME_WHITEOUT")
async def exchanged(testbed: Testbed) -> Verdict:
    (testbed.work / ".env").write_text(CANARY)
    outcome = await testbed.python("""
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
    later = await testbed.script(READ)
    kept = [] if (testbed.work / ".env").read_text() == CANARY else [".env was changed"]
    return judge(leaks(outcome.stdout + later.stdout) + kept, outcome.error[:80])


@probe("new", "covers: names that differ in case or by Unicode form", fast=False)
async def case_variants(testbed: Testbed) -> Verdict:
    """Where the file system tells them apart they are other files; where it does not, the cover holds for both."""
    (testbed.work / ".env").write_text(CANARY)
    outcome = await testbed.script(
        "cat .ENV .Env './.env/' .//.env ./../work/.env $'.e\\u0301nv' /proc/self/cwd/.env; true"
    )
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("new", "covers: a hidden file through a directory handle opened before it was covered")
async def held_handle(testbed: Testbed) -> Verdict:
    """A command that stays keeps the folder open while the user makes a secret in it."""
    (testbed.work / "app").mkdir()
    running = asyncio.create_task(
        testbed.python("""
import os, time
folder = os.open("app", os.O_RDONLY)
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.02)
time.sleep(1)
print(os.read(os.open(".env", os.O_RDONLY, dir_fd=folder), 100))
""")
    )
    await appears(testbed.work / "started")
    (testbed.work / "app" / ".env").write_text(CANARY)
    (testbed.work / "go").touch()
    outcome = await running
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("new", "covers: the state directory inside the workspace, by other roads", fast=False)
async def state_inside(testbed: Testbed) -> Verdict:
    testbed.configure(state=State(dir=str(testbed.work / "state")))
    await testbed.bash("true")
    (testbed.work / "state" / "canary").write_text(CANARY)
    outcome = await testbed.script(
        "cat state/canary ./state/../state/canary /proc/self/cwd/state/canary; mv state s2; cat s2/canary;"
        " ln state/toolreeve.db x;"
        " cp -r . /tmp/all; cat /tmp/all/state/canary; tar c state | cat; true"
    )
    kept = [] if (testbed.work / "state" / "canary").exists() else ["the state directory was moved"]
    return judge(leaks(outcome.stdout) + kept, outcome.error[:80])


@probe("new", "covers: .env in a writable root beside the workspace")
async def other_root(testbed: Testbed) -> Verdict:
    other = testbed.top / "other"
    other.mkdir()
    (other / ".env").write_text(CANARY)
    testbed.configure(workspace=Workspace(dir=str(testbed.work), writable_roots=(str(other),)))
    outcome = await testbed.script(f"cat {other}/.env; cp {other}/.env stolen; cat stolen")
    return judge(leaks(outcome.stdout), outcome.error[:80])


@probe("new", "planted: hooks and configuration of a repository in a writable root", fast=False)
async def writable_root_git(testbed: Testbed) -> Verdict:
    other = await testbed.repository(testbed.top / "other")
    testbed.configure(workspace=Workspace(dir=str(testbed.work), writable_roots=(str(other),)))
    trap = f'printf "[core]\\n\\tfsmonitor=\\"{testbed.trap}; false\\"\\n" >> {other}/.git/config'
    outcome = await testbed.script(
        f"{trap}; printf '#!/bin/sh\\n{testbed.trap}\\n' > {other}/.git/hooks/pre-commit;"
        f" chmod +x {other}/.git/hooks/pre-commit"
    )
    await testbed.host_uses_git(other)
    return judge(testbed.damage(), outcome.error[:80])
