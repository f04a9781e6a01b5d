"""How are files changed so that it can be taken back? Backups and a list of what was done come first, then the changes.

The list is written as a whole or not at all, and in the end names what was changed and nothing else. A file that was
changed since keeps those changes: the servers go back into it as it is now. Where that cannot be done, it stays as it
is, and the user's own file keeps the servers that it leads to. No client is left without its servers.
"""

import fcntl
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from toolreeve.adopt.plan import SECTION, FileChange
from toolreeve.adopt.replace_file import digest, read, replace, write_new
from toolreeve.adopt.server_entries import put_servers_back
from toolreeve.adopt.toml_edit import without_blocks
from toolreeve.adopt.undo_facts import Added, Reversal, Taken
from toolreeve.core.errors import ConfigError

FOLDER = "adopted"
MANIFEST = "manifest.json"
LOCK = "lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOutcome:
    """What became of one file; `problem` is empty if it is as it should be now. `merged`: what somebody changed since
    is still in it. `theirs` are the servers that somebody else's word was kept about."""

    path: Path
    problem: str = ""
    merged: bool = False
    theirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """What the list says of one file: digests of it before and after, and the name of its backup if there was one."""

    path: Path
    backup: str | None
    before: str | None
    after: str
    reversal: Reversal | None = None


_LINES = TypeAdapter(tuple[LogLine, ...])


def _moment() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


class Backups:
    """The adoptions of one user, in the state directory."""

    def __init__(self, state: Path) -> None:
        self._state, self._folder = state, state / FOLDER

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else adopts or undoes meanwhile: what was planned in here still holds when it is written. Raises
        ConfigError where the state directory cannot be written."""
        try:
            for folder in (self._state, self._folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = (self._folder / LOCK).open("w")
        except OSError as problem:
            raise ConfigError(f"cannot be written: {problem.strerror}", source=self._folder) from None
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def apply(
        self, changes: Sequence[FileChange], *, private: Sequence[Path] = ()
    ) -> tuple[Path | None, list[ChangeOutcome]]:
        """Write the changes, and say where the backups are; None where nothing could be changed. Files in `private` are
        for their owner only from now on. Raises ConfigError, with nothing changed, where no backup can be made."""
        folder, lines = self._record(changes)
        outcomes = []
        for change in changes:
            try:
                replace(change.path, change.after.encode(), expected=change.before, private=change.path in private)
                outcomes.append(ChangeOutcome(path=change.path))
            except (OSError, ConfigError) as problem:
                outcomes.append(ChangeOutcome(path=change.path, problem=_why(problem)))
                if change.path in private:
                    break
        done = {outcome.path for outcome in outcomes if not outcome.problem}
        return _settle(folder, lines, tuple(line for line in lines if line.path in done)), outcomes

    def _record(self, changes: Sequence[FileChange]) -> tuple[Path, Sequence[LogLine]]:
        folder = self._folder / _moment()
        try:
            folder.mkdir(mode=0o700, parents=True)
            lines = [_backed_up(folder, number, change) for number, change in enumerate(changes)]
            _write_manifest(folder / MANIFEST, lines, expected=None)
        except OSError as problem:
            shutil.rmtree(folder, ignore_errors=True)
            why = f"no backups could be made there, so nothing was changed: {problem.strerror}"
            raise ConfigError(why, source=folder) from None
        return folder, lines

    def undo(self, *, force: bool) -> list[ChangeOutcome] | None:
        """Take the last adoption back that has not been; None if there is none. A refused file stays to be undone."""
        for folder in sorted(self._folder.glob("*/"), reverse=True):
            manifest = folder / MANIFEST
            if manifest.is_file():
                return _undo(manifest, force=force)
        return None


def _backed_up(folder: Path, number: int, change: FileChange) -> LogLine:
    backup = None
    if change.before is not None:
        backup = f"{number}-{change.path.name.lstrip('.')}"
        write_new(folder / backup, change.before.encode())
    before, after = digest(change.before), str(digest(change.after))
    return LogLine(path=change.path, backup=backup, before=before, after=after, reversal=change.reversal)


def _settle(folder: Path, lines: Sequence[LogLine], done: Sequence[LogLine]) -> Path | None:
    """What was not changed need not be taken back."""
    if not done:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    if len(done) < len(lines):
        # A list that names too much is better than none: nothing may be left that cannot be taken back.
        with suppress(OSError):
            _write_manifest(folder / MANIFEST, done, expected=(folder / MANIFEST).read_bytes())
    return folder


def _write_manifest(path: Path, lines: Sequence[LogLine], *, expected: bytes | None) -> None:
    replace(path, _LINES.dump_json(tuple(lines), indent=2), expected=expected, private=True)


def _undo(manifest: Path, *, force: bool) -> list[ChangeOutcome]:
    """Clients first: as long as one leads here, the servers that it leads to stay."""
    lines = _read_manifest(manifest)
    outcomes: list[ChangeOutcome] = []
    for line in reversed(lines):
        stuck = [outcome.path for outcome in outcomes if outcome.problem]
        if stuck and isinstance(line.reversal, Added):
            outcomes.append(ChangeOutcome(path=line.path, problem=f"stays as it is, for {stuck[0]} still needs it"))
        else:
            outcomes.append(_restored(line, manifest.parent, force=force))
    _keep_what_is_left(manifest, lines, outcomes)
    return outcomes


def _keep_what_is_left(manifest: Path, lines: Sequence[LogLine], outcomes: Sequence[ChangeOutcome]) -> None:
    refused = {outcome.path for outcome in outcomes if outcome.problem}
    left = tuple(line for line in lines if line.path in refused)
    if not left:
        manifest.rename(manifest.with_name("undone.json"))
    elif len(left) < len(lines):
        _write_manifest(manifest, left, expected=manifest.read_bytes())


def _read_manifest(path: Path) -> tuple[LogLine, ...]:
    try:
        return _LINES.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        fix = f"restore by hand what you need from {path.parent}"
        raise ConfigError("cannot be read", source=path, fix=fix) from None


def _restored(line: LogLine, folder: Path, *, force: bool) -> ChangeOutcome:
    try:
        now = read(line.path)
        if digest(now) == line.before:
            return ChangeOutcome(path=line.path)
        if force or digest(now) == line.after:
            return _as_it_was(line, folder, now)
        return _merged(line, folder, now)
    except (OSError, ConfigError) as problem:
        return ChangeOutcome(path=line.path, problem=_why(problem))


def _as_it_was(line: LogLine, folder: Path, now: bytes | None) -> ChangeOutcome:
    backup = _backup(line, folder)
    if now is not None and digest(now) != line.after:
        write_new(folder / f"{_moment()}-{line.path.name.lstrip('.')}", now)
    if backup is None:
        line.path.resolve().unlink(missing_ok=True)
    else:
        replace(line.path, backup, expected=now, private=False)
    return ChangeOutcome(path=line.path)


def _backup(line: LogLine, folder: Path) -> bytes | None:
    if line.backup is None:
        return None
    content = (folder / Path(line.backup).name).read_bytes()
    if digest(content) != line.before:
        raise ConfigError("its backup is not what it was", source=line.path)
    return content


def _merged(line: LogLine, folder: Path, now: bytes | None) -> ChangeOutcome:
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
        line.path.resolve().unlink()
    elif text.encode() != now:
        replace(line.path, text.encode(), expected=now, private=False)
    return ChangeOutcome(path=line.path, merged=True, theirs=tuple(theirs))


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
