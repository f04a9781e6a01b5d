"""Checks of `doctor` on the sandbox: kernel mechanisms, limits, one real command."""

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
    from toolreeve.runtime.processes import ClosableProcesses
    from toolreeve.sandbox.probe import Mechanism

PROBE = "cat /etc/shadow; touch /usr/toolreeve-probe; kill -0 1; exec 3<>/dev/tcp/127.0.0.1/9"
TRIAL_FILE = ".toolreeve-probe"
NOT_FOR = {"user namespaces": True, "inotify limit": True, "mapped mounts": False}
"""Mechanisms that root (True) or an ordinary user (False) does not need."""
NOT_LINUX = (
    'Landlock and namespaces need Linux: set sandbox.mode = "docker", or sandbox.require = "limits" at your own risk'
)


def check_sandbox(_: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.sandbox.probe import examine

    if found.settings.sandbox.mode == "none":
        said = "not used, nor are its limits: sandbox.mode is none (EXECUTE_MODE); programs have this user's rights"
        yield Check("sandbox", "all mechanisms", Status.WARN, said, fix='set sandbox.mode = "local"')
        yield from asyncio.run(_run_probe(found))
        return
    mechanisms, version = examine()
    for mechanism in mechanisms:
        yield _row(mechanism, version)
    yield Check("sandbox", "resource limits", Status.OK, "used: time, CPU, open files and file sizes")
    yield from _check_limits(mechanisms, version)
    yield _check_proxy(mechanisms)
    yield from asyncio.run(_run_probe(found))


def _row(mechanism: "Mechanism", version: int) -> Check:
    name = f"Landlock {version}" if mechanism.name == "Landlock" and version else mechanism.name
    is_root = os.geteuid() == 0
    if NOT_FOR.get(mechanism.name) is is_root:
        who = "root" if is_root else "an ordinary user"
        return Check("sandbox", name, Status.OK, f"not used: {who} does not need it")
    if not mechanism.problem:
        return Check("sandbox", name, Status.OK, f"used: {mechanism.use}")
    remedy = mechanism.remedy if sys.platform == "linux" else NOT_LINUX
    return Check("sandbox", name, Status.WARN, f"not available: {mechanism.problem}", fix=remedy)


def _check_limits(mechanisms: "list[Mechanism]", landlock_version: int) -> Iterator[Check]:
    from toolreeve.sandbox.guarantees import Support, guarantees
    from toolreeve.sandbox.kernel import cgroup
    from toolreeve.sandbox.kernel.landlock import VERSION_WITH_SCOPES

    bases = cgroup.find()
    works = {each.name: not each.problem for each in mechanisms}
    support = Support(
        namespaces=works["mount namespace"] and works["process namespace"],
        seccomp=works["seccomp"],
        cgroups=works["control groups"],
        own_user=os.geteuid() == 0,
        inotify=works["inotify limit"],
        cpu_counter=isinstance(bases, cgroup.Bases) and bases.cpu is not None,
        swap=isinstance(bases, cgroup.Bases) and cgroup.leaves_swap(bases),
        signal_scope=landlock_version >= VERSION_WITH_SCOPES,
    )
    for each in guarantees(support):
        if each.holds:
            yield Check("limits", each.name, Status.OK, f"enforced: {each.how}", fix=each.remedy)
        else:
            yield Check("limits", each.name, Status.WARN, f"not enforced: {each.how}", fix=each.remedy)


def _check_proxy(mechanisms: "list[Mechanism]") -> Check:
    network = next(each for each in mechanisms if each.name == "network namespace")
    if network.problem:
        refused = "network: guarded is refused: it needs a network namespace"
        return Check("sandbox", "proxy", Status.WARN, refused)
    return Check("sandbox", "proxy", Status.OK, "used for network: guarded; every connection is checked")


async def _run_probe(found: "Configuration") -> list[Check]:
    """Runs a program that tries to read, write and connect where it must not, in the sandbox of any command."""
    from toolreeve.core.errors import ToolError
    from toolreeve.core.process import ProcessRequest
    from toolreeve.runtime.processes import new_processes
    from toolreeve.sandbox.sandbox import Sandbox

    processes = new_processes(found)
    workspace = os.path.realpath(found.settings.workspace.dir)
    try:
        ended = await processes.run(ProcessRequest(argv=("bash", "-c", PROBE), directory=workspace))
        unwatched = processes.unwatched if isinstance(processes, Sandbox) else ""
        trials = await _check_trials(processes, found)
    except ToolError as refusal:
        fix = refusal.suggestions[0] if refusal.suggestions else "see the sandbox rows above"
        return [Check("control", "sandbox", Status.FAIL, f"no program can run: {refusal.message}", fix=fix)]
    finally:
        await processes.close()
    checks = [_check_probe(ended, found.settings.sandbox.require), trials]
    if unwatched:
        fix = "raise the named limit, make the named directory writable, or use a smaller workspace"
        checks.append(Check("sandbox", "guarded path watch", Status.WARN, unwatched, fix=fix))
    return checks


async def _check_trials(processes: "ClosableProcesses", found: "Configuration") -> Check:
    """Runs a command on trial in the workspace, and looks for what it changed."""
    from toolreeve.core.errors import ToolError
    from toolreeve.core.process import ProcessRequest
    from toolreeve.core.trial import Confinement

    lost = "unknown commands are asked about before they run"
    if found.settings.trial.use == "off":
        return Check("control", "trials", Status.OK, f"trial.use is off: {lost}")
    if Confinement.TRY not in await processes.confinements():
        fix = "see the sandbox rows above: trials need tier full, overlays, and no mount inside the workspace"
        return Check("control", "trials", Status.WARN, f"not possible here: {lost}", fix=fix)
    workspace = os.path.realpath(found.settings.workspace.dir)
    argv = ("touch", TRIAL_FILE)
    try:
        await processes.run(ProcessRequest(argv=argv, directory=workspace, confinement=Confinement.TRY, call="doctor"))
    except ToolError as refusal:
        return Check("control", "trials", Status.WARN, f"{refusal.message}: {lost}")
    layers = processes.end_trial("doctor")
    changed = [name for layer in layers for name in os.listdir(layer.upper)]  # noqa: PTH208  # of a descriptor
    for layer in layers:
        os.close(layer.upper)
    if changed != [TRIAL_FILE] or os.path.lexists(f"{workspace}/{TRIAL_FILE}"):
        return Check("control", "trials", Status.FAIL, "a command on trial did not leave its change in the layer")
    size = found.settings.trial.layer_mb
    return Check("control", "trials", Status.OK, f"a command on trial changed only its layer (at most {size} MB)")


def _check_probe(ended: "Ended", required: str) -> Check:
    if ended.sandbox == "none":
        return Check("control", "sandbox", Status.WARN, "sandbox.mode is none: programs are not confined")
    if ended.stdout or not ended.exit_code:
        return Check("control", "sandbox", Status.FAIL, f"tier {ended.sandbox}, but a probe was not refused")
    status = Status.OK if ended.sandbox in ("full", "docker") else Status.WARN
    text = f"tier {ended.sandbox} (required: {required}); a probe that tried to escape was refused"
    return Check("control", "sandbox", status, text)
