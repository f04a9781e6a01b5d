"""Probes that try to lower the sandbox tier: links, special files, races.

Whatever a workspace holds, a command runs in the tier that the machine offers, or not at all.
"""

import asyncio
import contextlib
import json
import os
import sys
import threading

from bench.attacks.probes.testbed import FAST, PYTHON, Attack, Outcome, Testbed, Verdict, judge, probe
from toolreeve.config import Policy, State

LINKS = {
    ".vscode to nothing": "ln -s nowhere .vscode",
    ".idea to a directory": "mkdir d; ln -s d .idea",
    ".claude to itself": "ln -s .claude .claude",
    ".github to a directory": "mkdir ci; ln -s ci .github",
    ".git/hooks to a directory": "mkdir -p .git githooks; ln -s ../githooks .git/hooks",
    ".git/config to nothing": "mkdir -p .git; ln -s gone .git/config",
    ".git to a directory": "mkdir store; ln -s store .git",
    ".git/info to itself": "mkdir -p .git; ln -s info .git/info",
    "toolreeve.toml to /etc/passwd": "ln -s /etc/passwd toolreeve.toml",
    ".mcp.json to /proc/self/fd/1": "ln -s /proc/self/fd/1 .mcp.json",
    ".zed to a chain of 45 links": "for i in $(seq 45); do ln -s l$((i+1)) l$i; done; ln -s l1 .zed",
}
SPECIAL = {
    "a FIFO named .vscode": "mkfifo .vscode",
    "a socket named .mcp.json": f"{PYTHON} -c 'import socket; socket.socket(1).bind(\".mcp.json\")'",
    "a directory of mode 000 named .git": "mkdir -p .git/hooks; chmod 000 .git",
    "a file where .git/info should be": "mkdir -p .git; echo x > .git/info",
    "a name of 255 bytes beside .vscode/": "mkdir -p .vscode; touch .vscode/$(printf 'n%.0s' $(seq 255))",
    "a directory named .env with mode 000": "mkdir .env; chmod 000 .env",
}


async def lowered(testbed: Testbed) -> Verdict:
    """What a second command can do once the first has prepared the workspace."""
    reach = (
        f"id -u; chmod 666 {testbed.victim}; touch -d 2001-01-01 {testbed.victim}; cat {testbed.victim};"
        f" ls /proc | grep -c '^[0-9]'; echo {os.getpid()}; kill -0 {os.getpid()} && echo SIGNALLED"
    )
    before = testbed.victim.stat().st_mtime_ns
    second = await testbed.script(reach)
    breaches = testbed.damage() + sees(second)
    if testbed.victim.stat().st_mtime_ns != before:
        breaches.append("the time of a file outside was changed")
    return judge(breaches, second.sandbox or f"refused: {second.error[:60]}")


def sees(outcome: Outcome) -> list[str]:
    breaches = []
    if outcome.ok and outcome.sandbox != "full":
        breaches.append(f"ran in the tier {outcome.sandbox}")
    if outcome.stdout.startswith("0\n"):
        breaches.append("ran as uid 0")
    if "SIGNALLED" in outcome.stdout:
        breaches.append("the runtime can be signalled")
    return breaches


def _prepared(preparation: str, *, by_command: bool) -> Attack:
    async def attack(testbed: Testbed) -> Verdict:
        if by_command:
            await testbed.script(preparation)
        else:
            await testbed.host("bash", "-c", preparation)
        return await lowered(testbed)

    return attack


for _number, (_name, _preparation) in enumerate(LINKS.items()):
    probe("C1", f"link made by a command: {_name}", fast=_number < FAST)(_prepared(_preparation, by_command=True))
for _name, _preparation in list(LINKS.items())[:5]:
    probe("C1", f"link in the workspace: {_name}", fast=False)(_prepared(_preparation, by_command=False))
for _number, (_name, _preparation) in enumerate(SPECIAL.items()):
    probe("new", f"tier: {_name}", fast=_number < FAST)(_prepared(_preparation, by_command=True))


@probe("C1", "the user's .env is a link out of the workspace")
async def linked_env(testbed: Testbed) -> Verdict:
    (testbed.top / "shared.env").write_text("KEY=1")
    (testbed.work / ".env").symlink_to("../shared.env")
    return await lowered(testbed)


