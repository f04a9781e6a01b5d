"""All servers together: connected at the same time, each on its own. One that fails stops no other."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.registry import ToolRegistry
from toolreeve.upstream.connections import Dial, Identity
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.status import ServerStatus
from toolreeve.upstream.supervisor import ServerState, Tell
from toolreeve.upstream.tools.listing import Listed
from toolreeve.upstream.tools.names import SEPARATOR, NameRefused, check_server
from toolreeve.upstream.tools.pins import Pins
from toolreeve.upstream.tools.registration import MOST_PROBLEMS, ToolRegistration
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable
from toolreeve.upstream.upstream import Upstream

LOOK_EVERY = 1.0

Heard = Callable[[str, str, Mapping[str, Any]], None]
"""What a server said unasked: the server, the method, the params."""


class ServerPool:
    """`dial` reaches a server, `timeout` is what a call gets that says nothing, `draw` gives chance in [0, 1)."""

    def __init__(
        self,
        servers: Iterable[ServerSpec],
        registry: ToolRegistry,
        pins: Pins,
        *,
        dial: Dial,
        identity: Identity,
        timeout: float,
        draw: Callable[[], float],
        tell: Tell,
        forget: Callable[[str], None],
    ) -> None:
        self._registry, self._timeout = registry, timeout
        self._listeners: list[Heard] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._upstreams: dict[str, Upstream] = {}
        self._shelves: dict[str, ToolRegistration] = {}
        for spec in servers:
            upstream = Upstream(
                spec, dial, identity, timeout=timeout, draw=draw, notice=partial(self._hear, spec.name), tell=tell
            )
            shelf = upstream.keeper.shelf = ToolRegistration(
                upstream, registry, pins, forget=forget, owner=partial(self._owner, spec), tell=tell
            )
            self._upstreams[spec.name], self._shelves[spec.name] = upstream, shelf
            _refuse_name(upstream)
            if upstream.state is not ServerState.OFF:
                shelf.put_relays()

    def start(self) -> None:
        """Begin to connect to all of them; returns at once."""
        kept = [each for each in self._upstreams.values() if each.state is not ServerState.OFF]
        self._tasks = [asyncio.create_task(each.keeper.keep()) for each in kept]
        if kept:
            self._tasks.append(asyncio.create_task(self._watch()))

    async def settled(self, timeout: float | None = None) -> bool:
        """Whether, within this time, every server is connected or has failed once."""
        return await self._wait(list(self._upstreams.values()), timeout)

    async def ready(self, server: str, timeout: float | None = None) -> bool:
        """As `settled`, for one server."""
        return await self._wait([self.upstream(server)], timeout)

    async def _wait(self, upstreams: Sequence[Upstream], timeout: float | None) -> bool:
        try:
            async with asyncio.timeout(timeout):
                for each in upstreams:
                    await each.keeper.settled()
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

    def __iter__(self) -> Iterator[Upstream]:
        return iter(self._upstreams.values())

    def __len__(self) -> int:
        return len(self._upstreams)

    def upstream(self, name: str) -> Upstream:
        """Raises ValueError."""
        found = self._upstreams.get(name)
        if found is None:
            raise ValueError(f"no MCP server is called {name!r:.200}")
        return found

    def status(self) -> list[ServerStatus]:
        owners: dict[str, str] = {}
        return [self._status(each, self._shelves[each.name], owners) for each in self._upstreams.values()]

    def _status(self, upstream: Upstream, shelf: ToolRegistration, owners: dict[str, str]) -> ServerStatus:
        spec, main = upstream.spec, upstream.keeper.main
        return ServerStatus(
            name=spec.name,
            kind=spec.kind,
            place=spec.place,
            source=spec.source,
            state=str(upstream.state),
            trusted=spec.trusted,
            era=upstream.era,
            tools=len(shelf.names),
            changed=tuple(shelf.changed),
            problem=upstream.problem,
            problems=(*shelf.problems, *_shadowed(upstream, owners)),
            info={} if main is None else main.server_info,
        )

    def named_by(self, tool: str) -> Upstream | None:
        """The server that a tool's name speaks of, whether or not it has such a tool: that of the longest prefix."""
        bare = tool.removeprefix(f"mcp{SEPARATOR}")
        return max(
            (each for each in self._upstreams.values() if prefix_of(each.spec) and may_have(each.spec, bare)),
            key=lambda each: len(prefix_of(each.spec)),
            default=None,
        )

    def _owner(self, spec: ServerSpec, tool: str) -> str | None:
        """The other server that a tool of this one would be taken for, by its name."""
        speaking = self.named_by(tool)
        return None if speaking is None or prefix_of(speaking.spec) == prefix_of(spec) else speaking.name

    async def expected(self, tool: str, timeout: float) -> bool:
        """As `settled`, for the servers that could have a tool of this name."""
        return await self._wait([each for each in self._upstreams.values() if may_have(each.spec, tool)], timeout)

    async def expect(self, call: ToolCall) -> None:
        """Wait, within the call's time, for a tool that is not there yet. Raises ToolError where its server is away."""
        if not isinstance(call.tool, str):
            return
        speaking = self.named_by(call.tool)
        possible = (each for each in self._upstreams.values() if may_have(each.spec, call.tool))
        if waited := [each for each in possible if not each.is_settled]:
            await self._wait(waited, call.timeout or self._timeout)
        if speaking is not None and speaking.state is not ServerState.UP and call.tool not in self._registry:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"the server {speaking.name!r} is not there: {speaking.problem or 'it has not answered yet'}",
                suggestions=(f"toolreeve servers test {speaking.name}",),
            )

    async def resources(self) -> list[tuple[str, Any]]:
        """Of all servers that are there, as they list them, each with its server's name."""
        return await self._offers("resources")

    async def templates(self) -> list[tuple[str, Any]]:
        return await self._offers("resourceTemplates")

    async def prompts(self) -> list[tuple[str, Any]]:
        return await self._offers("prompts")

    async def _offers(self, listed: Listed) -> list[tuple[str, Any]]:
        asked = [each for each in self._upstreams.values() if each.state is ServerState.UP]
        found = await asyncio.gather(*(_offers(each, listed) for each in asked))
        return [(each.name, item) for each, items in zip(asked, found, strict=True) for item in items]

    def prefixes(self) -> Mapping[str, str]:
        """What stands before the names of each server's tools."""
        return {
            each.name: prefix_of(each.spec) for each in self._upstreams.values() if each.state is not ServerState.OFF
        }

    def capabilities(self) -> Sequence[Mapping[str, Any]]:
        """What each server that is there can do."""
        return [each.capabilities for each in self._upstreams.values() if each.state is ServerState.UP]

    async def set_log_level(self, level: str) -> None:
        """How much all servers are to log from now on, also those that come later."""
        await asyncio.gather(*(each.keeper.set_log_level(level) for each in self._upstreams.values()))

    def roots_changed(self) -> None:
        """The folders that a client works in are others now."""
        for each in self._upstreams.values():
            each.keeper.tell("notifications/roots/list_changed")

    def watch(self, heard: Heard) -> Callable[[], None]:
        """Have a function called with what servers say unasked; what is returned ends that."""
        self._listeners.append(heard)
        return lambda: self._listeners.remove(heard)

    def _hear(self, server: str, method: str, params: Mapping[str, Any]) -> None:
        for heard in tuple(self._listeners):
            heard(server, method, params)

    async def _watch(self) -> None:
        """Take up what a person accepts while we run."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for shelf in self._shelves.values():
                with contextlib.suppress(ToolError):  # the store cannot be read just now
                    await shelf.look()

    async def close(self) -> None:
        """End every session; when it returns, no server that we started runs any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await asyncio.gather(*(each.keeper.close() for each in self._upstreams.values()))


