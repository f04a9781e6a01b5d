"""How are files changed so that it can be taken back? Backups and a list of what was done come first, then the changes.

A file that was changed since keeps those changes: the servers go back into it as it is now. Where that cannot be done,
it stays as it is, and the user's own file keeps the servers that it leads to. No client is left without its servers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from toolreeve.clients.exchange import put_servers_back
from toolreeve.clients.files import digest, read, replace, write_new
from toolreeve.clients.plan import SECTION, Change
from toolreeve.clients.reversal import Added, Reversal, Taken
from toolreeve.clients.toml_edit import without_blocks
from toolreeve.core.errors import ConfigError

FOLDER = "adopted"
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one file; `problem` is empty if it is as it should be now. `merged`: what somebody changed since
    is still in it. `theirs` are the servers that somebody else's word was kept about."""

    path: Path
    problem: str = ""
    merged: bool = False
    theirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What the list says of one file: digests of it before and after, and the name of its backup if there was one."""

    path: Path
    backup: str | None
    before: str | None
    after: str
    reversal: Reversal | None = None


_LINES = TypeAdapter(tuple[Line, ...])


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


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
                replace(change.path, change.after.encode(), expected=change.before, private=change.path in private)
                outcomes.append(Outcome(path=change.path))
            except (OSError, ConfigError) as problem:
                outcomes.append(Outcome(path=change.path, problem=_why(problem)))
                if change.path in private:
                    break
        return folder, outcomes

    def _record(self, changes: Sequence[Change]) -> Path:
        folder = self._folder / _moment()
        folder.mkdir(mode=0o700, parents=True)
        lines = []
        for number, change in enumerate(changes):
            backup = None if change.before is None else f"{number}-{change.path.name.lstrip('.')}"
            if backup is not None and change.before is not None:
                write_new(folder / backup, change.before.encode())
            lines.append(
                Line(
                    path=change.path,
                    backup=backup,
                    before=digest(change.before),
                    after=str(digest(change.after)),
                    reversal=change.reversal,
                )
            )
        write_new(folder / MANIFEST, _LINES.dump_json(tuple(lines), indent=2))
        return folder

    def undo(self, *, force: bool) -> list[Outcome] | None:
        """Take the last adoption back that has not been; None if there is none. A refused file stays to be undone."""
        for folder in sorted(self._folder.glob("*/"), reverse=True):
            manifest = folder / MANIFEST
            if manifest.is_file():
                return _undo(manifest, force=force)
        return None


def _undo(manifest: Path, *, force: bool) -> list[Outcome]:
    """Clients first: as long as one leads here, the servers that it leads to stay."""
    lines = _read_manifest(manifest)
    outcomes: list[Outcome] = []
    for line in reversed(lines):
        stuck = [outcome.path for outcome in outcomes if outcome.problem]
        if stuck and isinstance(line.reversal, Added):
            outcomes.append(Outcome(path=line.path, problem=f"stays as it is, for {stuck[0]} still needs it"))
        else:
            outcomes.append(_restored(line, manifest.parent, force=force))
    _keep_what_is_left(manifest, lines, outcomes)
    return outcomes


def _keep_what_is_left(manifest: Path, lines: Sequence[Line], outcomes: Sequence[Outcome]) -> None:
    refused = {outcome.path for outcome in outcomes if outcome.problem}
    left = tuple(line for line in lines if line.path in refused)
    if not left:
        manifest.rename(manifest.with_name("undone.json"))
    elif len(left) < len(lines):
        replace(manifest, _LINES.dump_json(left, indent=2), expected=manifest.read_bytes(), private=True)


def _read_manifest(path: Path) -> tuple[Line, ...]:
    try:
        return _LINES.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        fix = f"restore by hand what you need from {path.parent}"
        raise ConfigError("cannot be read", source=path, fix=fix) from None


def _restored(line: Line, folder: Path, *, force: bool) -> Outcome:
    try:
        now = read(line.path)
        if digest(now) == line.before:
            return Outcome(path=line.path)
        if force or digest(now) == line.after:
            return _as_it_was(line, folder, now)
        return _merged(line, folder, now)
    except (OSError, ConfigError) as problem:
        return Outcome(path=line.path, problem=_why(problem))


def _as_it_was(line: Line, folder: Path, now: bytes | None) -> Outcome:
    backup = _backup(line, folder)
    if now is not None and digest(now) != line.after:
        write_new(folder / f"{_moment()}-{line.path.name.lstrip('.')}", now)
    if backup is None:
        line.path.unlink(missing_ok=True)
    else:
        replace(line.path, backup, expected=now, private=False)
    return Outcome(path=line.path)


def _backup(line: Line, folder: Path) -> bytes | None:
    if line.backup is None:
        return None
    content = (folder / Path(line.backup).name).read_bytes()
    if digest(content) != line.before:
        raise ConfigError("its backup is not what it was", source=line.path)
    return content


def _merged(line: Line, folder: Path, now: bytes | None) -> Outcome:
    """The change alone taken back. Raises ConfigError with what to do where that cannot be done."""
    force = f"--force restores all of it as it was, and keeps what it is now in {folder}"
    if now is None:
        raise ConfigError("is gone; --force restores it", source=line.path)
    backup = _backup(line, folder)
    try:
        text, theirs = _taken_back(now.decode(), (backup or b"").decode(), line.reversal)
    except (ConfigError, UnicodeDecodeError) as problem:
        why = _told(problem) if isinstance(problem, ConfigError) else "is not UTF-8 text"
        told = f"was changed since, and {why}, so it stays and still leads here; mend that and undo again, or {force}"
        raise ConfigError(told, source=line.path) from None
    if backup is None and not text.strip():
        line.path.unlink()
    elif text.encode() != now:
        replace(line.path, text.encode(), expected=now, private=False)
    return Outcome(path=line.path, merged=True, theirs=tuple(theirs))


def _taken_back(now: str, before: str, reversal: Reversal | None) -> tuple[str, list[str]]:
    match reversal:
        case Taken():
            return put_servers_back(now, before, reversal)
        case Added():
            return without_blocks(now, SECTION, reversal.blocks)
        case None:
            raise ConfigError("what was changed in it was not written down", source="")


def _told(problem: ConfigError) -> str:
    where = "" if problem.line is None else f" (line {problem.line})"
    return f"{problem.key} {problem.problem}".strip() + where


def _why(problem: OSError | ConfigError) -> str:
    if isinstance(problem, OSError):
        return f"cannot be written: {problem.strerror}"
    return f"{problem.problem}: {problem.fix}" if problem.fix else problem.problem
