"""Programs that try to get out. Each prints ESCAPED and how, or `blocked` for every way that it tried.

`HARMLESS` ones are also run without any sandbox, where they must succeed: an attack that cannot succeed proves nothing.
"""

PRELUDE = r"""
import ctypes, errno, fcntl, glob, mmap, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
E = os.environ
def call(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
def attempt(name, act):
    try:
        got = act()
    except (OSError, MemoryError, ValueError) as problem:
        print("blocked", name, problem, flush=True)
    else:
        print("ESCAPED" if got is not False else "blocked", name, repr(got)[:80], flush=True)
def read(path):
    with open(path, "rb") as file:
        return file.read(64)
def write(path):
    with open(path, "wb") as file:
        file.write(b"x")
    os.unlink(path)
    return True
"""

ATTACKS = {
    "read the password file": 'attempt("shadow", lambda: read("/etc/shadow"))',
    "read a secret in a home": 'attempt("home", lambda: read(E["SECRET"]))',
    "list homes": r"""
for place in ("/root", "/home"):
    attempt(place, lambda: [name for name in os.listdir(place) if name not in (".pyenv",)] or False)
""",
    "read a file that everybody may": 'attempt("other", lambda: read(E["OTHER"]))',
    "read through a symbolic link": r"""
os.symlink(E["SECRET"], "link")
attempt("symlink", lambda: read("link"))
os.unlink("link")
""",
    "read through a hard link": 'attempt("hardlink", lambda: (os.link(E["SECRET"], "hard"), read("hard")))',
    "climb by dots": 'attempt("dots", lambda: read("../" * 40 + E["SECRET"]))',
    "go round by /proc": r"""
ways = ["/proc/self/root", "/proc/thread-self/root", "/proc/self/cwd/../../../.."]
for root in glob.glob("/proc/[0-9]*/root") + ways:
    attempt(root, lambda: read(root + E["SECRET"]))
for descriptor in glob.glob("/proc/[0-9]*/fd/*"):
    attempt(descriptor, lambda: os.readlink(descriptor).startswith("/") and "/dev/null" not in os.readlink(descriptor)
            and read(descriptor + "/../" + E["SECRET"]))
""",
    "read other processes' environment": r"""
for path in glob.glob("/proc/[0-9]*/environ"):
    attempt(path, lambda: b"a secret of the runtime" in read(path) or False)
attempt("own", lambda: "CANARY" in E)
""",
    "write outside": r"""
places = ["/", "/usr", "/usr/bin", "/etc", "/var", "/opt", "/root", "/home", "/proc", "/dev", "/run"]
for place in [*places, sys.prefix, E["OUTSIDE"]]:
    attempt(place, lambda: write(place + "/planted"))
""",
    "change kernel settings": r"""
kernel = "/proc/sys/kernel"
for path in (f"{kernel}/core_pattern", f"{kernel}/hostname", "/proc/sysrq-trigger", "/proc/self/oom_score_adj"):
    attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))
""",
    "trace another process": r"""
attempt("traceme", lambda: call(101, 0, 0, 0, 0))
attempt("attach", lambda: call(101, 16, os.getppid(), 0, 0))
attempt("vm_readv", lambda: call(310, os.getpid(), 0, 0, 0, 0, 0))
attempt("pidfd_getfd", lambda: call(438, os.pidfd_open(os.getpid()), 0, 0))
""",
    "mount": r"""
attempt("tmpfs", lambda: call(165, b"tmpfs", b"/tmp", b"tmpfs", 0, 0))
attempt("umount", lambda: call(166, b"/proc", 2))
attempt("fsopen", lambda: call(430, b"tmpfs", 0))
attempt("open_tree", lambda: call(428, -100, b"/", 1))
attempt("pivot_root", lambda: call(155, b".", b"."))
""",
    "make namespaces": r"""
for flag in (0x10000000, 0x20000, 0x20000000, 0x40000000):
    attempt(f"unshare {flag:#x}", lambda: call(272, flag))
    attempt(f"clone {flag:#x}", lambda: call(56, flag | 17, 0, 0, 0, 0))
attempt("setns", lambda: call(308, os.open("/proc/self/ns/net", os.O_RDONLY), 0))
""",
    "become root": r"""
attempt("setuid", lambda: os.setuid(0))
attempt("setresuid", lambda: os.setresuid(0, 0, 0))
attempt("setgroups", lambda: os.setgroups([0]))
attempt("su", lambda: os.popen("su -c id 2>/dev/null; sudo -n id 2>/dev/null").read() or False)
""",
    "change the root": 'attempt("chroot", lambda: os.chroot("."))',
    "use the kernel's keyrings": r"""
attempt("keyctl", lambda: call(250, 0, -3, 0))
attempt("add_key", lambda: call(248, b"user", b"x", b"y", 1, -2))
""",
    "use io_uring": 'attempt("io_uring", lambda: call(425, 4, ctypes.create_string_buffer(256)))',
    "use userfaultfd": 'attempt("userfaultfd", lambda: call(323, 1))',
    "load a program into the kernel": r"""
attempt("bpf", lambda: call(321, 0, ctypes.create_string_buffer(128), 128))
attempt("perf", lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0))
attempt("module", lambda: call(313, 0, b"", 0))
""",
    "type into a terminal": r"""
import pty
master, slave = pty.openpty()
attempt("TIOCSTI", lambda: fcntl.ioctl(slave, 0x5412, b"x"))
attempt("TIOCLINUX", lambda: fcntl.ioctl(slave, 0x541C, b"\3"))
""",
    "signal others": r"""
for number in {int(E["RUNTIME"]), int(E["VICTIM"]), 1}:
    attempt(f"kill {number}", lambda: number not in (os.getpid(), os.getppid()) and os.kill(number, 0))
""",
    "see others": r"""
attempt("processes", lambda: [name for name in os.listdir("/proc") if name.isdigit() and int(name) > 100] or False)
""",
    "use the host's shared memory": r"""
attempt("shm", lambda: read(E["SHARED"]))
""",
    "reach a socket by its abstract name": r"""
def connect():
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect("\0" + E["ABSTRACT"])
attempt("abstract", connect)
""",
    "reach the daemon of containers": r"""
def connect(path):
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(path)
for path in (E["DOCKER"], "/var/run/docker.sock", "/run/docker.sock"):
    attempt(path, lambda: connect(path))
""",
    "connect to this machine": r"""
attempt("loopback", lambda: socket.create_connection(("127.0.0.1", int(E["PORT"])), timeout=2).close())
""",
    "connect to another machine": r"""
for address in ("192.0.2.1", "169.254.169.254"):
    attempt(address, lambda: socket.create_connection((address, 80), timeout=1))
""",
    "open unusual sockets": r"""
kinds = {"udp": (2, 2, 0), "udp6": (10, 2, 0), "icmp": (2, 3, 1), "ping": (2, 2, 1), "packet": (17, 3, 0),
         "mptcp": (2, 1, 262), "vsock": (40, 1, 0), "netlink": (16, 3, 0), "alg": (38, 5, 0),
         "bluetooth": (31, 3, 0), "sctp": (2, 1, 132)}
for name, (family, kind, protocol) in kinds.items():
    attempt(name, lambda: os.close(call(41, family, kind, protocol)))
""",
    "call by another instruction set": r"""
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("53b814000000cd805bc3"))
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
attempt("int 0x80", lambda: function() > 0 or False)
attempt("x32", lambda: call(0x40000000 | 39))
""",
    "open a file by its handle": 'attempt("handle", lambda: call(304, -100, ctypes.create_string_buffer(64), 0))',
    "make a device": r"""
attempt("mknod", lambda: os.mknod("device", 0o020666, os.makedev(1, 1)))
attempt("mem", lambda: os.open("/dev/mem", os.O_RDONLY))
attempt("disk", lambda: [os.open(path, os.O_RDONLY) for path in glob.glob("/dev/vd*") + glob.glob("/dev/sd*")] or False)
""",
    "plant a setuid file": r"""
open("program", "w").close()
attempt("chmod", lambda: os.chmod("program", 0o4755))
attempt("fchmod", lambda: os.fchmod(os.open("program", os.O_RDONLY), 0o2755))
attempt("fchmodat2", lambda: call(452, -100, b"program", 0o4755, 0))
attempt("open", lambda: os.open("planted", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("creat", lambda: call(85, b"planted2", 0o4755))
attempt("mknod", lambda: os.mknod("planted3", 0o104755))
attempt("openat2", lambda: call(437, -100, b"planted4", struct.pack("=QQQ", os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24))
attempt("any", lambda: [name for name in os.listdir(".") if os.lstat(name).st_mode & 0o6000] or False)
for name in glob.glob("plant*") + ["program"]:
    os.unlink(name)
""",
    "steer git": r"""
for path in (".git/hooks/pre-commit", ".git/config", ".mcp.json", "toolreeve.toml", ".vscode/tasks.json"):
    attempt(path, lambda: open(path, "a").close())
attempt("rename", lambda: os.rename(".git", ".gone"))
attempt("rename hooks", lambda: os.rename(".git/hooks", ".git/gone"))
attempt("replace", lambda: os.rename("file", ".git/config"))
attempt("remove", lambda: os.unlink(".git/config"))
attempt("over", lambda: os.symlink("/tmp", ".git/hooks"))
""",
    "see what is hidden": 'attempt("hidden", lambda: read(".env"))',
    "inherit descriptors": r"""
own = set(os.listdir("/proc/self/fd")) - {"0", "1", "2"}
still = [each for each in own if os.path.exists(f"/proc/self/fd/{each}")]
attempt("descriptors", lambda: [os.readlink(f"/proc/self/fd/{each}") for each in still] or False)
""",
}

HARMLESS = (
    "read a secret in a home",
    "read a file that everybody may",
    "read through a symbolic link",
    "climb by dots",
    "use the host's shared memory",
    "reach a socket by its abstract name",
    "connect to this machine",
    "signal others",
    "see others",
    "plant a setuid file",
    "steer git",
    "see what is hidden",
)