def _refuse_name(upstream: Upstream) -> None:
    try:
        check_server(upstream.name)
        if upstream.spec.prefix:
            check_server(upstream.spec.prefix)
    except NameRefused as problem:
        upstream.keeper.turn_off(str(problem))


def _shadowed(upstream: Upstream, owners: dict[str, str]) -> Sequence[str]:
    """Its resources that another server has as well: `owners` are those that were configured before, and answer."""
    if upstream.state is not ServerState.UP:
        return ()
    told = []
    for uri in upstream.uris():
        if (owner := owners.setdefault(uri, upstream.name)) != upstream.name:
            told.append(f"the resource {uri[:200]!a} is left out: that of {owner!r}, configured before it, is used")
    return told[:MOST_PROBLEMS]


def prefix_of(spec: ServerSpec) -> str:
    return spec.name if spec.prefix is None else spec.prefix


def may_have(spec: ServerSpec, tool: str) -> bool:
    """Whether a tool of this name, however it is spelled, could be one of this server."""
    prefix = prefix_of(spec)
    return not prefix or tool.removeprefix(f"mcp{SEPARATOR}").startswith(prefix + SEPARATOR)


async def _offers(upstream: Upstream, listed: Listed) -> Sequence[Any]:
    """A server that fails to list leaves the others' lists alone."""
    try:
        return [item for item in await upstream.offers(listed) if isinstance(item, dict)]
    except (RemoteError, ServerUnavailable, TimeoutError):
        return ()
