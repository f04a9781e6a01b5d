"""The trial stage: what a tried call changed, and its fate.

Nothing of a trial reaches the host unless it is kept, and then exactly the bytes that were decided about. Scratch is
always discarded: a forged cache or interpreter would run outside the sandbox. Only what was allowed to run for real
keeps all that it changed.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from toolreeve.confinement.held_trials import HeldTrial, HeldTrials
from toolreeve.core.action import Action
from toolreeve.core.call import ToolCall
from toolreeve.core.context import Services
from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.failure_reason import lacks_network
from toolreeve.core.guarded_paths import GuardTable
from toolreeve.core.process import ProcessLimits, ProcessRequest
from toolreeve.core.result import Output
from toolreeve.core.trial import NOTHING_CHANGED, Confinement, Layer, ObservedChanges, TrialLayers, wait_for_tick
from toolreeve.policy.shell.analysis import analysis_of
from toolreeve.policy.state import PolicyState
from toolreeve.policy.trial import find_undo_obstacle
from toolreeve.trial.committer import Committer
from toolreeve.trial.harvest import Alteration, Harvest, TreeChange
from toolreeve.trial.layer_reader import read_layer
from toolreeve.trial.preview import preview

CACHES = (
    *("__pycache__", "*.pyc", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".benchmarks"),
    *(".coverage", ".coverage.*", ".tox", ".nox", ".eslintcache", "*.tsbuildinfo"),
)
"""What common tools keep in a project and make again."""
MAX_ASKED = 20
MOST_OVERSIZED = 64
RECENT_SECONDS = 0.1
_GIT = ProcessLimits(timeout=20, processes=64, open_files=1024, output_kb=8192)
_FULL = "No space left on device"
_OTHER_DEVICE = "Invalid cross-device link"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedTrial:
    """What a tried call changed; `problem` says why nothing of it can be kept, or that it proves nothing. `is_stopped`:
    only because a file was hidden, which is not when it runs for real."""

    harvests: tuple[Harvest, ...]
    problem: str = ""
    is_stopped: bool = False

    @property
    def layers(self) -> tuple[int, ...]:
        """The descriptors of its layers."""
        return tuple(harvest.layer.upper for harvest in self.harvests)

    def close(self) -> None:
        for layer in self.layers:
            os.close(layer)

    @property
    def kept(self) -> tuple[TreeChange, ...]:
        """The changes that are decided about."""
        return tuple(change for harvest in self.harvests for change in harvest.kept)

    @property
    def is_conflicting(self) -> bool:
        """Whether the real tree was changed meanwhile, too."""
        return any(harvest.conflicts for harvest in self.harvests)

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that differs: scratch and times, too."""
        return tuple(
            os.path.join(harvest.layer.root, change.path) for harvest in self.harvests for change in harvest.changes
        )

    @property
    def dropped(self) -> int:
        """How many files of scratch there were."""
        return sum(not change.is_directory for harvest in self.harvests for change in harvest.scratch)

    @property
    def effects(self) -> tuple[Effect, ...]:
        return tuple(effect for harvest in self.harvests for effect in harvest.effects())

    @property
    def digest(self) -> str:
        """Names exactly these bytes."""
        return hashlib.sha256("".join(harvest.digest() for harvest in self.harvests).encode()).hexdigest()

    def record(self, outcome: str, why: str = "") -> dict[str, Any]:
        """For `meta.trial` and the audit log."""
        found: dict[str, Any] = {"outcome": outcome, "changes": len(self.kept)}
        if self.kept:
            found["bytes"] = sum(harvest.size for harvest in self.harvests)
            found["manifest"] = self.digest
        if self.dropped:
            found["scratch"] = self.dropped
        if ignored := [path for harvest in self.harvests for path in harvest.ignored]:
            found["ignored"] = ignored[:MAX_ASKED]
        return {**found, "why": why} if why else found

    def record_kept(self, chosen: Collection[str]) -> dict[str, Any]:
        """As `record`, with what was discarded by a person's choice."""
        wanted = frozenset(chosen)
        left = [path for path in self._kept_paths() if path not in wanted]
        if not left:
            return self.record("kept")
        kept = [path for path in self._kept_paths() if path in wanted]
        return {**self.record("kept"), "changes": len(kept), "kept": kept, "discarded": left}

    def choose(self, only: Sequence[str]) -> tuple[str, ...]:
        """The absolute paths of the changes at or below these paths, with those that they cannot go without.

        Raises ToolError for a path at which nothing was changed.
        """
        chosen: list[str] = []
        missing = set(only)
        for harvest in self.harvests:
            root = harvest.layer.root
            found = {path: _below(os.path.normpath(os.path.join(root, path)), harvest) for path in only}
            missing -= {path for path, changes in found.items() if changes}
            together = harvest.choose({path for changes in found.values() for path in changes})
            chosen += [os.path.join(root, change.path) for change in together]
        if missing or not only:
            reason = f"nothing was changed at {sorted(missing)[0]!r}" if missing else "none of the changes was chosen"
            raise ToolError(ErrorCode.APPROVAL_DENIED, f"{reason}, so nothing was kept. {NOTHING_CHANGED}")
        return tuple(chosen)

    def _kept_paths(self) -> list[str]:
        return [os.path.join(harvest.layer.root, change.path) for harvest in self.harvests for change in harvest.kept]

    def preview(self) -> str:
        """The changes as a person decides about them. Blocks."""
        return preview(self.harvests)


