"""Probes of kernel interfaces: descriptors, memory, locks, priorities, devices, queues.

Each program does its worst; what counts is what the host finds changed, or what the program holds in its hands.
"""

import asyncio
import ctypes
import os
from pathlib import Path

from bench.attacks.probes.covers import appears
from bench.attacks.probes.testbed import CANARY, FAST, Attack, Testbed, Verdict, judge, probe

PRELUDE = r"""
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = libc.syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def attempt(name, act):
    try:
        got = act()
    except Exception as problem:
        print("refused", name, problem)
    else:
        print("GOT" if got not in (False, None) else "refused", name, repr(got)[:80])
"""
END = '\nprint("END")\n'

HANDS: dict[str, str] = {
    "real-time scheduling, negative niceness, I/O priority": r"""
attempt("fifo", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)) or True)
attempt("rr", lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1)) or True)
attempt("deadline", lambda: call(314, 0, struct.pack("=IIQiIQQQ", 48, 6, 0, 0, 0, 10**6, 10**7, 10**7), 0) == 0)
attempt("nice", lambda: os.nice(-5) < 0)
attempt("ioprio", lambda: call(251, 1, 0, (1 << 13) | 0) == 0)
""",
    "limits raised again by setrlimit and prlimit": r"""
for name in ("NOFILE", "FSIZE", "NPROC", "CPU", "CORE", "MEMLOCK", "DATA", "RTPRIO", "NICE", "SIGPENDING", "MSGQUEUE"):
    kind = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY:
        continue
    attempt(name, lambda: resource.setrlimit(kind, (hard + 1, hard + 1)) or True)
    attempt(name, lambda: resource.prlimit(0, kind, (-1, -1)) and True)
""",
    "seccomp by the high halves of arguments": r"""
high = 1 << 32
attempt("socket", lambda: call(41, high | 2, high | 1, 0))
attempt("socket", lambda: call(41, high | 10, 1, high))
attempt("packet", lambda: call(41, high | 17, 3, 0))
attempt("clone user", lambda: call(56, high | 0x10000000 | 17, 0, 0, 0, 0))
attempt("unshare", lambda: call(272, high | 0x10000000))
import pty
_, slave = pty.openpty()
attempt("TIOCSTI", lambda: call(16, slave, high | 0x5412, b"x"))
open("prog", "w").close()
attempt("chmod", lambda: call(90, b"prog", high | 0o4755))
attempt("chmod", lambda: call(90, b"prog", 0x10000 | 0o6755))
attempt("mode", lambda: os.stat("prog").st_mode & 0o6000 and True)
""",
    "set-id folders and files by mkdir, umask, truncate, copy, rename": r"""
os.umask(0)
attempt("mkdir", lambda: os.mkdir("setgid", 0o2777) or os.stat("setgid").st_mode & 0o6000 and True)
attempt("fchmodat", lambda: call(268, -100, b"setgid", 0o2777) == 0)
attempt("fchmodat2", lambda: call(452, os.open(".", 0o10000000), b"", 0o2777, 0x1000) == 0)
capability = bytes.fromhex("0100000200200000000000000000000000000000")
attempt("caps", lambda: os.setxattr("setgid", "security.capability", capability) or True)
""",
    "processes made by unusual calls see no more": r"""
attempt("clone3", lambda: call(435, struct.pack("=11Q", 0x10000000, *[0] * 10), 88))
attempt("vfork+setns", lambda: call(308, os.pidfd_open(1), 0x20000000))
attempt("pidfd_open 1 getfd", lambda: call(438, os.pidfd_open(1), 3, 0))
""",
    "devices, terminals and file systems that should not be there": r"""
for path in ("/dev/fuse", "/dev/kvm", "/dev/userfaultfd", "/dev/mem", "/dev/kmsg", "/dev/console", "/dev/tty0",
             "/dev/loop-control", "/dev/net/tun", "/dev/vhost-net", "/dev/uinput", "/dev/snd", "/dev/dri",
             "/sys/kernel", "/sys/fs/cgroup",
             "/proc/sys/fs/binfmt_misc/register", "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger"):
    attempt(path, lambda: os.listdir(path) if os.path.isdir(path) else os.open(path, os.O_RDWR))
attempt("ctty", lambda: os.open("/dev/tty", os.O_RDWR))
""",
    "settings of the kernel and of the process in /proc": r"""
own = ("oom_score_adj", "oom_adj", "uid_map", "gid_map", "setgroups", "loginuid", "coredump_filter", "timens_offsets")
kernel = ("kernel/core_pattern", "kernel/ns_last_pid", "vm/drop_caches", "net/ipv4/ip_forward", "fs/mqueue/msg_max",
          "user/max_user_namespaces")
first = ("oom_score_adj", "mem", "environ", "maps", "root/etc")
paths = [f"/proc/self/{name}" for name in own] + [f"/proc/sys/{name}" for name in kernel]
for path in paths + [f"/proc/1/{name}" for name in first]:
    flags = os.O_RDONLY if path.startswith(("/proc/1/environ", "/proc/1/maps", "/proc/1/root")) else os.O_WRONLY
    attempt(path, lambda: os.open(path, flags) >= 0)
""",
    "tracing, personality and LDT": r"""
child = os.fork() or time.sleep(1) or os._exit(0)
attempt("ptrace seize child", lambda: call(101, 0x4206, child, 0, 0) == 0)
attempt("process_vm_writev", lambda: call(311, os.getppid(), 0, 0, 0, 0, 0))
attempt("ldt", lambda: call(154, 0x11, struct.pack("=IIII", 0, 0, 0, 0), 16) == 0)
attempt("kcmp", lambda: call(312, os.getpid(), 1, 0, 0, 0) >= 0)
""",
    "handles, quotas, accounting and swap": r"""
handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
libc.name_to_handle_at(-100, b".", handle, ctypes.byref(mount), 0)
attempt("open_by_handle_at", lambda: call(304, -100, handle, 0))
attempt("quotactl", lambda: call(179, 0x800007 << 8, 0, 0, 0) == 0)
attempt("acct", lambda: call(163, b"acct") == 0)
attempt("swapon", lambda: call(167, b"prog", 0) == 0)
attempt("fanotify", lambda: call(300, 0, 0))
parameters = ctypes.create_string_buffer(struct.pack("=IIII", 0, 0, 2, 0) + bytes(104))
attempt("io_uring with SQPOLL", lambda: call(425, 4, parameters))
""",
}


