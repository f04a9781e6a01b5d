"""Context: the capabilities of a tool call.

A tool touches only what its `Context` offers, never the machine itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.command_settings import SHIPPED, CommandRules
from toolreeve.core.deadline import Deadline
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.http import NO_HTTP, Http
from toolreeve.core.process import Ended, OnOutput, Processes, ProcessRequest
from toolreeve.core.trial import Confinement, TrialImpossible


class AuditReader(Protocol):
    """Reads the record of earlier calls; never writes it."""

    async def recent(self, *, last_n: int, filters: Mapping[str, str]) -> Sequence[Mapping[str, Any]]: ...


class Restored(Protocol):
    """The outcome for one file."""

    @property
    def outcome(self) -> str: ...

    def to_dict(self) -> dict[str, str]: ...


class FileUndo(Protocol):
    """Undoes file changes of earlier calls: only those that the call may know of."""

    def check(self, call: ToolCall, *, call_id: str | None, session: str | None) -> None:
        """Raises ToolError if there is nothing that the call may undo. Blocks."""
        ...

    async def restore(
        self,
        call: ToolCall,
        files: Files,
        *,
        call_id: str | None = None,
        session: str | None = None,
        force: bool = False,
    ) -> Sequence[Restored]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
    """The whole text of a result that was cut, and the labels of its data."""

    text: str
    labels: tuple[str, ...] = ()


class KeptOutputs(Protocol):
    """Results of earlier calls that were cut: those that the call may read."""

    @property
    def chars(self) -> int:
        """How many characters are shown at once."""
        ...

    def read(self, call: ToolCall, call_id: str) -> KeptOutput: ...


class NoOutputs:
    """For a runtime that keeps none."""

    chars = 30_000

    def read(self, _: ToolCall, call_id: str) -> KeptOutput:
        raise ToolError(ErrorCode.INVALID_PARAMS, f"/call_id: no output of {call_id[:100]!r} is kept")


NO_OUTPUTS = NoOutputs()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelListing:
    """Models by provider, and why a provider could not be asked."""

    models: Mapping[str, Sequence[str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


class ModelCatalogue(Protocol):
    """The language models of the configured providers."""

    async def list(self) -> ModelListing: ...


class SecretAccess(Protocol):
    """Secrets by name. Whatever it hands out or keeps is redacted from results, events and the record from then on."""

    async def find(self, name: str) -> str | None: ...

    async def keep(self, name: str, value: str) -> None: ...

    def redact(self, values: Iterable[str]) -> None:
        """Redact parts of a secret as well, such as the tokens in a grant."""
        ...

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Of all processes with this store, one at a time is inside for a name: it reads, renews and keeps it."""
        ...


class _NoSecrets:
    async def find(self, name: str) -> str | None:  # noqa: ARG002
        return None

    async def keep(self, name: str, value: str) -> None:  # noqa: ARG002
        raise ToolError(ErrorCode.PERMISSION, f"{name} cannot be kept: this runtime has no secret store")

    def redact(self, values: Iterable[str]) -> None:
        """Nothing is recorded."""

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        return nullcontext()


