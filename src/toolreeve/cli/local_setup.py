"""Setup of this machine for the console: checks, clients and hooks.

A change is made only if it still is the one that was shown; the file as it was is kept.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.cli.adopt import diff_lines, make_plan, redact_diff, write_plan
from toolreeve.cli.hooks import FOLDER, NAMES, describe_hook, own_program, user_home
from toolreeve.cli.options import Options
from toolreeve.core.errors import ConfigError, ToolreeveError

if TYPE_CHECKING:
    from toolreeve.adopt.plan import AdoptionPlan, FileChange
    from toolreeve.config import Configuration
    from toolreeve.serve.api.services import LocalSetup


def new_local_setup(options: Options, *, is_demo: bool = False) -> "LocalSetup":
    """A demo checks the machine, and leaves the user's clients alone."""
    from toolreeve.serve.api.services import LocalSetup

    doctor = partial(_in_thread, run_doctor, options)
    if is_demo:
        return LocalSetup(doctor=doctor)
    found = options.configuration()
    return LocalSetup(
        doctor=doctor,
        clients=partial(_in_thread, list_clients, found),
        hooks=partial(_in_thread, list_hooks),
        adopt=partial(_in_thread, adopt_client, found),
        install=partial(_in_thread, install_hook, found),
    )


async def _in_thread(work: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.to_thread(work, *args)


def run_doctor(options: Options) -> list[dict[str, Any]]:
    from toolreeve.cli.doctor.command import run_checks

    return [check.to_dict() for check in run_checks(options, fix=False)]


def list_clients(found: "Configuration") -> list[dict[str, Any]]:
    """The configuration files of other clients: the servers that an adoption would move, and all that it would change
    as a diff, beside the first of a client's files."""
    from toolreeve.adopt.clients import CLIENTS

    rows: list[dict[str, Any]] = []
    for name in CLIENTS:
        plan = _plan_one(found, name)
        shown: dict[str, Any] = {"preview": _preview(plan.changes, plan.secrets), "version": _version(plan.changes)}
        for row in plan.rows:
            rows.append(
                {
                    "id": name,
                    "client": row.client,
                    "file": str(row.path),
                    "state": "found" if row.adopted else "settled",
                    "servers": [each for each, _ in row.adopted],
                    "problem": row.problem,
                    "command": f"toolreeve adopt --client {name}",
                    **(shown if row.adopted else {"preview": None, "version": ""}),
                }
            )
            if row.adopted:
                shown = {"preview": None, "version": ""}
    return rows


def adopt_client(found: "Configuration", name: str, version: str) -> Sequence[str] | None:
    """Adopt the servers of one client, each of which is asked about. None if that is no longer what was shown. Raises
    ConfigError."""
    from toolreeve.adopt.backups import Backups

    backups = Backups(Path(found.settings.state.dir))
    with backups.locked():
        plan = _plan_one(found, name)
        if _version(plan.changes) != version:
            return None
        _, outcomes = write_plan(backups, plan, found.user_file)
    return _changed(outcomes)


def list_hooks() -> list[dict[str, Any]]:
    """Whether our hook is installed in each client that has hooks, and the change that installs it."""
    from toolreeve.adopt.hook_files import HOOKED

    rows = []
    for name in NAMES:
        row = describe_hook(HOOKED[name])
        changes = _hook_changes(name) if row["state"] != "unreadable" else []
        command = f"toolreeve hooks install {name}"
        shown = {"preview": _preview(changes), "version": _version(changes), "command": command}
        rows.append({**row, "events": list(row["events"]), "title": HOOKED[name].title, **shown})
    return rows


def install_hook(found: "Configuration", name: str, version: str) -> Sequence[str] | None:
    """As `adopt_client`, for the hook of a client."""
    from toolreeve.adopt.backups import Backups

    backups = Backups(Path(found.settings.state.dir), folder=FOLDER)
    with backups.locked():
        changes = _hook_changes(name)
        if _version(changes) != version:
            return None
        for change in changes:
            change.path.parent.mkdir(parents=True, exist_ok=True)
        _, outcomes = backups.apply(changes)
    return _changed(outcomes)


def _plan_one(found: "Configuration", name: str) -> "AdoptionPlan":
    from toolreeve.adopt.clients import CLIENTS

    if name not in CLIENTS:
        raise ToolreeveError(f"no client {name!r:.100}; known are {', '.join(CLIENTS)}")
    return make_plan(found, (name,), project=False, search=True)


def _hook_changes(name: str) -> "list[FileChange]":
    """Raises ToolreeveError."""
    from toolreeve.adopt.hook_files import HOOKED, plan_install

    if name not in HOOKED:
        raise ToolreeveError(f"{name!r:.100} has no hooks; these have: {', '.join(NAMES)}")
    change = plan_install(HOOKED[name], user_home(), own_program())
    return [] if change is None else [change]


def _changed(outcomes: "Iterable[Any]") -> list[str]:
    """The files that were changed. Raises ConfigError if one was not."""
    done = []
    for outcome in outcomes:
        if outcome.problem:
            raise ConfigError(outcome.problem, source=outcome.path, fix="undo with: toolreeve adopt --undo")
        done.append(str(outcome.path))
    return done


def _preview(changes: "Iterable[FileChange]", secrets: Iterable[str] = ()) -> str | None:
    return redact_diff("".join(line for each in changes for line in diff_lines(each)), list(secrets)) or None


def _version(changes: "Iterable[FileChange]") -> str:
    """The digest of what is there now and of what would be there then; empty if nothing would change."""
    shown = [(str(each.path), each.before, each.after) for each in changes]
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:32] if shown else ""