def _hands(program: str) -> Attack:
    async def attack(testbed: Testbed) -> Verdict:
        outcome = await testbed.python(PRELUDE + program + END)
        if not outcome.stdout.endswith("END\n"):
            return judge([f"the program did not end: {outcome.error} {outcome.stderr[-100:]}"])
        got = [line[4:60] for line in outcome.stdout.splitlines() if line.startswith("GOT")]
        tried = outcome.stdout.count("refused")
        return judge(got + testbed.damage(), f"{tried} attempts refused")

    return attack


for _number, (_name, _program) in enumerate(HANDS.items()):
    probe("new", f"kernel: {_name}", fast=_number < FAST)(_hands(_program))


@probe("new", "kernel: read-only files changed by truncate, xattr, times, ioctl, splice")
async def read_only(testbed: Testbed) -> Verdict:
    """Landlock and the mount must both hold for calls that open nothing for writing."""
    await testbed.repository()
    config = testbed.work / ".git" / "config"
    before = (config.read_bytes(), config.stat())
    outcome = await testbed.python(
        PRELUDE
        + r"""
path = ".git/config"
attempt("truncate", lambda: os.truncate(path, 0))
attempt("chmod", lambda: os.chmod(path, 0o777))
attempt("utime", lambda: os.utime(path, (1, 1)))
attempt("xattr", lambda: os.setxattr(path, "user.x", b"y"))
attempt("link", lambda: os.link(path, "hard"))
attempt("chown", lambda: os.chown(path, os.getuid(), os.getgid()))
source = os.open(path, os.O_RDONLY)
attempt("setflags", lambda: fcntl.ioctl(source, 0x40086602, struct.pack("=Q", 0x20)))
attempt("ficlone", lambda: fcntl.ioctl(source, 0x40049409, os.open("attack.py", os.O_RDONLY)))
attempt("fallocate", lambda: os.posix_fallocate(source, 0, 100))
attempt("by descriptor", lambda: os.open(f"/proc/self/fd/{source}", os.O_RDWR))
attempt("ftruncate", lambda: os.ftruncate(source, 0))
def dirty_pipe():
    reader, writer = os.pipe()
    os.write(writer, bytes(65536))
    os.read(reader, 65536)
    offset = ctypes.c_longlong(0)
    libc.splice(source, ctypes.byref(offset), writer, None, 1, 0)
    os.write(writer, b"HACKED")
attempt("splice", dirty_pipe)
attempt("shared map", lambda: mmap.mmap(source, 10, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
"""
        + END
    )
    after = (config.read_bytes(), config.stat())
    same = before[0] == after[0] and (
        before[1].st_mode,
        before[1].st_mtime_ns,
        before[1].st_uid,
        before[1].st_nlink,
    ) == (after[1].st_mode, after[1].st_mtime_ns, after[1].st_uid, after[1].st_nlink)
    return judge(
        [] if same and not os.listxattr(config) else [".git/config was changed"],
        "" if "END" in outcome.stdout else "incomplete",
    )


@probe("new", "kernel: files outside by every name in /proc and by inherited descriptors")
async def by_descriptor(testbed: Testbed) -> Verdict:
    outcome = await testbed.python(
        PRELUDE
        + f"""
target = {str(testbed.victim)!r}
ways = ["/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/proc/1/cwd", "/proc/self/exe", "/proc/thread-self/root"]
ways += [f"/proc/{{pid}}/{{link}}" for pid in os.listdir("/proc") if pid.isdigit() for link in ("root", "cwd", "exe")]
ways += [f"/proc/{{pid}}/fd/{{number}}" for pid in os.listdir("/proc") if pid.isdigit() for number in range(64)]
ways += [f"/proc/{{pid}}/map_files" for pid in os.listdir("/proc") if pid.isdigit()]
for way in ways:
    for climb in ("", "/..", "/../.." , "/../../../../../.."):
        try:
            print(open(way + climb + target).read())
        except OSError:
            pass
"""
        + END
    )
    return judge(["read"] if CANARY in outcome.stdout else [])


