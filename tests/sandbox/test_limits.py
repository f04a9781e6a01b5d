"""Limits hold for a command with all it starts, and the error names the limit."""

from typing import Any

from tests.sandbox.runner import Runner

HOG = r"""
import os, sys, time
def hog(megabytes):
    kept = []
    for _ in range(megabytes):
        kept.append(os.urandom(1) * (1 << 20))
    return kept
"""


def limit_hit(ended: dict[str, Any]) -> str:
    """The limit that was met, whether something was killed for it or the program gave up by itself."""
    return ended["message"] if ended.get("error") == "E_LIMIT" else ended.get("limit_hit") or f"none: {ended}"


def test_memory_of_one_process(runner: Runner) -> None:
    ended = runner.python(HOG + "kept = hog(300)\nprint('ESCAPED')", limits={"memory_mb": 128})

    assert limit_hit(ended) == "stopped: limit of 128 MB of memory reached (max_memory_mb)"
    assert ended["stdout"] == ""


def test_memory_of_six_processes_that_each_stay_below(runner: Runner) -> None:
    program = (
        HOG + "for _ in range(6):\n  if not os.fork():\n    kept = hog(60); time.sleep(20); os._exit(0)\ntime.sleep(20)"
    )

    ended = runner.python(program, limits={"memory_mb": 200, "timeout": 15})

    assert limit_hit(ended) == "stopped: limit of 200 MB of memory reached (max_memory_mb)"


def test_memory_that_is_shared_and_let_go_of(runner: Runner) -> None:
    program = """
import mmap, time
kept = []
for _ in range(30):
    piece = mmap.mmap(-1, 10 << 20)
    for page in range(0, 10 << 20, 4096):
        piece[page] = 1
    piece.madvise(mmap.MADV_DONTNEED)
    kept.append(piece)
time.sleep(20)
"""
    ended = runner.python(program, limits={"memory_mb": 128, "timeout": 15})

    assert limit_hit(ended) == "stopped: limit of 128 MB of memory reached (max_memory_mb)"


def test_memory_in_files_that_have_no_name(runner: Runner) -> None:
    program = """
import os
file = os.memfd_create("hidden")
for _ in range(300):
    os.write(file, os.urandom(1) * (1 << 20))
print("ESCAPED")
"""
    ended = runner.python(program, limits={"memory_mb": 128, "file_size_mb": 1000})

    assert "ESCAPED" not in ended["stdout"]


def test_memory_in_segments_that_no_process_is_attached_to(runner: Runner) -> None:
    program = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
for _ in range(30):
    segment = libc.shmget(0, 10 << 20, 0o600)
    address = libc.shmat(segment, None, 0)
    assert segment >= 0 and address not in (None, ctypes.c_void_p(-1).value), os.strerror(ctypes.get_errno())
    ctypes.memset(address, 1, 10 << 20)
    libc.shmdt(ctypes.c_void_p(address))
print("ESCAPED")
"""
    ended = runner.python(program, limits={"memory_mb": 128})

    assert "ESCAPED" not in ended["stdout"]


def test_temporary_files_have_a_limit_of_their_own(runner: Runner) -> None:
    for place in ("/tmp", "/dev/shm"):
        ended = runner.bash(
            f"head -c 200M /dev/zero > {place}/large; stat -c %s {place}/large; rm {place}/large",
            limits={"file_size_mb": 1000},
        )

        assert "No space left on device" in ended["stderr"]
        assert int(ended["stdout"]) <= 64 << 20


def test_cpu_time_of_one_process(runner: Runner) -> None:
    ended = runner.python("while True: pass", limits={"cpu_seconds": 1})

    assert limit_hit(ended) == "stopped: limit of 1 s of CPU time reached (max_cpu_time_seconds)"


def test_cpu_time_of_many_processes_together(runner: Runner) -> None:
    ended = runner.bash("for i in 1 2 3 4; do (while :; do :; done) & done; wait", limits={"cpu_seconds": 1})

    assert limit_hit(ended) == "stopped: limit of 1 s of CPU time reached (max_cpu_time_seconds)"


def test_cpu_time_of_children_that_nobody_waits_for(runner: Runner) -> None:
    """The kernel drops their time where the parent ignores SIGCHLD; only a control group counts it."""
    program = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
used = 0.0
while used < 3:
    reader, writer = os.pipe()
    if os.fork() == 0:
        while time.process_time() < 0.05:
            pass
        os.write(writer, b"x")
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    used += 0.05
print("ESCAPED")
"""
    ended = runner.python(program, limits={"cpu_seconds": 1, "timeout": 60})

    if runner.who == "root":
        assert limit_hit(ended) == "stopped: limit of 1 s of CPU time reached (max_cpu_time_seconds)"
    else:
        assert "ESCAPED" in ended["stdout"]  # as `doctor` and the guide say


