"""The scratch ground of one probe: a workspace, what lies outside it, and a runtime.

A verdict comes from what an observer outside the sandbox finds, never from an error that the attack prints.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolreeve import Toolreeve
from toolreeve.config import Commands, Policy, Settings, State, Workspace
from toolreeve.core.result import ToolResult

CANARY = "CANARY-7f3a"
BEGAN = "the attack began"
HOST_PATIENCE = 20
FAST = 2
"""How many probes of a family that differ only by a name are run where time is short."""
PYTHON = os.path.realpath(sys.executable)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`status` is blocked, declared (documented as not held), or OPEN."""

    status: str
    told: str


def held(told: str = "") -> Verdict:
    return Verdict("blocked", told)


def broke(told: str) -> Verdict:
    return Verdict("OPEN", told)


def judged(breaches: Sequence[str], told: str = "") -> Verdict:
    """Open if anything was breached."""
    return broke("; ".join(breaches)) if breaches else held(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """`finding` is what it replays, or `new`. One that is `alone` takes what others of its user need meanwhile."""

    finding: str
    name: str
    attack: "Callable[[Ground], Awaitable[Verdict]]"
    fast: bool = True
    alone: bool = False


PROBES: list[Probe] = []
Attack = Callable[["Ground"], Awaitable[Verdict]]


def probe(finding: str, name: str, *, fast: bool = True, alone: bool = False) -> Callable[[Attack], Attack]:
    """Register an attack. The slow ones are left out where time is short."""

    def register(attack: Attack) -> Attack:
        PROBES.append(Probe(finding=finding, name=name, attack=attack, fast=fast, alone=alone))
        return attack

    return register


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a call; `sandbox` is the tier that the result names."""

    ok: bool
    stdout: str
    stderr: str
    sandbox: str | None
    error: str

    @staticmethod
    def of(result: ToolResult) -> "Ran":
        told: dict[str, Any] = result.to_dict()
        data = told["data"] if isinstance(told["data"], dict) else {}
        error = told["error"] or {}
        return Ran(
            ok=bool(told["success"]),
            stdout=str(data.get("stdout", "")),
            stderr=str(data.get("stderr", "")),
            sandbox=told["meta"].get("sandbox"),
            error=f"{error.get('code', '')} {error.get('message', '')}".strip(),
        )


def _begun(ran: Ran) -> Ran:
    """An attack that never began was not held by any wall; only the sandbox may refuse to let it begin."""
    if BEGAN not in ran.stderr and "the sandbox" not in ran.error:
        raise RuntimeError(f"the attack did not begin: {ran.error or ran.stderr}")
    return ran


class Ground:
    """`victim` is a private file of the runtime's user; `escaped` can only come to be outside the sandbox."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.work, self.outside, self.home = top / "work", top / "outside", top / "home"
        for folder in (self.work, self.outside, self.home):
            folder.mkdir(parents=True)
        self.victim = self.outside / "victim"
        self.victim.write_text(CANARY)
        self.victim.chmod(0o600)
        self.escaped = self.outside / "ESCAPED"
        self.trap = f"touch {self.escaped}"
        self._reeve: Toolreeve | None = None
        self._tables: dict[str, Any] = {}

    def configure(self, **tables: Any) -> None:
        """Settings beyond the usual ones, for the runtime that is opened next."""
        self._tables = tables

    def settings(self) -> Settings:
        tables = {
            "workspace": Workspace(dir=str(self.work)),
            "state": State(dir=str(self.top / "state")),
            "policy": Policy(mode="bypass"),
            "commands": Commands(),
            **self._tables,
        }
        return Settings(**tables)

    async def reeve(self) -> Toolreeve:
        if self._reeve is None:
            self._reeve = await Toolreeve(settings=self.settings()).start()
        return self._reeve

    async def call(self, tool: str, **args: Any) -> Ran:
        return Ran.of(await (await self.reeve()).call(tool, **args))

    async def bash(self, command: str, **args: Any) -> Ran:
        return await self.call("bash", command=command, **args)

    async def script(self, text: str, **args: Any) -> Ran:
        """Lines of shell that only the kernel judges: the analysis of commands sees no more than the name of a file."""
        (self.work / "attack.sh").write_text(f"echo {BEGAN} >&2\n{text}")
        return _begun(await self.bash("bash attack.sh", **args))

    async def python(self, program: str, **args: Any) -> Ran:
        """A program in the sandbox, kept where the command finds it."""
        (self.work / "attack.py").write_text(f"import sys; print({BEGAN!r}, file=sys.stderr, flush=True)\n{program}")
        return _begun(await self.bash(f"{PYTHON} -I -S attack.py", **args))

    async def close(self) -> None:
        if self._reeve is not None:
            await self._reeve.close()
            self._reeve = None

    def remove(self) -> None:
        """Also what an attack locked, or put deeper than a path can name."""
        subprocess.run(["chmod", "-R", "u+rwX", str(self.top)], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", "--", str(self.top)], stderr=subprocess.DEVNULL, check=False)

    async def host(self, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        """What a person would run; everything it prints."""

        def run() -> str:
            ended = subprocess.run(
                argv,
                cwd=cwd or self.work,
                env={**os.environ, "HOME": str(self.home), **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=HOST_PATIENCE,
                check=False,
            )
            return (ended.stdout + ended.stderr).decode(errors="replace")

        return await asyncio.to_thread(run)

    async def repository(self, folder: Path | None = None) -> Path:
        """A repository with one commit."""
        where = folder or self.work
        where.mkdir(exist_ok=True)
        (where / "file.txt").write_text("one\n")
        script = (
            "git init -q -b main . && git config user.name a && git config user.email a@b"
            " && git add -A && git commit -q -m one"
        )
        told = await self.host("bash", "-c", script, cwd=where)
        assert (where / ".git" / "HEAD").exists(), told
        return where

    async def host_uses_git(self, folder: Path | None = None) -> None:
        """What a person does with a repository, and what their editor does unasked."""
        script = (
            "git status; git diff; git log -1 -p; git show; git add -A; git commit -q --allow-empty -m two;"
            " git checkout -q -b other; git stash; git branch -v; git submodule status; git gc --auto -q;"
            " git worktree list"
        )
        await self.host("bash", "-c", script, cwd=folder or self.work)

    def damage(self) -> list[str]:
        """What only somebody outside the sandbox could have done."""
        found = []
        if self.escaped.exists():
            found.append("code ran on the host")
        if not self.victim.exists() or self.victim.read_text() != CANARY:
            found.append("a file outside was changed")
        elif self.victim.stat().st_mode & 0o7777 != 0o600:
            found.append(f"the mode of a file outside was changed to {self.victim.stat().st_mode & 0o7777:o}")
        return found
