"""The pool of all upstream servers. One that fails stops no other."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ToolError
from toolreeve.registry import ToolRegistry
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.status import MAX_PROBLEMS, ServerState, ServerStatus, unavailable
from toolreeve.upstream.tools.names import SEPARATOR, NameRefused, check_server
from toolreeve.upstream.tools.pins import Pins
from toolreeve.upstream.transports.transport import Connect, Identity, RemoteError, ServerUnavailable

if TYPE_CHECKING:  # loaded for the first server
    from toolreeve.upstream.supervisor import Emit
    from toolreeve.upstream.tools.listing import Listed
    from toolreeve.upstream.tools.registration import ToolRegistration
    from toolreeve.upstream.upstream import Upstream

PIN_CHECK_SECONDS = 1.0

Listener = Callable[[str, str, Mapping[str, Any]], None]
"""Gets a server's notifications: the server, the method, the params."""


class ServerPool:
    """`connect` makes the transport to a server, `timeout` is for calls that set none, `jitter` draws from [0, 1)."""

    def __init__(
        self,
        servers: Iterable[ServerSpec],
        registry: ToolRegistry,
        pins: Pins,
        *,
        connect: Connect,
        identity: Identity,
        timeout: float,
        jitter: Callable[[], float],
        emit: "Emit",
        forget: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._timeout = timeout
        self._listeners: list[Listener] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._upstreams: dict[str, Upstream] = {}
        self._registrations: dict[str, ToolRegistration] = {}
        for spec in servers:
            self._add(spec, pins, connect, identity, jitter, emit, forget)

    def _add(
        self,
        spec: ServerSpec,
        pins: Pins,
        connect: Connect,
        identity: Identity,
        jitter: Callable[[], float],
        emit: "Emit",
        forget: Callable[[str], None],
    ) -> None:
        from toolreeve.upstream.tools.registration import ToolRegistration
        from toolreeve.upstream.upstream import Upstream

        upstream = Upstream(
            spec,
            connect,
            identity,
            timeout=self._timeout,
            jitter=jitter,
            on_notification=partial(self._notified, spec.name),
            emit=emit,
        )
        registration = ToolRegistration(
            upstream, self._registry, pins, forget=forget, owner=partial(self._owner, spec), emit=emit
        )
        upstream.supervisor.tools = registration
        self._upstreams[spec.name] = upstream
        self._registrations[spec.name] = registration
        _refuse_name(upstream)
        if upstream.state is not ServerState.OFF:
            registration.add_relays()

    def start(self) -> None:
        """Begin to connect to all servers; returns at once."""
        used = [each for each in self._upstreams.values() if each.state is not ServerState.OFF]
        self._tasks = [asyncio.create_task(each.supervisor.run()) for each in used]
        if used:
            self._tasks.append(asyncio.create_task(self._watch_pins()))

    async def settled(self, timeout: float | None = None) -> bool:
        """Whether, within this time, every server is connected or has failed once."""
        return await self._wait(list(self._upstreams.values()), timeout)

    async def ready(self, server: str, timeout: float | None = None) -> bool:
        """As `settled`, for one server."""
        return await self._wait([self.upstream(server)], timeout)

    async def _wait(self, upstreams: "Sequence[Upstream]", timeout: float | None) -> bool:
        try:
            async with asyncio.timeout(timeout):
                for each in upstreams:
                    await each.supervisor.wait_settled()
        except TimeoutError:
            return False
        return True

    @property
    def connecting(self) -> bool:
        """Whether a first attempt to connect has not ended yet."""
        return not all(each.is_settled for each in self._upstreams.values())

    @property
    def names(self) -> Sequence[str]:
        return tuple(self._upstreams)

    def __iter__(self) -> "Iterator[Upstream]":
        return iter(self._upstreams.values())

    def __len__(self) -> int:
        return len(self._upstreams)

    def upstream(self, name: str) -> "Upstream":
        """Raises ValueError."""
        found = self._upstreams.get(name)
        if found is None:
            raise ValueError(f"no MCP server is called {name!r:.200}")
        return found

    def status(self) -> list[ServerStatus]:
        owners: dict[str, str] = {}
        return [self._status(each, self._registrations[each.name], owners) for each in self._upstreams.values()]

    def _status(self, upstream: "Upstream", registration: "ToolRegistration", owners: dict[str, str]) -> ServerStatus:
        spec = upstream.spec
        main = upstream.supervisor.main
        return ServerStatus(
            name=spec.name,
            kind=spec.kind,
            place=spec.place,
            source=spec.source,
            state=str(upstream.state),
            trusted=spec.trusted,
            era=upstream.era,
            tools=len(registration.names),
            changed=tuple(registration.changed),
            problem=upstream.problem,
            problems=(*registration.problems, *_shadowed(upstream, owners)),
            info={} if main is None else main.server_info,
        )

    def named_by(self, tool: str) -> "Upstream | None":
        """The server that a tool's name refers to, whether or not it has such a tool: that of the longest prefix."""
        bare = tool.removeprefix(f"mcp{SEPARATOR}")
        named = [each for each in self._upstreams.values() if prefix_of(each.spec) and may_have(each.spec, bare)]
        return max(named, key=lambda each: len(prefix_of(each.spec)), default=None)

    def _owner(self, spec: ServerSpec, tool: str) -> str | None:
        """The other server that a tool of this one would be taken for, by its name."""
        named = self.named_by(tool)
        if named is None or prefix_of(named.spec) == prefix_of(spec):
            return None
        return named.name

    async def expected(self, tool: str, timeout: float) -> bool:
        """As `settled`, for the servers that could have a tool of this name."""
        return await self._wait([each for each in self._upstreams.values() if may_have(each.spec, tool)], timeout)

    async def expect(self, call: ToolCall) -> None:
        """Wait, within the call's timeout, for a tool that is not registered yet. Raises ToolError where its server is
        unavailable."""
        if not isinstance(call.tool, str):
            return
        named = self.named_by(call.tool)
        possible = [each for each in self._upstreams.values() if may_have(each.spec, call.tool)]
        connecting = [each for each in possible if not each.is_settled]
        if connecting:
            await self._wait(connecting, call.timeout or self._timeout)
        if named is not None and named.state is not ServerState.UP and call.tool not in self._registry:
            raise unavailable(named.name, named.problem or "it has not responded yet")

    async def resources(self) -> list[tuple[str, Any]]:
        """Of all connected servers, each with its server's name."""
        return await self._list_items("resources")

    async def templates(self) -> list[tuple[str, Any]]:
        return await self._list_items("resourceTemplates")

    async def prompts(self) -> list[tuple[str, Any]]:
        return await self._list_items("prompts")

    async def _list_items(self, listed: "Listed") -> list[tuple[str, Any]]:
        connected = [each for each in self._upstreams.values() if each.state is ServerState.UP]
        found = await asyncio.gather(*(_list_items(each, listed) for each in connected))
        return [(each.name, item) for each, items in zip(connected, found, strict=True) for item in items]

    def prefixes(self) -> Mapping[str, str]:
        """What precedes the names of each server's tools."""
        used = [each for each in self._upstreams.values() if each.state is not ServerState.OFF]
        return {each.name: prefix_of(each.spec) for each in used}

    def capabilities(self) -> Sequence[Mapping[str, Any]]:
        """Of each connected server."""
        return [each.capabilities for each in self._upstreams.values() if each.state is ServerState.UP]

    async def set_log_level(self, level: str) -> None:
        """The log level of all servers from now on, including those that connect later."""
        await asyncio.gather(*(each.supervisor.set_log_level(level) for each in self._upstreams.values()))

    def roots_changed(self) -> None:
        """Notify the servers that a client's roots have changed."""
        for each in self._upstreams.values():
            each.supervisor.notify("notifications/roots/list_changed")

    def watch(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with the servers' notifications; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def _notified(self, server: str, method: str, params: Mapping[str, Any]) -> None:
        for listener in tuple(self._listeners):
            listener(server, method, params)

    async def _watch_pins(self) -> None:
        """Apply the changes that a person accepts while we run."""
        while True:
            await asyncio.sleep(PIN_CHECK_SECONDS)
            for registration in self._registrations.values():
                with contextlib.suppress(ToolError):  # the store cannot be read just now
                    await registration.apply_accepted()

    async def close(self) -> None:
        """End every session; when it returns, no server that we started runs any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.gather(*(each.supervisor.close() for each in self._upstreams.values()))


def _refuse_name(upstream: "Upstream") -> None:
    try:
        check_server(upstream.name)
        if upstream.spec.prefix:
            check_server(upstream.spec.prefix)
    except NameRefused as problem:
        upstream.supervisor.turn_off(str(problem))


def _shadowed(upstream: "Upstream", owners: dict[str, str]) -> Sequence[str]:
    """Problems for its resources that a server configured earlier has as well; `owners` are those that answer."""
    if upstream.state is not ServerState.UP:
        return ()
    problems = []
    for uri in upstream.resource_uris():
        owner = owners.setdefault(uri, upstream.name)
        if owner != upstream.name:
            problems.append(f"the resource {uri[:200]!a} is left out: server {owner!r}, configured earlier, has it too")
    return problems[:MAX_PROBLEMS]


def prefix_of(spec: ServerSpec) -> str:
    return spec.name if spec.prefix is None else spec.prefix


def may_have(spec: ServerSpec, tool: str) -> bool:
    """Whether a tool of this name, in any spelling, could be one of this server."""
    prefix = prefix_of(spec)
    return not prefix or tool.removeprefix(f"mcp{SEPARATOR}").startswith(prefix + SEPARATOR)


async def _list_items(upstream: "Upstream", listed: "Listed") -> Sequence[Any]:
    """A server that fails to list does not affect the lists of the others."""
    try:
        return [item for item in await upstream.list_items(listed) if isinstance(item, dict)]
    except (RemoteError, ServerUnavailable, TimeoutError):
        return ()
