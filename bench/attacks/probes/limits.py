"""Probes of resource limits, and of effects on later commands.

Bounded: no attempt takes more than 300 MB. What is not held counts as declared only where `toolreeve doctor` says so.
"""

import asyncio
import ctypes
import os
import sys

from bench.attacks.probes.covers import appears
from bench.attacks.probes.entry_points import use_tools
from bench.attacks.probes.testbed import Outcome, Testbed, Verdict, blocked_verdict, judge, open_verdict, probe
from toolreeve.config import Commands

MOST_MB = 300
GIVEN_MB = 64
TOLERATED = 2.0

SOCKETS = f"""
import os, socket
taken, kept = 0, []
try:
    while taken < {MOST_MB} << 20:
        ends = socket.socketpair()
        kept.append(ends)
        for end in ends:
            end.setblocking(False)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        try:
            while True:
                taken += ends[0].send(bytes(65536))
        except BlockingIOError:
            pass
except OSError as problem:
    print(problem)
print("TOOK", taken >> 20, flush=True)
"""
PIPES = f"""
import fcntl, os
taken, kept = 0, []
try:
    while taken < {MOST_MB} << 20:
        reader, writer = os.pipe2(os.O_NONBLOCK)
        kept.append((reader, writer))
        try:
            fcntl.fcntl(writer, 1031, 1 << 20)
        except OSError:
            pass
        try:
            while True:
                taken += os.write(writer, bytes(65536))
        except BlockingIOError:
            pass
except OSError as problem:
    print(problem)
print("TOOK", taken >> 20, flush=True)
"""
PAGE_TABLES = f"""
import mmap, os
taken, span = 0, 1 << 30
with open("/proc/self/status") as status:
    def tables():
        status.seek(0)
        return next(int(line.split()[1]) for line in status.read().splitlines() if line.startswith("VmPTE")) >> 10
    try:
        while tables() < {MOST_MB}:
            area = mmap.mmap(-1, span, flags=0x22 | 0x4000, prot=mmap.PROT_READ)
            keep = globals().setdefault("keep", [])
            keep.append(area)
            area.madvise(mmap.MADV_NOHUGEPAGE)
            for at in range(0, span, 1 << 21):
                area[at]
            taken = tables()
    except (OSError, MemoryError, ValueError) as problem:
        print(problem)
print("TOOK", taken, flush=True)
"""
CHILDREN = f"""
import os, time
for _ in range(12):
    if os.fork() == 0:
        block = bytearray({MOST_MB // 12} << 20)
        for at in range(0, len(block), 4096):
            block[at] = 1
        open(f"took-{{os.getpid()}}", "w").close()
        time.sleep(3)
        os._exit(0)
time.sleep(3)
print("TOOK", len([n for n in os.listdir(".") if n.startswith("took-")]) * {MOST_MB // 12}, flush=True)
"""


async def takes(testbed: Testbed, program: str, word: str) -> Verdict:
    testbed.configure(commands=Commands(memory_mb=GIVEN_MB))
    outcome = await testbed.python(program, timeout=15)
    took = _took(outcome)
    if took <= GIVEN_MB * TOLERATED:
        return blocked_verdict(f"{took} MB of {GIVEN_MB} {outcome.error[:40]}")
    return await declared(testbed, word, f"took {took} MB of {GIVEN_MB}")


def _took(outcome: Outcome) -> int:
    return next((int(line.split()[1]) for line in outcome.stdout.splitlines() if line.startswith("TOOK")), 0)


async def declared(testbed: Testbed, word: str, detail: str) -> Verdict:
    """Whether doctor names what does not hold."""
    said = await testbed.host(
        sys.executable, "-m", "toolreeve", "doctor", env={"TOOLREEVE_STATE_DIR": str(testbed.top / "s")}
    )
    if any(word in line and ("not" in line or "no " in line) for line in said.lower().splitlines()):
        return Verdict("declared", f"{detail}; doctor says so")
    return open_verdict(detail)


@probe("M5", "p30 socket buffers", fast=False)
async def socket_buffers(testbed: Testbed) -> Verdict:
    return await takes(testbed, SOCKETS, "socket")


@probe("M5", "p31 page tables", fast=False)
async def page_tables(testbed: Testbed) -> Verdict:
    return await takes(testbed, PAGE_TABLES, "page table")


@probe("M5", "pipe buffers", fast=False)
async def pipe_buffers(testbed: Testbed) -> Verdict:
    return await takes(testbed, PIPES, "pipe")


@probe("M5", "memory of many children together", fast=False)
async def children(testbed: Testbed) -> Verdict:
    return await takes(testbed, CHILDREN, "memory")


