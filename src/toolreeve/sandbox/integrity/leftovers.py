"""Leftovers of commands whose runtime was killed, assessed by the next one.

What differs from the baseline is treated like what a command left. Changes after the kill cannot be distinguished, so
they count as the command's, but for paths that commands could not change.
"""

import fcntl
import json
import logging
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from toolreeve.core.guarded_paths import GuardTable
from toolreeve.sandbox.integrity.baseline import IDLE, Accepted, boot_id, remove, store
from toolreeve.sandbox.integrity.changes import Changes
from toolreeve.sandbox.integrity.path_table import is_in
from toolreeve.sandbox.integrity.quarantine import Quarantine
from toolreeve.sandbox.integrity.watch import Watch

logger = logging.getLogger(__name__)

_CLOCK_SLACK_NS = 1_000_000_000  # file systems stamp with a coarser clock than ours


def settle_leftovers(watch: Watch, quarantine: Quarantine, guards: GuardTable) -> tuple[str, ...]:
    """Assess what was left in these roots. Returns what was done, a sentence each. Blocks."""
    notices: list[str] = []
    for lock in sorted(Path(quarantine.baselines).glob("*.lock")):
        descriptor = _take_over(lock)
        if descriptor is None:
            continue
        try:
            notices += _settle(lock, os.pread(descriptor, 1, 0), watch, quarantine, guards)
        except OSError as problem:
            notices.append(f"the baseline {lock} of a killed runtime cannot be removed: {problem.strerror}")
        finally:
            os.close(descriptor)
    for notice in notices:
        logger.warning(notice)
    return tuple(notices)


def _take_over(lock: Path) -> int | None:
    """Take the lock of a dead process. None while it lives, and where another runtime was faster."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    if os.fstat(descriptor).st_nlink == 0:
        os.close(descriptor)
        return None
    return descriptor


def _load(lock: Path) -> Accepted | None:
    """None if no command ever ran. Raises OSError, ValueError and TypeError."""
    try:
        return Accepted(**json.loads(lock.with_suffix(".json").read_bytes()))
    except FileNotFoundError:
        return None


def _settle(lock: Path, mark: bytes, watch: Watch, quarantine: Quarantine, guards: GuardTable) -> Iterator[str]:
    try:
        before = _load(lock)
    except (OSError, ValueError, TypeError) as problem:
        yield f"a runtime was killed, and its baseline cannot be read ({problem}): its leftovers are not checked"
        before = None
    if before is None or (mark == IDLE and before.boot == boot_id()):
        remove(lock)
        return
    roots = [root for root in before.roots if is_in(root, guards.roots)]
    if not roots:
        return
    changes = _compare(before, watch, roots)
    watch.revoke(changes.appeared | changes.changed)
    for notice in quarantine.settle(watch, changes):
        yield f"a runtime was killed while a command ran: {notice}"
    for path in watch.drain().changed:  # restored files
        watch.accept(path)
    elsewhere = [root for root in before.roots if root not in roots]
    if elsewhere:
        store(lock, replace(before, roots=elsewhere))
    else:
        remove(lock)


def _compare(before: Accepted, watch: Watch, roots: Collection[str]) -> Changes:
    """The difference from a baseline in these roots that may be the work of a command."""
    unchanged = {path for path, inode in before.covered.items() if _is_inode(path, inode)}

    def suspects(paths: Iterable[str]) -> frozenset[str]:
        return frozenset(path for path in paths if is_in(path, roots) and not is_in(path, unchanged))

    found = watch.since({path: signature for path, (signature, _) in before.paths.items()})
    appeared = suspects(found.appeared)
    if not before.complete:  # they may have existed, too deep to be listed
        appeared = frozenset(path for path in appeared if _is_younger(path, before.time_ns - _CLOCK_SLACK_NS))
    arrived = frozenset(path for path in before.dangling if os.path.exists(path) and is_in(path, roots))
    former = {path: content.encode("latin-1") for path, (_, content) in before.paths.items() if content is not None}
    return Changes(appeared=appeared | arrived, changed=suspects(found.changed), former=former)


def _is_inode(path: str, inode: int) -> bool:
    try:
        return os.lstat(path).st_ino == inode
    except OSError:
        return False


def _is_younger(path: str, time_ns: int) -> bool:
    try:
        return os.lstat(path).st_ctime_ns >= time_ns
    except OSError:
        return False
