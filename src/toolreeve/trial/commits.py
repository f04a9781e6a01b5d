"""Commits: applies the changes of a trial, and reverts them.

Staged beside the tree → synced → journalled → swapped in, one rename a change. Killed at any point, a commit is
finished or reverted by `recover`. One commit at a time runs in a tree, across processes.
"""

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Change
from toolreeve.core.openat2 import sync_file_system
from toolreeve.core.trial import file_clock_ns
from toolreeve.trial import tree
from toolreeve.trial.harvest import Alteration, Harvest, TreeChange
from toolreeve.trial.journal import CommitJournal, CommitPhase, CommitPlan, PathSwap
from toolreeve.trial.stage import Stage
from toolreeve.trial.swaps import Conflict, Swapper
from toolreeve.trial.view import CommitView

LOCK_SECONDS = 10.0
MAX_SYNCED_SINGLY = 16
YOUNG_SECONDS = 3600.0
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN = ".toolreeve/commits"
_COMMITTING = (CommitPhase.STAGING, CommitPhase.APPLYING, CommitPhase.UNDOING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveredCommit:
    """What became of a commit that was interrupted: dropped, finished, reverted, undone, or failed."""

    id: str
    root: str
    outcome: str
    reason: str = ""


class PreparedCommit:
    """Staged, with the tree locked: it must be applied or dropped. Killed before `apply`, it is dropped."""

    def __init__(
        self, commits: "Commits", plan: CommitPlan, held: ExitStack, swapper: Swapper, *, is_synced: bool
    ) -> None:
        self._is_synced = is_synced
        self._commits = commits
        self._held = held
        self._swapper = swapper
        self.plan = plan

    def apply(self) -> None:
        """Blocks. Raises ToolError(WRITE_ERROR) if the real tree was changed meanwhile; then nothing was committed."""
        with self._held:
            try:
                self._swapper.verify(self.plan.swaps)
                self._commits.journal.publish(self.plan, is_synced=self._is_synced)
            except (Conflict, OSError) as problem:
                self._commits.drop(self.plan)
                raise _refused(problem) from None
            try:
                self._swapper.apply(self.plan.swaps)
            except Conflict as problem:
                self._commits.revert(self.plan, self._swapper)
                raise _refused(problem) from None
            self._commits.finish(self.plan, CommitPhase.APPLYING, CommitPhase.DONE)

    def drop(self) -> None:
        with self._held:
            self._commits.drop(self.plan)


class Commits:
    """All methods block. `state` is the runtime's own directory; `now` is wall-clock time."""

    def __init__(self, state: Path, now: Callable[[], float] = time.time) -> None:
        self.journal = CommitJournal(state / "commits")
        self.fresh_bytes = 0
        self._now = now

    def prepare(self, harvest: Harvest, chosen: Collection[str] | None = None) -> PreparedCommit:
        """Stage all changes that matter, or the chosen ones with what they need. Raises ToolError."""
        changes = _chosen(harvest, chosen)
        with ExitStack() as held:
            root = held.enter_context(_locked(harvest.layer.root))
            id_ = f"{int(self._now() * 1e6):017d}-{secrets.token_hex(4)}"
            plan = CommitPlan(id=id_, root=harvest.layer.root, stage=self._stage_path(root, harvest.layer.root, id_))
            try:
                self.journal.begin(plan)
                stage = held.enter_context(self._made_stage(root, plan))
                staging = Stage(harvest, root, stage)
                swaps = staging.copy(changes)
                plan = replace(plan, swaps=tuple(swaps), paths=tuple(staging.paths), size=_size(changes))
                self.journal.draft(plan)
                is_synced = self._sync_stage(stage, plan)
            except OSError as problem:
                self.drop(plan)
                message = f"the changes cannot be staged: {problem.strerror}; nothing was committed"
                raise ToolError(ErrorCode.WRITE_ERROR, message, retryable=False) from None
            swapper = Swapper(root, stage)
            held.callback(swapper.close)
            return PreparedCommit(self, plan, held.pop_all(), swapper, is_synced=is_synced)

    def _stage_path(self, root: int, path: str, id_: str) -> str:
        """In the state directory if a rename reaches it from the tree, else in a protected directory of the tree."""
        self.journal.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _opened(str(self.journal.directory)) as own:
            is_same_mount = _mount(own) == _mount(root) and os.fstat(own).st_dev == os.fstat(root).st_dev
        return str(self.journal.directory / id_) if is_same_mount else f"{path}/{_OWN}/{id_}"

    @contextmanager
    def _made_stage(self, root: int, plan: CommitPlan) -> Iterator[int]:
        parent, name = os.path.split(plan.stage)
        if parent != str(self.journal.directory):
            _make_own_directory(root)
        with _stage_parent(plan) as directory:
            os.mkdir(name, 0o700, dir_fd=directory)
            stage = tree.open_directory(directory, name)
        try:
            yield stage
        finally:
            os.close(stage)

    def _sync_stage(self, stage: int, plan: CommitPlan) -> bool:
        """Returns whether the whole file system of the journal was synced: many files are not synced one by one."""
        files = [name for name in os.listdir(stage) if stat.S_ISREG(os.lstat(name, dir_fd=stage).st_mode)]
        folders = any(swap.name and swap.new is not None and not swap.new.mtime_ns for swap in plan.swaps)
        if folders or len(files) > MAX_SYNCED_SINGLY:
            sync_file_system(stage)
            return self.journal.holds(plan)
        for name in files:
            with tree.file_at(stage, name) as descriptor:
                os.fsync(descriptor)
        if not self.journal.holds(plan):
            os.fsync(stage)
        return False

    def finish(self, plan: CommitPlan, phase: CommitPhase, to: CommitPhase) -> None:
        """Mark a phase as over. Within one file system the renames reach the disk no later than the mark."""
        if not self.journal.holds(plan):
            with _opened(plan.root) as root:
                sync_file_system(root)
        self.journal.move(plan.id, phase, to)
        self.fresh_bytes += plan.size
        _wait_for_tick()

    def revert(self, plan: CommitPlan, swapper: Swapper) -> None:
        """Swap back a commit that does not fit. A stage that content of others got into is kept as if undone."""
        if swapper.revert(plan.swaps):
            self.drop(plan)
        else:
            self.finish(plan, CommitPhase.APPLYING, CommitPhase.UNDONE)

    def drop(self, plan: CommitPlan) -> None:
        """Remove the stage and the journal."""
        with _stage_parent(plan) as directory:
            tree.remove_tree(directory, os.path.basename(plan.stage))
        self.journal.remove(plan.id)

    def recover(self) -> Sequence[RecoveredCommit]:
        """Finish or revert what a killed process left. To be called before the first command."""
        interrupted = [id_ for id_, phase in self.journal.phases().items() if phase in _COMMITTING]
        return [each for id_ in interrupted if (each := self._recover(id_)) is not None]

    def _recover(self, id_: str) -> RecoveredCommit | None:
        root, outcome, reason = "", "failed", ""
        try:
            plan = self._read_interrupted(id_)
            root = plan.root
            with _locked(plan.root) as descriptor:
                phase = self.journal.phase(id_)
                if phase not in _COMMITTING:
                    return None  # a process that still ran has finished it meanwhile
                outcome, reason = self._settle(plan, phase, descriptor)
        except (OSError, ToolError) as problem:
            reason = str(problem)
        return RecoveredCommit(id=id_, root=root, outcome=outcome, reason=reason)

    def _read_interrupted(self, id_: str) -> CommitPlan:
        """A journal of the staging phase may be cut off anywhere: then its stage is the one in our directory."""
        try:
            plan = self.journal.read(id_)
        except (ValueError, StopIteration):
            plan = None
        directory = str(self.journal.directory)
        return plan or CommitPlan(id=id_, root=directory, stage=f"{directory}/{id_}")

    def _settle(self, plan: CommitPlan, phase: CommitPhase, root: int) -> tuple[str, str]:
        if phase is CommitPhase.STAGING:
            self.drop(plan)
            return "dropped", ""
        with self._swapper(plan, root) as swapper:
            if phase is CommitPhase.UNDOING:
                _toggle_all([swap for swap in reversed(plan.swaps) if swapper.is_applied(swap)], swapper)
                self.finish(plan, phase, CommitPhase.UNDONE)
                return "undone", ""
            try:
                swapper.apply(plan.swaps)
            except Conflict as conflict:
                self.revert(plan, swapper)
                return "reverted", str(conflict)
            self.finish(plan, phase, CommitPhase.DONE)
            return "finished", ""

    @contextmanager
    def _swapper(self, plan: CommitPlan, root: int) -> Iterator[Swapper]:
        with (
            _stage_parent(plan) as directory,
            tree.directory_at(directory, os.path.basename(plan.stage)) as stage,
        ):
            swapper = Swapper(root, stage)
            try:
                yield swapper
            finally:
                swapper.close()

    def is_standing(self, id_: str, *, undo: bool) -> bool:
        return self.journal.phase(id_) is _PHASES[not undo][1]

    def changes(self, id_: str, *, undo: bool) -> Sequence[Change]:
        plan = self.journal.read(id_)
        if plan is None:
            return []
        found: list[Change] = []
        for each in plan.paths:
            before, after = (each.before, each.after) if undo else (each.after, each.before)
            found.append(Change(kind="write", path=f"{plan.root}/{each.path}", before=before, after=after))
        for swap in plan.swaps:
            if swap.after is not None:
                found.append(Change(kind="mode", path=f"{plan.root}/{swap.path}", before="mode", after="mode"))
        return found

    def view(self, disk: Callable[[str], str | None]) -> CommitView:
        return CommitView(self.journal, disk)

    def sizes(self) -> Mapping[str, int]:
        return self.journal.sizes()

    def toggle(self, id_: str, *, undo: bool) -> None:
        """What is there now is kept in exchange, so callers decide beforehand whether it may go (`view`)."""
        plan = self.journal.read(id_)
        if plan is None:
            raise ToolError(ErrorCode.WRITE_ERROR, "the former content was not kept: it is too old", retryable=False)
        begun, done = _PHASES[undo]
        with _locked(plan.root) as root, self._swapper(plan, root) as swapper:
            if self.journal.phase(id_) is not _PHASES[not undo][1]:
                raise ToolError(ErrorCode.WRITE_ERROR, "it is undone already" if undo else "it is not undone")
            self.journal.move(id_, _PHASES[not undo][1], begun)
            ahead = [swap for swap in plan.swaps if swapper.is_applied(swap) is undo]
            try:
                _toggle_all(list(reversed(ahead)) if undo else ahead, swapper)
            except (OSError, Conflict) as problem:
                self.journal.move(id_, begun, _PHASES[not undo][1])
                raise ToolError(ErrorCode.WRITE_ERROR, f"{problem}; nothing was changed", retryable=False) from None
            self.finish(plan, begun, done)

    def prune(self, wanted: Collection[str]) -> None:
        """Remove the commits that no change refers to any more, except young ones."""
        self.fresh_bytes = 0
        for id_, phase in self.journal.phases().items():
            made = int(id_.partition("-")[0]) / 1e6
            if phase in _COMMITTING or id_ in wanted or made > self._now() - YOUNG_SECONDS:
                continue
            if (plan := self.journal.read(id_)) is not None:
                self.drop(plan)


_PHASES = {True: (CommitPhase.UNDOING, CommitPhase.UNDONE), False: (CommitPhase.APPLYING, CommitPhase.DONE)}
"""By whether a commit is undone: the phase meanwhile, and the one afterwards."""


def _refused(problem: Exception) -> ToolError:
    return ToolError(ErrorCode.WRITE_ERROR, f"{problem}; nothing was committed", retryable=False)


def _toggle_all(swaps: Sequence[PathSwap], swapper: Swapper) -> None:
    """All of them or none. Raises OSError and Conflict."""
    for number, swap in enumerate(swaps):
        try:
            swapper.toggle(swap)
        except (OSError, Conflict):
            for done in reversed(swaps[:number]):
                swapper.toggle(done)
            raise


def _chosen(harvest: Harvest, paths: Collection[str] | None) -> Sequence[TreeChange]:
    """Raises ToolError if something of it cannot be committed."""
    if problem := harvest.problem:
        raise ToolError(ErrorCode.WRITE_ERROR, f"{problem}; nothing was committed", retryable=False)
    if paths is None:
        return [each for each in harvest.changes if not each.scratch]
    changes = harvest.choose(paths)
    known = {each.path for each in changes}
    refused = [each for each in harvest.all_refused if each.path in known or _is_below(each.path, known)]
    if refused:
        message = f"{refused[0].path!r}: {refused[0].reason}; nothing was committed"
        raise ToolError(ErrorCode.WRITE_ERROR, message, retryable=False)
    return changes


def _is_below(path: str, known: Collection[str]) -> bool:
    return any(path.startswith(f"{each}/") for each in known)


def _size(changes: Sequence[TreeChange]) -> int:
    """About how much undo keeps: what is replaced, and what is new if it is taken back."""
    return sum(each.old.st_size for each in changes if each.old is not None and each.kind is not Alteration.TOUCH)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    descriptor = os.open(path, _ROOT)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _locked(root: str) -> Iterator[int]:
    """The open root, locked against commits of all processes. Raises ToolError if one takes too long."""
    with _opened(root) as descriptor:
        ends = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > ends:
                    message = f"another commit has been running in {root} for {LOCK_SECONDS:.0f} s; nothing was changed"
                    raise ToolError(ErrorCode.WRITE_ERROR, message, retryable=True) from None
                time.sleep(0.005)
        yield descriptor


@contextmanager
def _stage_parent(plan: CommitPlan) -> Iterator[int]:
    parent = os.path.dirname(plan.stage)
    if parent == f"{plan.root}/{_OWN}":
        with _opened(plan.root) as root, tree.directory_at(root, _OWN) as directory:
            yield directory
    else:
        with _opened(parent) as directory:
            yield directory


def _make_own_directory(root: int) -> None:
    """`.toolreeve` is guarded from commands and file tools; the content of this one is ignored by git."""
    path = ""
    for name in _OWN.split("/"):
        with tree.directory_at(root, path) as directory:
            if tree.look(directory, name) is None:
                os.mkdir(name, 0o700, dir_fd=directory)
        path = f"{path}/{name}" if path else name
    with tree.directory_at(root, _OWN) as directory:
        if tree.look(directory, ".gitignore") is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(".gitignore", flags, 0o600, dir_fd=directory), "w") as stream:
                stream.write("*\n")


def _mount(descriptor: int) -> str:
    for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("mnt_id:"):
            return line
    return ""


def _wait_for_tick() -> None:
    """A change within the tick of a trial's start would look like one made during the trial."""
    ends = time.time_ns()
    while file_clock_ns() <= ends:
        time.sleep(0.0005)
