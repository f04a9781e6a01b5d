"""What may a tool touch? Only what hangs on its `Context`: capabilities, never the machine itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from toolreeve.core.call import Principal, ToolCall
from toolreeve.core.command_settings import SHIPPED, CommandRules
from toolreeve.core.deadline import Deadline
from toolreeve.core.errors import ToolError
from toolreeve.core.files import Files
from toolreeve.core.http import NO_HTTP, Http
from toolreeve.core.process import Ended, OnOutput, Processes, ProcessRequest


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
    `approved` says that a person was asked about this call and let it run. `notices` gathers what its programs left for
    the host to obey."""

    __slots__ = ("_services", "approved", "call", "deadline", "notices", "progress")

    def __init__(
        self,
        call: ToolCall,
        services: Services,
        progress: Progress = silent,
        deadline: Deadline | None = None,
        *,
        approved: bool = False,
        notices: list[str] | None = None,
    ) -> None:
        self.call = call
        self.notices = [] if notices is None else notices
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
        return _Noting(self._services.processes, self.call.id, self.notices)

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


class _Noting:
    """Programs as they are, but what they left is told with the call, whatever its tool makes of their ends."""

    __slots__ = ("_call", "_notices", "_processes")

    def __init__(self, processes: Processes, call: str, notices: list[str]) -> None:
        self._processes, self._call, self._notices = processes, call, notices

    async def run(self, request: ProcessRequest, on_output: OnOutput | None = None) -> Ended:
        try:
            ended = await self._processes.run(replace(request, call=self._call), on_output)
        except ToolError as problem:
            self._notices += (problem.meta or {}).get("quarantined", ())
            problem.meta = {name: value for name, value in (problem.meta or {}).items() if name != "quarantined"}
            raise
        self._notices += ended.quarantined
        return ended