@probe("M5", "p29 inotify instances of the host's user", fast=False, alone=True)
async def inotify(testbed: Testbed) -> Verdict:
    running = asyncio.create_task(
        testbed.python(
            """
import ctypes, os, time
libc = ctypes.CDLL(None)
pids = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        while libc.inotify_init() >= 0:
            pass
        open(f"full-{os.getpid()}", "w").close()
        time.sleep(20)
        os._exit(0)
    pids.append(pid)
while len([n for n in os.listdir(".") if n.startswith("full-")]) < 6:
    time.sleep(0.02)
open("started", "w").close()
time.sleep(20)
""",
            timeout=25,
        )
    )
    try:
        await appears(testbed.work / "started")
        got = ctypes.CDLL(None).inotify_init()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    if got >= 0:
        os.close(got)
        return blocked_verdict("the host has instances left")
    return await declared(testbed, "inotify", "the host's user has no inotify instance left")


@probe("L9", "/tmp filled by one command stays full")
async def full_tmp(testbed: Testbed) -> Verdict:
    await testbed.script(
        "head -c 100000000 /dev/zero > /tmp/fill; head -c 100000000 /dev/zero > /dev/shm/fill; cd /tmp;"
        " seq 30000 | xargs touch; true"
    )
    outcome = await testbed.script(
        "echo x > /tmp/mine && echo y > /dev/shm/mine && cat /tmp/mine /dev/shm/mine && mktemp"
    )
    return judge([] if outcome.ok else [f"a later command: {outcome.stderr[-80:] or outcome.error[:80]}"])


@probe("new", "limits: 256 processes, 64 MB and all descriptors at once; the next command runs", fast=False)
async def everything(testbed: Testbed) -> Verdict:
    testbed.configure(commands=Commands(memory_mb=GIVEN_MB, processes=64))
    hungry = (
        "for i in $(seq 200); do sleep 5 & done; tail /dev/zero & exec 10<>/dev/null;"
        " cat /dev/zero | head -c 200000000 > big; wait"
    )
    await asyncio.gather(*(testbed.bash(hungry, timeout=3) for _ in range(4)))
    outcome = await testbed.bash("echo well")
    return judge(
        [] if outcome.stdout == "well\n" and outcome.sandbox == "full" else [f"{outcome.error[:80]} {outcome.sandbox}"]
    )


@probe("new", "limits: a command stops its own supervisor; neighbours go on", fast=False)
async def stopped(testbed: Testbed) -> Verdict:
    stopping = asyncio.create_task(testbed.bash("kill -STOP -1; kill -STOP 1; kill -STOP $PPID; sleep 20", timeout=4))
    others = await asyncio.gather(*(testbed.bash("echo well") for _ in range(6)))
    await stopping
    after = await testbed.bash("echo well")
    wrong = [outcome.error[:60] for outcome in (*others, after) if outcome.stdout != "well\n"]
    return judge([f"{len(wrong)} commands failed: {wrong[0]}"] if wrong else [])


@probe("new", "limits: 40 commands that never end take every slot; others wait and run", fast=False)
async def every_slot(testbed: Testbed) -> Verdict:
    mark = str(testbed.top)
    waiting = [
        asyncio.create_task(testbed.bash(f"trap '' TERM INT HUP; while :; do sleep 1; done; # {mark}", timeout=3))
        for _ in range(40)
    ]
    outcome = await asyncio.wait_for(testbed.bash("echo well", timeout=20), 30)
    await asyncio.gather(*waiting)
    left = (await testbed.host("ps", "-eo", "args")).count(mark)
    breaches = [] if outcome.stdout == "well\n" else [f"starved: {outcome.error[:60]}"]
    if left:
        breaches.append(f"{left} processes left")
    return judge(breaches)


@probe("new", "limits: a private directory filled and locked leaves nothing for the next call")
async def private_directory(testbed: Testbed) -> Verdict:
    sandbox = {"use_temp_isolation": True, "max_file_size_mb": 60}
    fill = (
        "mkdir -p a/b; echo SECRET-OF-ONE-CALL > a/b/c; head -c 60000000 /dev/zero > big; ln -s /etc e;"
        " chmod 000 a/b a; true"
    )
    use_tools(
        testbed,
        {
            "fill": {"script": fill, "sandbox": sandbox},
            "look": {"script": "ls -A; cat a/b/c; echo x > mine && echo fits", "sandbox": sandbox},
        },
    )
    await testbed.call("fill")
    outcome = await testbed.call("look")
    breaches = ["a later call reads it"] if "SECRET" in outcome.stdout else []
    if "fits" not in outcome.stdout:
        breaches.append(f"a later call cannot write: {outcome.stderr[-60:]} {outcome.error[:60]}")
    return judge(breaches)


@probe("new", "limits: 3,000 network and process namespaces cannot be had by clone in threads", fast=False)
async def namespaces(testbed: Testbed) -> Verdict:
    outcome = await testbed.python("""
import ctypes, threading
libc = ctypes.CDLL(None, use_errno=True)
got = []
def attempt():
    for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
        if libc.unshare(flag) == 0:
            got.append(flag)
threads = [threading.Thread(target=attempt) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("GOT", len(got))
""")
    return judge([] if "GOT 0" in outcome.stdout else [outcome.stdout[-80:] + outcome.stderr[-80:]])
