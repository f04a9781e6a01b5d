"""What may a tool touch? Only what hangs on its `Context`: capabilities, never the machine itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.commands import SHIPPED, CommandRules
from toolreeve.core.deadline import Deadline
from toolreeve.core.files import Files
from toolreeve.core.http import NO_HTTP, Http
from toolreeve.core.process import Processes


class AuditReader(Protocol):
    """Reads the record of earlier calls; never writes it."""

    async def recent(self, *, last_n: int, filters: Mapping[str, str]) -> Sequence[Mapping[str, Any]]: ...


class Restored(Protocol):
    """What became of one file."""

    @property
    def outcome(self) -> str: ...

    def to_dict(self) -> dict[str, str]: ...


class Undoing(Protocol):
    """Takes back what earlier calls changed in files."""

    async def restore(
        self,
        call: ToolCall,
        files: Files,
        *,
        call_id: str | None = None,
        session: str | None = None,
        force: bool = False,
    ) -> Sequence[Restored]: ...


class ModelCatalogue(Protocol):
    """The language models of the configured providers."""

    async def list(self) -> Mapping[str, Sequence[str]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The capabilities of one runtime, shared by all its calls."""

    files: Files
    audit: AuditReader
    models: ModelCatalogue
    undo: Undoing
    processes: Processes
    now: Callable[[], float]
    commands: CommandRules = SHIPPED
    http: Http = NO_HTTP


Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Progress that nobody listens to."""


class Context:
    """Handed to a tool with each call. `deadline` is None where the tool is only asked what it thinks of the call;
    `approved` says that a person was asked about this call and let it run."""

    __slots__ = ("_services", "approved", "call", "deadline", "progress")

    def __init__(
        self,
        call: ToolCall,
        services: Services,
        progress: Progress = silent,
        deadline: Deadline | None = None,
        *,
        approved: bool = False,
    ) -> None:
        self.call = call
        self.approved = approved
        self.progress = progress
        self.deadline = deadline
        self._services = services

    @property
    def files(self) -> Files:
        return self._services.files

    @property
    def audit(self) -> AuditReader:
        return self._services.audit

    @property
    def processes(self) -> Processes:
        return self._services.processes

    @property
    def undo(self) -> Undoing:
        return self._services.undo

    @property
    def models(self) -> ModelCatalogue:
        return self._services.models

    @property
    def commands(self) -> CommandRules:
        return self._services.commands

    @property
    def http(self) -> Http:
        return self._services.http

    @property
    def principal(self) -> Principal:
        return self.call.principal

    def now(self) -> float:
        return self._services.now()
