"""The parts of a runtime that reach MCP servers, imported when needed."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from toolreeve.config import Configuration
from toolreeve.core.secrets.scrubber import Scrubber
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.record.events import EventPublisher
from toolreeve.record.journal import Journal
from toolreeve.record.store import RecordStore
from toolreeve.registry import ToolRegistry
from toolreeve.runtime.processes import DeferredProcesses

if TYPE_CHECKING:
    from toolreeve.upstream.pool import ServerPool
    from toolreeve.upstream.server_spec import ServerSpec
    from toolreeve.upstream.tools.pins import Pins
    from toolreeve.upstream.transports.connect import Authorize
    from toolreeve.upstream.transports.transport import Connect, Transport


class UpstreamParts:
    def __init__(
        self,
        configuration: Configuration,
        registry: ToolRegistry,
        servers: "Sequence[ServerSpec]",
        authorize: "Authorize | None",
        *,
        store: RecordStore,
        journal: Journal,
        events: EventPublisher,
        http: GuardedHttp,
        processes: DeferredProcesses,
        forget: Callable[[str], None],
    ) -> None:
        self._configuration = configuration
        self._registry = registry
        self._authorize = authorize
        self._store = store
        self._journal = journal
        self._events = events
        self._http = http
        self._processes = processes
        self._forget = forget
        self.servers = servers

    @cached_property
    def pins(self) -> "Pins":
        from toolreeve.upstream.tools.pins import Pins

        return Pins(self._store.pins, note=self._journal.note)

    @cached_property
    def pool(self) -> "ServerPool":
        """Empty if no server is configured."""
        from toolreeve.upstream.pool import ServerPool
        from toolreeve.upstream.transports.transport import Identity

        settings = self._configuration.settings
        return ServerPool(
            self.servers,
            self._registry,
            self.pins,
            connect=self._connect,
            identity=Identity(info=client_info() if self.servers else {}, roots=(_root(settings.workspace.dir),)),
            timeout=settings.limits.timeout,
            jitter=random.random,
            emit=self._events.server,
            forget=self._forget,
        )

    async def close(self) -> None:
        if self.servers:
            await self.pool.close()

    def connect(self, program: "ServerSpec") -> "Transport":
        """To a program that is no MCP server."""
        return self._connect(program, Scrubber(program.secret_values))

    def _connect(self, spec: "ServerSpec", scrubber: Scrubber) -> "Transport":
        return self._transports(spec, scrubber)

    @cached_property
    def _transports(self) -> "Connect":
        from toolreeve.sandbox.sandbox import Sandbox
        from toolreeve.upstream.transports.connect import TransportFactory

        processes = self._processes.backend()
        return TransportFactory(
            http=self._http,
            environ=self._configuration.known.environ,
            state=Path(self._configuration.settings.state.dir),
            workspace=self._configuration.settings.workspace.dir,
            sandbox=processes if isinstance(processes, Sandbox) else None,
            authorize=self._authorize,
        )


def client_info() -> Mapping[str, str]:
    """The clientInfo sent to MCP servers."""
    from toolreeve.core.version import VERSION

    return {"name": "toolreeve", "version": VERSION}


def _root(workspace: str) -> Mapping[str, str]:
    """The root offered to MCP servers."""
    path = Path(workspace).absolute()
    return {"uri": path.as_uri(), "name": path.name}
