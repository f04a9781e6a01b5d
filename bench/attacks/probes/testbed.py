"""The testbed of one probe: a workspace, files outside it, and a runtime.

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
HOST_TIMEOUT = 20
FAST = 2
"""How many probes of a family that differ only by a name the fast selection runs."""
PYTHON = os.path.realpath(sys.executable)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`status` is blocked, declared (documented as not held), or OPEN."""

    status: str
    detail: str


def blocked_verdict(detail: str = "") -> Verdict:
    return Verdict("blocked", detail)


def open_verdict(detail: str) -> Verdict:
    return Verdict("OPEN", detail)


def judge(breaches: Sequence[str], detail: str = "") -> Verdict:
    """Open if anything was breached."""
    return open_verdict("; ".join(breaches)) if breaches else blocked_verdict(detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """`finding` is what it replays, or `new`. One that is `alone` uses up what other probes of its user need."""

    finding: str
    name: str
    attack: "Callable[[Testbed], Awaitable[Verdict]]"
    fast: bool = True
    alone: bool = False


PROBES: list[Probe] = []
Attack = Callable[["Testbed"], Awaitable[Verdict]]


def probe(finding: str, name: str, *, fast: bool = True, alone: bool = False) -> Callable[[Attack], Attack]:
    """Register an attack. The fast selection leaves out the slow ones."""

    def register(attack: Attack) -> Attack:
        PROBES.append(Probe(finding=finding, name=name, attack=attack, fast=fast, alone=alone))
        return attack

    return register


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a call; `sandbox` is the tier that the result names."""

    ok: bool
    stdout: str
    stderr: str
    sandbox: str | None
    error: str

    @staticmethod
    def of(result: ToolResult) -> "Outcome":
        fields: dict[str, Any] = result.to_dict()
        data = fields["data"] if isinstance(fields["data"], dict) else {}
        error = fields["error"] or {}
        return Outcome(
            ok=bool(fields["success"]),
            stdout=str(data.get("stdout", "")),
            stderr=str(data.get("stderr", "")),
            sandbox=fields["meta"].get("sandbox"),
            error=f"{error.get('code', '')} {error.get('message', '')}".strip(),
        )


def _require_start(outcome: Outcome) -> Outcome:
    """An attack that never began proves nothing; only the sandbox may refuse to start it."""
    if BEGAN not in outcome.stderr and "the sandbox" not in outcome.error:
        raise RuntimeError(f"the attack did not begin: {outcome.error or outcome.stderr}")
    return outcome


class Testbed:
    """`victim` is a private file of the runtime's user; `escaped` can only come to be outside the sandbox."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.work = top / "work"
        self.outside = top / "outside"
        self.home = top / "home"
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

    async def call(self, tool: str, **args: Any) -> Outcome:
        return Outcome.of(await (await self.reeve()).call(tool, **args))

    async def bash(self, command: str, **args: Any) -> Outcome:
        return await self.call("bash", command=command, **args)

    async def script(self, text: str, **args: Any) -> Outcome:
        """Shell code that only the kernel confines: the shell analysis sees nothing but a file name."""
        (self.work / "attack.sh").write_text(f"echo {BEGAN} >&2\n{text}")
        return _require_start(await self.bash("bash attack.sh", **args))

    async def python(self, program: str, **args: Any) -> Outcome:
        """A program in the sandbox, kept where the command finds it."""
        (self.work / "attack.py").write_text(f"import sys; print({BEGAN!r}, file=sys.stderr, flush=True)\n{program}")
        return _require_start(await self.bash(f"{PYTHON} -I -S attack.py", **args))

    async def close(self) -> None:
        if self._reeve is not None:
            await self._reeve.close()
            self._reeve = None

    def remove(self) -> None:
        """Also what an attack locked, or put deeper than a path can name."""
        subprocess.run(["chmod", "-R", "u+rwX", str(self.top)], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", "--", str(self.top)], stderr=subprocess.DEVNULL, check=False)

    async def host(self, *argv: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        """Run a program on the host, as a person would; returns everything it prints."""

        def run() -> str:
            ended = subprocess.run(
                argv,
                cwd=cwd or self.work,
                env={**os.environ, "HOME": str(self.home), **(env or {})},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=HOST_TIMEOUT,
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
        printed = await self.host("bash", "-c", script, cwd=where)
        assert (where / ".git" / "HEAD").exists(), printed
        return where

    async def host_uses_git(self, folder: Path | None = None) -> None:
        """What a person and their editor do with a repository."""
        script = (
            "git status; git diff; git log -1 -p; git show; git add -A; git commit -q --allow-empty -m two;"
            " git checkout -q -b other; git stash; git branch -v; git submodule status; git gc --auto -q;"
            " git worktree list"
        )
        await self.host("bash", "-c", script, cwd=folder or self.work)

    def damage(self) -> list[str]:
        """Damage that is only possible outside the sandbox."""
        found = []
        if self.escaped.exists():
            found.append("code ran on the host")
        if not self.victim.exists() or self.victim.read_text() != CANARY:
            found.append("a file outside was changed")
        elif self.victim.stat().st_mode & 0o7777 != 0o600:
            found.append(f"the mode of a file outside was changed to {self.victim.stat().st_mode & 0o7777:o}")
        return found
