"""Runs a shell script over a real overlay, in namespaces of its own, and returns the layer it left.

As root the mount is privileged; as another user it is made in a user namespace. The script can reach the whole machine:
this is the layer, not the boundary.
"""

import os
import socket
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from toolreeve.core.trial import TRUSTED_NOTES, USER_NOTES, Layer, file_clock_ns
from toolreeve.sandbox.kernel import syscalls

OPTIONS = "lowerdir={},upperdir=upper,workdir=work,volatile,redirect_dir=nofollow,index=off,metacopy=off"


def wait_a_tick() -> None:
    """What is changed after this is certainly later: file times are between the coarse clock and the exact one."""
    made = time.time_ns()
    while file_clock_ns() <= made:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    layer: Layer
    output: str


def run_trial(workspace: Path, script: str) -> Ran:
    """Returns when the script has ended; the layer's descriptor belongs to the caller."""
    wait_a_tick()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        program = [sys.executable, "-m", "tests.trial.overlay", str(workspace), str(theirs.fileno())]
        began = file_clock_ns()
        ended = subprocess.run(
            program, input=script.encode(errors="surrogateescape"), stdout=-1, stderr=-2, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        return Ran(layer=receive_layer(ours, workspace, began), output=ended.stdout.decode(errors="replace"))


def fork_trial(workspace: Path, script: str) -> Layer:
    """As `run_trial`, faster, for a process with one thread."""
    wait_a_tick()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        began = file_clock_ns()
        pid = os.fork()
        if pid == 0:
            try:
                run_over_layer(str(workspace), script.encode(errors="surrogateescape"), theirs)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        theirs.close()
        layer = receive_layer(ours, workspace, began)
        os.waitpid(pid, 0)
        return layer


def receive_layer(line: socket.socket, workspace: Path, began: int) -> Layer:
    _, descriptors, _, _ = socket.recv_fds(line, 1, 1)
    if not descriptors:
        raise OSError("the overlay could not be mounted")
    os.set_inheritable(descriptors[0], False)
    owner = workspace.stat()
    return Layer(
        root=str(workspace),
        upper=descriptors[0],
        began_ns=began,
        uid=owner.st_uid,
        gid=owner.st_gid,
        notes=TRUSTED_NOTES if os.geteuid() == 0 else USER_NOTES,
    )


def run_over_layer(workspace: str, script: bytes, line: socket.socket) -> None:
    """Does not return. The layer is sent when the script has ended."""
    uid, gid = os.geteuid(), os.getegid()
    flags = syscalls.CLONE_NEWNS
    if uid:
        syscalls.unshare(flags | syscalls.CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text)
    else:
        syscalls.unshare(flags)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    lower = os.open(workspace, os.O_PATH)
    os.chdir("/")
    syscalls.mount("tmpfs", "/mnt", "tmpfs", 0, "size=512m,nr_inodes=131072,mode=700")
    os.chdir("/mnt")
    for name in ("upper", "work"):
        Path(name).mkdir()
    found = Path(workspace).stat()
    os.chown("upper", found.st_uid, found.st_gid)
    Path("upper").chmod(found.st_mode & 0o7777)
    layer = os.open("upper", os.O_RDONLY | os.O_DIRECTORY)
    options = OPTIONS.format(f"/proc/self/fd/{lower}") + (",userxattr" if uid else "")
    syscalls.mount("overlay", workspace, "overlay", 0, options)
    os.chdir(workspace)
    subprocess.run(["bash"], input=script, check=False)
    socket.send_fds(line, [b"."], [layer])
    os._exit(0)


if __name__ == "__main__":
    run_over_layer(sys.argv[1], sys.stdin.buffer.read(), socket.socket(fileno=int(sys.argv[2])))