@probe("new", "kernel: message queues and semaphores of the host by name", fast=False)
async def queues(testbed: Testbed) -> Verdict:
    library = ctypes.CDLL(None, use_errno=True)
    name = f"/toolreeve-probe-{os.getpid()}".encode()
    queue = library.mq_open(name, os.O_CREAT | os.O_RDWR, 0o666, None)
    shared = Path(f"/dev/shm/sem.toolreeve-probe-{os.getpid()}")
    shared.write_text(CANARY)
    shared.chmod(0o666)
    try:
        outcome = await testbed.python(
            PRELUDE
            + f"attempt('queue', lambda: libc.mq_open({name!r}, os.O_RDWR) >= 0)\n"
            + f"attempt('semaphore', lambda: open({str(shared)!r}).read())\n"
            + END
        )
    finally:
        shared.unlink()
        if queue >= 0:
            library.mq_unlink(name)
    return judge([line for line in outcome.stdout.splitlines() if line.startswith("GOT")])


@probe("new", "kernel: a lease or lock on a file stops the runtime's own tools", fast=False)
async def lease(testbed: Testbed) -> Verdict:
    """Whoever opens a leased file waits up to 45 s for its holder."""
    (testbed.work / "file.txt").write_text("text")
    running = asyncio.create_task(
        testbed.python(
            PRELUDE
            + r"""
signal.signal(signal.SIGIO, signal.SIG_IGN)
source = os.open("file.txt", os.O_RDWR)
attempt("flock", lambda: fcntl.flock(source, fcntl.LOCK_EX) or True)
attempt("lockf", lambda: fcntl.lockf(source, fcntl.LOCK_EX) or True)
attempt("lease", lambda: fcntl.fcntl(source, 1024, fcntl.F_WRLCK) == 0)
open("started", "w").close()
time.sleep(12)
""",
            timeout=20,
        )
    )
    await appears(testbed.work / "started")
    late = []
    for tool, args in (("read_file", {"path": "file.txt"}), ("search_directory", {"pattern": "text"})):
        try:
            await asyncio.wait_for(testbed.call(tool, **args), 5)
        except TimeoutError:
            late.append(tool)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return judge([f"stood still: {', '.join(late)}"] if late else [])


@probe("new", "kernel: special files in the workspace stop the file tools", fast=False)
async def special_files(testbed: Testbed) -> Verdict:
    await testbed.script(
        "mkfifo pipe; ln -s /dev/zero zero; ln -s loop loop; mkdir d; mkfifo d/pipe.txt; truncate -s 900M sparse.txt"
    )
    late = []
    calls = [
        ("read_file", {"path": "pipe"}),
        ("read_file", {"path": "zero"}),
        ("read_file", {"path": "loop"}),
        ("search_directory", {"pattern": "x"}),
        ("list_directory", {"path": "."}),
        ("read_file", {"path": "sparse.txt"}),
    ]
    for tool, args in calls:
        try:
            await asyncio.wait_for(testbed.call(tool, **args), 8)
        except TimeoutError:
            late.append(f"{tool} {args}")
    return judge([f"stood still: {', '.join(late)}"] if late else [])


@probe("new", "kernel: 60 MB of output do not become memory of the runtime", fast=False)
async def flood(testbed: Testbed) -> Verdict:
    await testbed.bash("true")
    before = _resident()
    await testbed.script("head -c 60000000 /dev/zero; head -c 60000000 /dev/zero >&2")
    grown = (_resident() - before) >> 20
    return judge([f"the runtime grew by {grown} MB"] if grown > 30 else [], f"grew by {grown} MB")


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@probe("new", "kernel: a core dump, a crash and odd endings tell the truth", fast=False)
async def endings(testbed: Testbed) -> Verdict:
    wrong = []
    for command, expected in (
        ("kill -SEGV $$", -11),
        ("kill -9 $$", -9),
        ("exit 300", 44),
        ("kill -STOP $$", None),
        ("exit 0", 0),
    ):
        result = await (await testbed.reeve()).call("bash", command=command, timeout=2)
        result_dict = result.to_dict()
        data = result_dict["data"] if isinstance(result_dict["data"], dict) else {}
        code = data.get("exit_code")
        truth = result_dict["success"] == (expected == 0)
        if not truth or (expected is not None and code not in (expected, 128 - expected)):
            wrong.append(f"{command}: success={result_dict['success']} exit_code={code}")
    cores = [path.name for path in testbed.work.iterdir() if path.name.startswith("core")]
    return judge(wrong + cores)
