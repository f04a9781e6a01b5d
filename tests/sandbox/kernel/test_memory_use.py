"""Memory that the kernel keeps for a command counts like its own, with a control group and without one.

Each attack takes at most some 200 MB, holds them for a while and says what it got.
"""

import contextlib
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.sandbox.conftest import open_folder
from tests.sandbox.runner import UNPRIVILEGED_UID, WHO, Runner

PRELUDE = r"""
import ctypes, errno, fcntl, mmap, os, resource, select, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
MB = 1 << 20
kept = []
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def fill(writer):
    os.set_blocking(writer.fileno() if hasattr(writer, "fileno") else writer, False)
    size = 0
    try:
        while True:
            size += os.write(writer if isinstance(writer, int) else writer.fileno(), bytes(32768))
    except BlockingIOError:
        return size
def in_processes(number, act):
    reading, writing = os.pipe()
    for _ in range(number):
        if not os.fork():
            try:
                os.write(writing, b"%d\n" % act())
            except OSError as problem:
                os.write(writing, b"0\n")
            time.sleep(20)
            os._exit(0)
    os.close(writing)
    lines = os.fdopen(reading)
    return sum(int(lines.readline() or 0) for _ in range(number))
def hold(taken):
    time.sleep(3)
    print("ESCAPED" if taken > 64 * MB else "held", taken // MB, "MB", flush=True)
    os._exit(0)
"""

SOCKETS = r"""
taken = 0
for _ in range(400):
    pair = socket.socketpair(); kept.append(pair)
    taken += fill(pair[0]) + fill(pair[1])
hold(taken)
"""

ATTACKS = {
    "buffers of sockets": SOCKETS,
    "buffers of sockets in a process that makes itself opaque": "libc.prctl(4, 0, 0, 0, 0)\n" + SOCKETS,
    "enlarged buffers of sockets": r"""
taken = 0
for _ in range(20):
    pair = socket.socketpair(); kept.append(pair)
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * MB)
    taken += fill(pair[0])
hold(taken)
""",
    "page tables": r"""
size = 64 << 30
start = libc.mmap(None, size, 1, 0x4022, -1, 0)
assert start not in (None, ctypes.c_void_p(-1).value), ctypes.get_errno()
for place in range(0, size, 2 * MB):
    ctypes.c_char.from_address(start + place).value
hold(size // 512)
""",
    "mappings": r"""
def take():
    start = libc.mmap(None, 64000 * 4096, 0, 0x22, -1, 0)
    for page in range(0, 60000, 2):
        if libc.mprotect(start + page * 4096, 4096, 1):
            return 0
    return 60000 * 200
hold(in_processes(6, take))
""",
    "sets of semaphores": r"""
taken = 0
for _ in range(60):
    call(64, 0, 32000, 0o600)
    taken += 32000 * 64
hold(taken)
""",
    "queues of messages": r"""
taken = 0
for _ in range(120):
    queue = call(68, 0, 0o600)
    for _ in range(16384):
        call(69, queue, struct.pack("l", 1), 0, 0o4000)
    taken += MB
hold(taken)
""",
    "watches of epoll": r"""
def take():
    end = os.pipe()[0]
    ends = [os.dup(end) for _ in range(150)]
    polls, taken = [select.epoll() for _ in range(600)], 0
    for poll in polls:
        for end in ends:
            poll.register(end, 1)
        taken += len(ends) * 192
    kept.extend(polls)
    return taken
hold(in_processes(5, take))
""",
    "pieces of huge pages in pipes": r"""
taken = 0
for _ in range(6):
    reader, writer = os.pipe(); kept.append((reader, writer))
    for _ in range(16):
        start = libc.mmap(None, 4 * MB, 3, 0x22, -1, 0)
        aligned = (start + 2 * MB - 1) & -(2 * MB)
        libc.madvise(ctypes.c_void_p(aligned), ctypes.c_size_t(2 * MB), 14)
        ctypes.memset(aligned, 1, 2 * MB)
        call(278, writer, struct.pack("QQ", aligned, 4096), 1, 0)
        libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(4 * MB))
        taken += 2 * MB
hold(taken)
""",
    "rules of Landlock": r"""
taken = 0
for _ in range(30):
    rules = call(444, struct.pack("QQQ", 0, 1, 0), 16, 0); kept.append(rules)
    for port in range(65536):
        call(445, rules, 2, struct.pack("QQ", 1, port), 0)
    taken += 65536 * 64
hold(taken)
""",
    "pipes": r"""
taken = 0
for _ in range(440):
    reader, writer = os.pipe(); kept.append((reader, writer))
    try:
        fcntl.fcntl(writer, 1031, MB)
    except PermissionError:
        pass
    taken += fill(writer)
hold(taken)
""",
}


def outcome(ended: dict[str, Any]) -> str:
    if ended.get("error") == "E_LIMIT":
        return str(ended["message"])
    return str(ended["stdout"].strip() or ended["stderr"].strip().splitlines()[-1:] or ended)


@pytest.mark.parametrize("name", ATTACKS)
def test_memory_in_the_kernel_has_the_limit_of_memory(runner: Runner, name: str) -> None:
    limits = {"memory_mb": 60, "timeout": 25, "cpu_seconds": 25, "processes": 16, "open_files": 900}

    ended = runner.python(PRELUDE + ATTACKS[name], limits=limits)

    assert "ESCAPED" not in outcome(ended), outcome(ended)
    assert ended.get("error") != "E_TIMEOUT", ended