@probe("C1", "git status twice, unasked, with a hostile fsmonitor")
async def chain(testbed: Testbed) -> Verdict:
    await testbed.repository()
    hostile = f"ln -sfn nowhere .vscode; chmod 666 {testbed.victim}; false"
    await testbed.host("git", "config", "core.fsmonitor", hostile)
    testbed.configure(policy=Policy(mode="default"))
    first = await testbed.bash("git status")
    second = await testbed.bash("git status")
    linked = ["the fsmonitor ran and changed the workspace"] if (testbed.work / ".vscode").is_symlink() else []
    return judge(testbed.damage() + linked + sees(first) + sees(second), f"{first.sandbox}, {second.sandbox}")


@probe("L5", "doctor names the tier that commands run in", fast=False)
async def doctor_agrees(testbed: Testbed) -> Verdict:
    (testbed.work / ".vscode").symlink_to("nowhere")
    outcome = await testbed.bash("true")
    state = {"TOOLREEVE_STATE_DIR": str(testbed.top / "state")}
    printed = await testbed.host(sys.executable, "-m", "toolreeve", "--json", "doctor", env=state)
    checks = json.loads(printed[printed.index("{") : printed.rindex("}") + 1])["checks"]
    said = next(check["found"] for check in checks if (check["area"], check["name"]) == ("control", "sandbox"))
    runs_in = f"tier {outcome.sandbox}" if outcome.ok else "no program can run"
    return judge([] if runs_in in said else [f"calls: {runs_in}; doctor: {said[:60]}"], said[:60])


@probe("new", "tier: guarded names flicker while places are built", fast=False)
async def flicker(testbed: Testbed) -> Verdict:
    """A link comes and goes on the host's side of the workspace, so that the path that was looked at is another."""
    done = threading.Event()
    name = testbed.work / ".vscode"
    other = testbed.work / ".mcp.json"

    def swap() -> None:
        while not done.is_set():
            with contextlib.suppress(OSError):
                name.symlink_to("nowhere")
                other.mkdir()
                name.unlink()
                name.mkdir()
                other.rmdir()
                name.rmdir()

    swapping = asyncio.create_task(asyncio.to_thread(swap))
    breaches: set[str] = set()
    refused = 0
    try:
        for _ in range(25):
            outcome = await testbed.script(f"id -u; chmod 666 {testbed.victim}")
            breaches.update(sees(outcome))
            refused += not outcome.ok and "sandbox" in outcome.error
    finally:
        done.set()
        await swapping
    return judge(sorted(breaches) + testbed.damage(), f"25 commands, {refused} refused")


@probe("new", "tier: the runtime's own supervisor processes are starved of descriptors")
async def starved(testbed: Testbed) -> Verdict:
    """The command floods every line it can find with descriptors and bytes; the next must run as before."""
    await testbed.python("""
import os, socket
for number in range(3, 64):
    try:
        line = socket.socket(fileno=number)
        line.setblocking(False)
        for _ in range(1000):
            socket.send_fds(line, [b"x" * 4096], [0, 1, 2])
    except OSError:
        pass
""")
    return await lowered(testbed)


@probe("new", "tier: 30 commands kill their process 1 and its neighbours", fast=False)
async def kills_slot_init(testbed: Testbed) -> Verdict:
    await asyncio.gather(*(testbed.bash("kill -9 1 -1; kill -9 $PPID; kill -STOP $PPID", timeout=2) for _ in range(30)))
    return await lowered(testbed)


@probe("new", "tier: a listener in the place of the state directory", fast=False)
async def state_link(testbed: Testbed) -> Verdict:
    """The state directory lies in the workspace, and a command puts a link over it."""
    testbed.configure(state=State(dir=str(testbed.work / "state")))
    await testbed.bash("true")
    await testbed.script("mv state gone; rm -rf state; ln -s nowhere state; ls state gone")
    breaches = [] if not (testbed.work / "state").is_symlink() else ["the state directory was replaced"]
    second = await lowered(testbed)
    return judge(breaches) if breaches else second