class TrialStage:
    """Ends trials and reads what they changed. `scratch` are further names that are always discarded; `seconds` is the
    timeout of a trial; `keeps`: a person may keep what one changed."""

    def __init__(
        self,
        layers: TrialLayers,
        services: Services,
        guards: GuardTable,
        *,
        scratch: Sequence[str],
        seconds: float,
        keeps: bool,
        layer_mb: int,
        committer: Committer,
        last_change: Callable[[], float],
        runs_elsewhere: Callable[[Action], str] = lambda _: "",
    ) -> None:
        self._committer = committer
        self._last_change = last_change
        self.runs_elsewhere = runs_elsewhere
        self.seconds = seconds
        self.keeps = keeps
        self._layer_mb = layer_mb
        self._layers = layers
        self._services = services
        self._guards = guards
        self._scratch = (*CACHES, *scratch)
        self.held = HeldTrials()
        self.oversized: dict[str, str] = {}
        """Calls that changed more than a layer holds, and why they run without one from then on."""

    def find_large(self, action: Action) -> str:
        """Why a layer cannot hold a file that the call is known to change; empty if none is that large."""
        found = analysis_of(action)
        for effect in () if found is None else found.changes:
            if effect.kind is EffectKind.WRITE and _size(effect.target) > self._layer_mb << 20:
                limit = f"trial.layer_mb = {self._layer_mb}"
                return f"it changes {effect.target}, which is more than a trial can hold ({limit})"
        return ""

    def note_oversized(self, command: str, why: str) -> None:
        while len(self.oversized) >= MOST_OVERSIZED:
            del self.oversized[next(iter(self.oversized))]
        self.oversized[command] = why

    async def begin(self) -> None:
        """A file that this runtime has just written must not look as if it were written during the trial."""
        if self._services.now() - self._last_change() < RECENT_SECONDS:
            await wait_for_tick()

    @asynccontextmanager
    async def finish(
        self, call: str, ended: Output | ToolError | None, hidden: str = "", *, for_real: bool = False
    ) -> AsyncIterator[FinishedTrial]:
        """The trial of a call whose programs have ended. Afterwards its layers are gone, unless it is held. `hidden`
        says that it failed because of a hidden file. `for_real`: the call was allowed to run for real, and all its
        changes matter."""
        layers = self._layers.end_trial(call)
        try:
            yield await self._read(layers, ended, hidden, for_real=for_real)
        finally:
            self._release([layer.upper for layer in layers])

    @asynccontextmanager
    async def resume(self, held: HeldTrial) -> AsyncIterator[FinishedTrial]:
        """A trial that was held for its question."""
        try:
            yield held.trial
        finally:
            self._release(held.trial.layers)

    def _release(self, layers: Sequence[int]) -> None:
        for layer in layers:
            if not self.held.holds(layer):
                os.close(layer)

    def discard(self, call: str) -> None:
        for layer in self._layers.end_trial(call):
            os.close(layer.upper)

    async def _read(
        self, layers: Sequence[Layer], ended: Output | ToolError | None, hidden: str, *, for_real: bool
    ) -> FinishedTrial:
        changed = [layer for layer in layers if layer.problem or os.listdir(layer.upper)]
        harvests = [await self._harvest(layer, for_real=for_real) for layer in changed]
        problems = (harvest.problem for harvest in harvests if harvest.kept or harvest.problem)
        problem = next((each for each in problems if each), "") or self._hint(ended)
        return FinishedTrial(
            harvests=tuple(harvests), problem=problem or hidden, is_stopped=bool(hidden) and not problem
        )

    async def _harvest(self, layer: Layer, *, for_real: bool) -> Harvest:
        try:
            if for_real:
                return await asyncio.to_thread(read_layer, layer, self._guards)
            found = await asyncio.to_thread(read_layer, layer, self._guards, self._is_scratch)
            ignored = await self._ignored(layer.root, found.kept)
        except OSError as problem:
            return Harvest(layer=replace(layer, problem=f"its changes cannot be read: {problem}"), changes=())
        return found.with_scratch(ignored) if ignored else found

    def _hint(self, ended: Output | ToolError | None) -> str:
        """A failure that a real run would not have had, as far as the program's words tell. A full layer counts even if
        the program went on."""
        printed = str(((ended and ended.data) or {}).get("stderr") or "")[-4096:]
        if _FULL in printed:
            return "it changes more than a trial can hold (trial.layer_mb)"
        if not isinstance(ended, ToolError):
            return ""
        if _OTHER_DEVICE in printed:
            return "it renames a directory, which a trial cannot"
        if self._services.commands.network != "none" and lacks_network(printed):
            return "it needs the network, which a trial does not have"
        return ""

    def _is_scratch(self, path: str) -> bool:
        name = os.path.basename(path)
        return any(fnmatchcase(name, pattern) for pattern in self._scratch)

    async def _ignored(self, root: str, changes: Sequence[TreeChange]) -> set[str]:
        """Those that git ignores: by the rules of the real tree, not by those that the trial wrote."""
        paths = [change.path for change in changes if change.kind is not Alteration.DELETE]
        if not paths:
            return set()
        stdin = b"\0".join(map(os.fsencode, paths)) + b"\0"
        printed = await self._git(root, "check-ignore", "-z", "--stdin", stdin=stdin)
        ignored = {os.fsdecode(path) for path in printed.split(b"\0") if path}
        return ignored | set(_folders_of(ignored, changes))

    async def keep(self, trial: FinishedTrial, call: ToolCall, chosen: Collection[str] | None = None) -> None:
        """Commit exactly these changes, or those of the chosen paths. Raises ToolError if nothing was changed."""
        await self._committer.commit(call, trial.harvests, chosen)

    def find_undo_obstacle(self, action: Action, state: PolicyState) -> str:
        """Why what the call changes cannot be undone if it runs for real; empty if it can."""
        if not self.keeps:
            return "commands run without layers here (trial.use)"
        if where := self.runs_elsewhere(action):
            return where
        return find_undo_obstacle(action, state, network=self._services.commands.network)

    async def observed(self, trial: FinishedTrial) -> ObservedChanges:
        deleted = sum(len(harvest.deleted) for harvest in trial.harvests)
        return ObservedChanges(effects=trial.effects, deleted=deleted, untracked=tuple(await self._untracked(trial)))

    async def _untracked(self, trial: FinishedTrial) -> list[str]:
        """The deleted files that git does not have as they were."""
        lost: list[str] = []
        for harvest in trial.harvests:
            deleted: Sequence[str] = harvest.deleted
            asked = [change.path for change in harvest.kept if change.lost]
            if deleted and len(asked) <= MAX_ASKED:
                printed = await self._git(harvest.layer.root, "ls-files", "-z", "-t", "-c", "-m", "--", *asked)
                tracked, edited = _tracked(printed)
                deleted = [path for path in deleted if path not in tracked or path in edited]
            lost += [os.path.join(harvest.layer.root, path) for path in deleted]
        return lost

    async def _git(self, root: str, *arguments: str, stdin: bytes = b"") -> bytes:
        """Nothing where there is no repository or no git: then everything is a change, and nothing can be restored."""
        request = ProcessRequest(
            argv=("git", *arguments),
            directory=root,
            stdin=stdin,
            neutral_git=True,
            confinement=Confinement.LOOK,
            limits=_GIT,
        )
        try:
            ended = await self._services.processes.run(request)
        except ToolError:
            return b""
        return ended.stdout if ended.exit_code == 0 else b""


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _tracked(printed: bytes) -> tuple[set[str], set[str]]:
    """The files that git has, and those that were edited since, as `git ls-files -t` lists them."""
    tracked: set[str] = set()
    edited: set[str] = set()
    for line in filter(None, printed.split(b"\0")):
        (tracked if line.startswith(b"H ") else edited).add(os.fsdecode(line[2:]))
    return tracked, edited


def _folders_of(ignored: Collection[str], changes: Sequence[TreeChange]) -> list[str]:
    """New directories in which everything is ignored."""
    made = [change.path for change in changes if change.is_directory and change.kind is Alteration.CREATE]
    others = [change.path for change in changes if change.path not in ignored and change.path not in made]
    return [path for path in made if _has(path, ignored) and not _has(path, others)]


def _has(folder: str, paths: Collection[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for path in paths)


def _below(path: str, harvest: Harvest) -> list[str]:
    """The changes at or below an absolute path, relative to the root."""
    root = harvest.layer.root
    return [change.path for change in harvest.kept if _has(path, (os.path.join(root, change.path),))]
