"""Checks of `doctor` on the sandbox: each kernel mechanism, each limit, and one real command."""

import asyncio
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from toolreeve.cli.doctor.checks import Check, Status
from toolreeve.cli.options import Options

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.core.process import Ended
    from toolreeve.sandbox.probe import Mechanism

PROBE = "cat /etc/shadow; touch /usr/toolreeve-probe; kill -0 1; exec 3<>/dev/tcp/127.0.0.1/9"
NOT_FOR = {"user namespaces": True, "inotify limit": True, "mapped mounts": False}
"""Mechanisms that only an ordinary user (True) or only root (False) uses."""
ELSEWHERE = (
    "Landlock and namespaces are Linux's: use sandbox.mode = docker, or sandbox.require = limits at your own risk"
)


def sandbox(_: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.sandbox.probe import examine

    mechanisms, version = examine()
    for mechanism in mechanisms:
        yield _row(mechanism, version)
    yield Check("sandbox", "resource limits", Status.OK, "used: time, CPU, files and their sizes, everywhere")
    yield from _limits(mechanisms)
    yield Check("sandbox", "proxy", *_proxy(mechanisms))
    yield from asyncio.run(_tried(found))


def _row(mechanism: "Mechanism", version: int) -> Check:
    name = f"Landlock {version}" if mechanism.name == "Landlock" and version else mechanism.name
    is_root = os.geteuid() == 0
    if NOT_FOR.get(mechanism.name) is is_root:
        who = "root" if is_root else "an ordinary user"
        return Check("sandbox", name, Status.OK, f"not used: {who} needs none")
    if not mechanism.problem:
        return Check("sandbox", name, Status.OK, f"used: {mechanism.use}")
    remedy = mechanism.remedy if sys.platform == "linux" else ELSEWHERE
    return Check("sandbox", name, Status.WARN, f"not to be had: {mechanism.problem}", fix=remedy)


def _limits(mechanisms: "list[Mechanism]") -> Iterator[Check]:
    from toolreeve.sandbox.guarantees import Support, guarantees

    works = {each.name: not each.problem for each in mechanisms}
    support = Support(
        namespaces=works["mount namespace"] and works["process namespace"],
        seccomp=works["seccomp"],
        cgroups=works["control groups"],
        own_user=os.geteuid() == 0,
        inotify=works["inotify limit"],
    )
    for each in guarantees(support):
        status = Status.OK if each.holds else Status.WARN
        said = "holds" if each.holds else "does not hold"
        yield Check("limits", each.name, status, f"{said}: {each.how}", fix=each.remedy)


def _proxy(mechanisms: "list[Mechanism]") -> tuple[Status, str]:
    network = next(each for each in mechanisms if each.name == "network namespace")
    if network.problem:
        return Status.WARN, "network: guarded is refused: it needs a network namespace"
    return Status.OK, "used where a tool asks for network: guarded; every connection is judged"


async def _tried(found: "Configuration") -> list[Check]:
    """A program that reads, writes and reaches for what it must not have, in a place as any command gets here."""
    from toolreeve.core.errors import ToolError
    from toolreeve.core.process import ProcessRequest
    from toolreeve.runtime.processes import new_processes
    from toolreeve.sandbox.sandbox import Sandbox

    chosen = found.settings.sandbox
    processes = new_processes(found)
    workspace = os.path.realpath(found.settings.workspace.dir)
    try:
        ended = await processes.run(ProcessRequest(argv=("bash", "-c", PROBE), directory=workspace))
        unwatched = processes.unwatched if isinstance(processes, Sandbox) else ""
    except ToolError as refusal:
        fix = refusal.suggestions[0] if refusal.suggestions else "see the rows of the sandbox above"
        return [Check("control", "sandbox", Status.FAIL, f"no program can run: {refusal.message}", fix=fix)]
    finally:
        await processes.close()
    rows = [_judged(ended, chosen.require)]
    if unwatched:
        fix = "raise the limit or make the directory writable that is named, or choose a smaller workspace"
        rows.append(Check("sandbox", "watch over guarded paths", Status.WARN, unwatched, fix=fix))
    return rows


def _judged(ended: "Ended", required: str) -> Check:
    if ended.sandbox == "none":
        return Check("control", "sandbox", Status.WARN, "sandbox.mode is none: programs are not confined at all")
    if ended.stdout or not ended.exit_code:
        return Check("control", "sandbox", Status.FAIL, f"tier {ended.sandbox}, but a probe was not refused")
    status = Status.OK if ended.sandbox in ("full", "docker") else Status.WARN
    text = f"tier {ended.sandbox} (required: {required}); a program that reached out was refused"
    return Check("control", "sandbox", status, text)