def test_size_of_a_file(runner: Runner) -> None:
    ended = runner.bash("head -c 20M /dev/zero > large", limits={"file_size_mb": 5})

    assert limit_hit(ended) == "stopped: limit of 5 MB per file reached (max_file_size_mb)"
    assert (runner.workspace / "large").stat().st_size == 5 << 20


def test_size_of_what_an_archive_unpacks_to(runner: Runner) -> None:
    program = """
import gzip, io
small = gzip.compress(bytes(30 << 20))
with gzip.open(io.BytesIO(small)) as packed, open("unpacked", "wb") as file:
    while data := packed.read(1 << 16):
        file.write(data)
"""
    ended = runner.python(program, limits={"file_size_mb": 5})

    assert limit_hit(ended) == "stopped: limit of 5 MB per file reached (max_file_size_mb)"
    assert (runner.workspace / "unpacked").stat().st_size <= 5 << 20


def test_number_of_open_files(runner: Runner) -> None:
    ended = runner.python("kept = [open('/dev/null') for _ in range(200)]", limits={"open_files": 50})

    assert limit_hit(ended) == "stopped: limit of 50 open files reached (max_open_files)"


def test_number_of_processes(runner: Runner) -> None:
    program = """
import os, time
for number in range(60):
    if not os.fork():
        time.sleep(20)
        os._exit(0)
    print(number + 1, flush=True)
"""
    ended = runner.python(program, limits={"processes": 20})

    assert limit_hit(ended) == "stopped: limit of 20 processes reached (max_processes)"
    assert 15 <= int(ended["stdout"].split()[-1]) <= 20


def test_a_fork_bomb_harms_no_other_command(runner: Runner) -> None:
    bomb = {"argv": ["bash", "-c", "bomb() { bomb | bomb & }; bomb; sleep 5"], "limits": {"timeout": 1.0}}
    plain = {"argv": ["bash", "-c", "echo fine"], "limits": {}}

    bombed, *others = runner.all([bomb, *[plain] * 6])

    assert bombed["error"] in ("E_TIMEOUT", "E_LIMIT")
    assert [ended["stdout"] for ended in others] == ["fine\n"] * 6


def test_limits_cannot_be_raised_from_inside(runner: Runner) -> None:
    program = """
import resource
for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU, resource.RLIMIT_CORE):
    hard = resource.getrlimit(kind)[1]
    try:
        resource.setrlimit(kind, (hard + 1, hard + 1))
        print("ESCAPED", kind)
    except (ValueError, OSError):
        print("blocked", kind)
"""
    ended = runner.python(program)

    assert "ESCAPED" not in ended["stdout"]
    assert ended["stdout"].count("blocked") == 4


def test_a_flood_of_output_is_drained_and_cut(runner: Runner) -> None:
    runner.bash("true")
    before = resident(runner.process.pid)

    ended = runner.bash(
        "yes | head -c 300M; yes | head -c 3M >&2; echo done >&2", limits={"output_kb": 64, "timeout": 60}
    )

    assert (ended["exit_code"], ended["truncated"]) == (0, True)
    for stream in ("stdout", "stderr"):
        beginning, _, end = ended[stream].partition(f" bytes of {stream} were not kept ...]\n")
        assert beginning.startswith("y\ny\n")
        assert len(end) == 32 << 10
        assert len(beginning) < (32 << 10) + 50
    assert ended["stderr"].endswith("y\ndone\n")
    assert resident(runner.process.pid) - before < 16 << 10


def resident(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_a_command_that_hits_no_limit_names_none(runner: Runner) -> None:
    ended = runner.bash("echo out; echo err >&2; exit 3")

    assert (ended["exit_code"], ended["stdout"], ended["stderr"], ended["limit_hit"]) == (3, "out\n", "err\n", None)