TCP = r"""
taken = 0
listener = socket.create_server(("127.0.0.1", 0))
for _ in range(400):
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    kept.append((near, far))
    taken += fill(near) + fill(far)
    if taken > 200 * MB:
        break
hold(taken)
"""


@pytest.mark.parametrize("who", WHO)
def test_buffers_of_connections_in_a_guarded_network_have_a_limit(who: str) -> None:
    folder = open_folder() / "work"
    folder.mkdir()
    with contextlib.closing(Runner(who, folder, guarded=True)) as runner:
        limits = {"memory_mb": 60, "timeout": 25, "open_files": 900}
        ended = runner.python(PRELUDE + TCP, limits=limits, network="guarded")

    assert outcome(ended).startswith(("stopped: limit of 60 MB of memory", "held")), outcome(ended)


def test_a_program_whose_file_cannot_be_read_has_the_limit_too(runner: Runner) -> None:
    """The kernel shows nobody what such a program maps and opens."""
    python = os.path.realpath(sys.executable)
    script = f'cp {python} opaque && chmod 111 opaque && PYTHONHOME={sys.base_prefix} exec ./opaque -S -c "$PROGRAM"'
    limits = {"memory_mb": 60, "timeout": 25, "open_files": 900, "file_size_mb": 200}

    ended = runner.bash(script, limits=limits, environment={"PROGRAM": PRELUDE + SOCKETS})

    (runner.workspace / "opaque").unlink()
    assert outcome(ended) == "stopped: limit of 60 MB of memory reached (max_memory_mb)"


WITHOUT_FIRST_THREAD = r"""
import threading
def take():
    time.sleep(0.3)
    for _ in range(12):
        block = mmap.mmap(-1, 32 * MB)
        for at in range(0, 32 * MB, 4096):
            block[at] = 1
        kept.append(block)
        time.sleep(0.05)
    time.sleep(0.3)
    os.write(1, b"ESCAPED")
    os._exit(0)
threading.Thread(target=take).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""


def test_a_process_whose_first_thread_has_exited_has_the_limit_too(runner: Runner) -> None:
    """The kernel shows its memory by its other threads only."""
    ended = runner.python(PRELUDE + WITHOUT_FIRST_THREAD, limits={"memory_mb": 60, "timeout": 25})

    assert outcome(ended) == "stopped: limit of 60 MB of memory reached (max_memory_mb)"


def test_a_thread_with_descriptors_of_its_own_cannot_be_made(runner: Runner) -> None:
    program = PRELUDE + "try:\n  call(56, 0x10000 | 0x800 | 0x100, 0, 0, 0, 0)\nexcept OSError as e:\n  print(e.errno)"

    assert runner.python(program)["stdout"] == "1\n"


def test_what_the_whole_machine_shares_is_refused(runner: Runner) -> None:
    program = PRELUDE + "try:\n  call(206, 60000, struct.pack('Q', 0))\nexcept OSError as e:\n  print(e.errno)"

    assert runner.python(program)["stdout"] == "38\n"


def test_pseudo_terminals_have_a_limit(runner: Runner) -> None:
    program = """
import os, pty
number = 0
try:
    while number < 200:
        pty.openpty(); number += 1
except OSError:
    print(number)
"""
    assert int(runner.python(program, limits={"open_files": 900})["stdout"]) <= 64


INOTIFY = r"""
number = 0
while libc.inotify_init1(0) >= 0:
    number += 1
with open("taken", "w") as taken:
    taken.write(str(number))
with open("go"):
    pass
"""


def test_a_command_leaves_the_user_outside_what_inotify_has(runner: Runner) -> None:
    for name in ("taken", "go"):
        os.mkfifo(runner.workspace / name, 0o666)
        (runner.workspace / name).chmod(0o666)
    own: dict[str, Any] = {}
    if runner.who == "user" and os.geteuid() == 0:
        own = {"user": UNPRIVILEGED_UID, "group": UNPRIVILEGED_UID, "extra_groups": []}
    program = [os.path.realpath(sys.executable), "-I", "-c", PRELUDE + INOTIFY]
    runner.send([{"argv": program, "limits": {"open_files": 900, "timeout": 30}}])
    with open(runner.workspace / "taken") as taken:
        got = int(taken.read())
    outside = subprocess.run(
        ["perl", "-e", "exit(syscall(294, 0) < 0)"], check=False, capture_output=True, cwd="/", **own
    )
    with open(runner.workspace / "go", "w"):
        pass
    runner.receive()
    for name in ("taken", "go"):
        (runner.workspace / name).unlink()

    assert outside.returncode == 0
    if runner.who == "user":
        assert got <= 32


def test_what_is_counted_for_a_user_is_left_to_the_user(runner: Runner) -> None:
    program = """
import resource
for kind in (resource.RLIMIT_MSGQUEUE, resource.RLIMIT_SIGPENDING, resource.RLIMIT_MEMLOCK):
    print(resource.getrlimit(kind)[1])
"""
    limits = [int(line) for line in runner.python(program)["stdout"].split()]

    assert (limits[0], limits[1] <= 1024, limits[2] <= 64 << 10) == (0, True, True)