NO_SECRETS: SecretAccess = _NoSecrets()


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The capabilities of one runtime, shared by all its calls."""

    files: Files
    audit: AuditReader
    models: ModelCatalogue
    undo: FileUndo
    processes: Processes
    now: Callable[[], float]
    commands: CommandRules = SHIPPED
    http: Http = NO_HTTP
    outputs: KeptOutputs = NO_OUTPUTS
    secrets: SecretAccess = NO_SECRETS


Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Progress without a listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramBounds:
    """What the verdict leaves to the programs of a call, whatever its tool requests: `confinement` is the loosest, and
    `hosts` are all that may be contacted; None for those of the request. `seconds` is the timeout of a trial.
    `approved`: the call was allowed to run for real, so its programs read as in WORK. `hides_history`: they see nothing
    of what git stores."""

    confinement: Confinement = Confinement.WORK
    hosts: frozenset[str] | None = None
    seconds: float | None = None
    approved: bool = False
    hides_history: bool = False

    def apply(self, request: ProcessRequest) -> ProcessRequest:
        confinement = self.confinement.tighter(request.confinement)
        bound = replace(request, confinement=confinement, hides_history=self.hides_history)
        if self.hosts is None:
            return bound
        network = request.network if self.hosts else "none"
        return replace(bound, network=network, hosts=self.hosts, approved=self.approved)


UNBOUND = ProgramBounds()


def unbound() -> ProgramBounds:
    """The bounds of a call that runs as its tool requests."""
    return UNBOUND


class Context:
    """Passed to a tool with each call. `deadline` is None while the tool only screens the call; `approved` means that a
    person approved this call. `notices` collects quarantine notices: files its programs left that the host would
    obey."""

    __slots__ = ("_bounds", "_services", "approved", "call", "deadline", "notices", "progress")

    def __init__(
        self,
        call: ToolCall,
        services: Services,
        progress: Progress = silent,
        deadline: Deadline | None = None,
        *,
        approved: bool = False,
        notices: list[str] | None = None,
        bounds: Callable[[], ProgramBounds] = unbound,
    ) -> None:
        self.call = call
        self._bounds = bounds
        self.notices = [] if notices is None else notices
        self.approved = approved
        self.progress = progress
        self.deadline = deadline
        self._services = services

    @property
    def files(self) -> Files:
        """The guarded files of the workspace."""
        return self._services.files

    @property
    def audit(self) -> AuditReader:
        """The record of earlier calls, to read."""
        return self._services.audit

    @property
    def processes(self) -> Processes:
        """Runs programs in the sandbox."""
        return _BoundProcesses(self._services.processes, self.call.id, self.notices, self._bounds())

    @property
    def undo(self) -> FileUndo:
        """Reverts file changes of earlier calls."""
        return self._services.undo

    @property
    def outputs(self) -> KeptOutputs:
        """What was cut from the outputs of this session, to read on."""
        return self._services.outputs

    @property
    def models(self) -> ModelCatalogue:
        """The language models of the configured providers."""
        return self._services.models

    @property
    def commands(self) -> CommandRules:
        """The configured limits of commands."""
        return self._services.commands

    @property
    def http(self) -> Http:
        """HTTP through the network guard."""
        return self._services.http

    @property
    def secrets(self) -> SecretAccess:
        """The secrets of the user, by name."""
        return self._services.secrets

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self.call.principal

    def now(self) -> float:
        """The time in seconds since 1970."""
        return self._services.now()


class _BoundProcesses:
    """Confines every program of the call as its verdict says, and adds quarantine notices to the call, whatever its
    tool does with the result or the error."""

    __slots__ = ("_bounds", "_call", "_notices", "_processes")

    def __init__(self, processes: Processes, call: str, notices: list[str], bounds: ProgramBounds) -> None:
        self._bounds = bounds
        self._processes = processes
        self._call = call
        self._notices = notices

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        bound = self._bounds.apply(replace(request, call=self._call))
        seconds = self._bounds.seconds
        if seconds is not None and seconds < bound.limits.timeout:
            return await self._run_shortened(bound, on_output, seconds)
        return await self._run(bound, on_output)

    async def _run_shortened(self, request: ProcessRequest, on_output: OnOutput | None, seconds: float) -> Ended:
        """A trial that is ended before the command's own timeout says nothing about the command."""
        limits = replace(request.limits, timeout=seconds)
        try:
            return await self._run(replace(request, limits=limits), on_output)
        except ToolError as problem:
            if problem.code is not ErrorCode.TIMEOUT:
                raise
            raise TrialImpossible(f"it takes longer than a trial may (trial.seconds = {seconds:g})") from None

    async def _run(self, bound: ProcessRequest, on_output: OnOutput | None) -> Ended:
        try:
            ended = await self._processes.run(bound, on_output)
        except ToolError as problem:
            meta = dict(problem.meta or {})
            self._notices += meta.pop("quarantined", ())
            problem.meta = meta
            raise
        self._notices += ended.quarantined
        return ended
