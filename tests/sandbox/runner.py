"""Runner: a process with a sandbox, as root or as an ordinary user, driven over stdin.

Started by `Runner`; it responds with plain values, one line per request.
"""

import asyncio
import dataclasses
import errno
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from toolreeve.core.errors import ToolError
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.core.trial import Confinement
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.kernel import seccomp, syscalls
from toolreeve.sandbox.layout import Layout
from toolreeve.sandbox.sandbox import Sandbox
from toolreeve.sandbox.tiers import Strictness

UNPRIVILEGED_UID = 65533
WHO = ("root", "user") if os.geteuid() == 0 else ("user",)
ROOT = Path(__file__).parent.parent.parent


class Runner:
    """The near side: starts the process and talks to it."""

    def __init__(self, who: str, workspace: Path, **options: Any) -> None:
        self.who, self.workspace = who, workspace
        if who == "user" and os.geteuid() == 0:
            for path in (workspace, *workspace.rglob("*")):
                if path.lstat().st_uid != UNPRIVILEGED_UID:
                    os.chown(path, UNPRIVILEGED_UID, UNPRIVILEGED_UID, follow_symlinks=False)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.sandbox.runner", who, str(workspace), json.dumps(options)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "CANARY": "a secret of the runtime"},
        )

    def run(self, *argv: str, limits: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
        """How it ended: the fields of Ended with text for bytes, or `error` and `message`."""
        return self.all([{"argv": argv, "limits": limits or {}, **request}])[0]

    def send(self, requests: list[dict[str, Any]]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(requests) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Of the one request that was sent before."""
        assert self.process.stdout is not None
        answers: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return answers[0]

    def all(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run them at the same time."""
        self.send(requests)
        return self.receive()

    def receive(self) -> list[dict[str, Any]]:
        """How what was sent ended."""
        assert self.process.stdout is not None
        answer: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return answer

    def bash(self, script: str, **request: Any) -> dict[str, Any]:
        return self.run("bash", "-c", script, **request)

    def python(
        self, program: str, interpreter: str = os.path.realpath(sys.executable), **request: Any
    ) -> dict[str, Any]:
        return self.run(interpreter, "-I", "-c", program, **request)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def kill(self) -> None:
        """Without a chance to do anything more."""
        self.process.kill()
        self.close()


def drop_root() -> None:
    """Become an ordinary user, who can read the interpreter even if it lies in root's home."""
    prefix = os.path.realpath(sys.base_prefix)
    above = [path for path in Path(prefix).parents if path.stat().st_mode & 0o005 != 0o005]
    if above:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        tree = syscalls.detached_tree(prefix)
        syscalls.mount("tmpfs", str(above[-1]), "tmpfs", 0, "mode=755")
        Path(prefix).mkdir(parents=True)
        syscalls.attach_tree(tree, prefix)
    os.setgroups([])
    os.setresgid(UNPRIVILEGED_UID, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    os.setresuid(UNPRIVILEGED_UID, UNPRIVILEGED_UID, UNPRIVILEGED_UID)


def forbid(numbers: list[int], error: int) -> None:
    """Make the kernel refuse these system calls from now on, as containers and hardened systems do."""
    load, equal, answer = 0x20, 0x15, 0x06
    refused, allowed = 0x00050000 | error, 0x7FFF0000
    steps = [(load, 0, 0, 0)]
    for number in numbers:
        steps += [(equal, 0, 1, number), (answer, 0, 0, refused)]
    code = b"".join(struct.pack("=HBBI", *step) for step in [*steps, (answer, 0, 0, allowed)])
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.enforce(code)


def _request(fields: dict[str, Any], workspace: str) -> ProcessRequest:
    fields["argv"] = tuple(fields["argv"])
    fields["limits"] = ProcessLimits(**fields["limits"])
    fields["stdin"] = fields.get("stdin", "").encode()
    fields["files"] = {name: text.encode() for name, text in fields.get("files", {}).items()}
    for name in ("writable", "readable", "allowed_programs"):
        fields[name] = tuple(fields.get(name, ()))
    fields["confinement"] = Confinement(fields.get("confinement", "work"))
    return ProcessRequest(**{"directory": workspace, **fields})


async def _answer(sandbox: Sandbox, fields: dict[str, Any], workspace: str) -> dict[str, Any]:
    try:
        ended = await sandbox.run(_request(fields, workspace))
    except ToolError as problem:
        return {"error": str(problem.code), "message": problem.message, **(problem.data or {})}
    except Exception as problem:
        return {"error": type(problem).__name__, "message": str(problem)}
    finally:
        layers = _read_layers(sandbox, fields.get("call", ""))
    shown = {
        name: value.decode(errors="replace") if isinstance(value, bytes) else value
        for name, value in dataclasses.asdict(ended).items()
    }
    return shown | layers


def _read_layers(sandbox: Sandbox, call: str) -> dict[str, Any]:
    """The names that a trial left in its layers, and what is wrong with them."""
    found: dict[str, Any] = {"changed": [], "problems": []}
    for layer in sandbox.end_trial(call):
        found["changed"] += sorted(os.listdir(layer.upper))  # noqa: PTH208  # of a descriptor
        found["problems"].append(layer.problem)
        os.close(layer.upper)
    return found if found["problems"] else {}


async def _hold_listener(_: socket.socket, __: frozenset[str] | None) -> None:
    """A guarded network that leads nowhere."""
    await asyncio.Event().wait()


async def _serve(workspace: str, options: dict[str, Any]) -> None:
    loop = asyncio.get_running_loop()
    readable = (sys.base_prefix, sys.prefix)
    is_home = options.pop("home", False)
    guards = GuardTable(roots=(workspace,), homes=(workspace,)) if is_home else None
    layout = Layout(workspace=workspace, readable=readable, guards=guards, **options.pop("layout", {}))
    serve = _hold_listener if options.pop("guarded", False) else None
    held = options.pop("quarantine", None)
    quarantine = None if held is None else Quarantine(held, layout.table())
    sandbox = Sandbox(layout, Strictness(**options), serve, quarantine=quarantine)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        answers = await asyncio.gather(*(_answer(sandbox, fields, workspace) for fields in json.loads(line)))
        print(json.dumps(answers), flush=True)
    await sandbox.close()


if __name__ == "__main__":
    options = json.loads(sys.argv[3])
    for group in options.pop("groups", []):
        (Path(group) / "cgroup.procs").write_text("0")
    if sys.argv[1] == "user" and os.geteuid() == 0:
        drop_root()
    if options.pop("cannot_map_ids", False):
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
        syscalls.mount("ramfs", sys.argv[2], "ramfs", 0, "mode=777")
    forbid(options.pop("forbidden", []), options.pop("error", errno.EPERM))
    asyncio.run(_serve(sys.argv[2], options))
