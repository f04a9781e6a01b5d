"""How are files changed so that it can be taken back? Backups and a list of what was done come first, then the changes.

A file is replaced as a whole or not at all, keeps its mode and stays where its link leads. What somebody else changed
in between is never written over unless a person insists.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from toolreeve.clients.plan import Change
from toolreeve.core import json
from toolreeve.core.errors import ConfigError

FOLDER = "adopted"
MANIFEST = "manifest.json"
PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file; `problem` is empty if it is as it should be now."""

    path: Path
    problem: str = ""


class Ledger:
    """The adoptions of one user, in the state directory."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER

    def apply(self, changes: Sequence[Change], *, private: Sequence[Path] = ()) -> tuple[Path, list[Outcome]]:
        """Write the changes, and say where the backups are. Files in `private` are for their owner only from now on."""
        folder = self._record(changes)
        outcomes = []
        for change in changes:
            try:
                _replace(change.path, change.after.encode(), expected=change.before, private=change.path in private)
                outcomes.append(Outcome(path=change.path))
            except (OSError, ConfigError) as problem:
                outcomes.append(Outcome(path=change.path, problem=_why(problem)))
                if change.path in private:
                    break
        return folder, outcomes

    def _record(self, changes: Sequence[Change]) -> Path:
        folder = self._folder / datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        folder.mkdir(mode=0o700, parents=True)
        files = []
        for number, change in enumerate(changes):
            backup = None if change.before is None else f"{number}-{change.path.name.lstrip('.')}"
            if backup is not None and change.before is not None:
                _write_new(folder / backup, change.before.encode())
            files.append(
                {
                    "path": str(change.path),
                    "backup": backup,
                    "before": _digest(change.before),
                    "after": _digest(change.after),
                }
            )
        _write_new(folder / MANIFEST, json.pretty(files).encode())
        return folder

    def undo(self, *, force: bool) -> list[Outcome] | None:
        """Take the last adoption back that has not been; None if there is none. A refused file stays to be undone."""
        for folder in sorted(self._folder.glob("*/"), reverse=True):
            manifest = folder / MANIFEST
            if manifest.is_file():
                return self._undo(manifest, force=force)
        return None

    def _undo(self, manifest: Path, *, force: bool) -> list[Outcome]:
        outcomes = []
        files = _read_manifest(manifest)
        for each in reversed(files):
            path = Path(each["path"])
            try:
                _restore(path, each, manifest.parent, force=force)
                outcomes.append(Outcome(path=path))
            except (OSError, ConfigError) as problem:
                outcomes.append(Outcome(path=path, problem=_why(problem)))
        if not any(outcome.problem for outcome in outcomes):
            manifest.rename(manifest.with_name("undone.json"))
        return outcomes


def _read_manifest(path: Path) -> list[dict[str, Any]]:
    try:
        found = json.loads(path.read_bytes())
        if all(isinstance(each["path"], str) and {"backup", "before", "after"} <= each.keys() for each in found):
            return list(found)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        pass
    raise ConfigError("cannot be read", source=path, fix=f"restore by hand what you need from {path.parent}")


def _restore(path: Path, each: dict[str, Any], folder: Path, *, force: bool) -> None:
    now = _read(path)
    if _digest(now) == each["before"]:
        return
    if _digest(now) != each["after"] and not force:
        raise ConfigError("was changed since; --force restores it all the same", source=path)
    if each["backup"] is None:
        path.unlink(missing_ok=True)
        return
    backup = (folder / Path(each["backup"]).name).read_bytes()
    if _digest(backup) != each["before"]:
        raise ConfigError("its backup is not what it was", source=path)
    _replace(path, backup, expected=now, private=False)


def _replace(path: Path, content: bytes, *, expected: str | bytes | None, private: bool) -> None:
    """Write aside and put into place. Raises ConfigError if the file is not what it is expected to be any more."""
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else PRIVATE
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, aside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(stream.fileno(), mode & ~0o077 if private else mode)
            os.fsync(stream.fileno())
        if _digest(_read(target)) != _digest(expected):
            raise ConfigError("was changed by somebody else just now", source=path, fix="run it again")
        Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _write_new(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _digest(content: str | bytes | None) -> str | None:
    if content is None:
        return None
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def _why(problem: OSError | ConfigError) -> str:
    return problem.problem if isinstance(problem, ConfigError) else f"cannot be written: {problem.strerror}"
