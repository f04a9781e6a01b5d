"""What do the servers behind us offer besides tools? Their resources, prompts and completions, under one roof.

Lists are merged; whatever is then asked of a server is a call of a hidden tool and takes the road like any other.
Where two servers know a URI, it is listed once, and the first that was configured answers.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolreeve.core.call import ToolCall
from toolreeve.core.errors import TRAITS
from toolreeve.core.result import Failure, ToolResult
from toolreeve.registry import ToolRegistry
from toolreeve.serve.mcp.input_required import InputRequired
from toolreeve.serve.mcp.protocol import INVALID_PARAMS, RESOURCE_NOT_FOUND, Params, WireError, read_text
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.serve.mcp.tool_view import PAGE, read_cursor, write_cursor
from toolreeve.upstream.tools.names import NameRefused, relay_name, tool_name

PATIENCE = 10.0
"""How long a list waits for servers that are still being connected to."""

Offered = Sequence[tuple[str, Mapping[str, Any]]]
"""Definitions as their servers gave them, each with the server's name."""
Run = Callable[[ToolCall], Awaitable[ToolResult]]
_NOTHING: Params = {}


class Upstreams(Protocol):
    """The servers behind us, as far as this door has to know them."""

    @property
    def connecting(self) -> bool: ...

    async def settled(self, timeout: float) -> Any: ...

    async def expected(self, tool: str, timeout: float) -> Any: ...

    def prefixes(self) -> Mapping[str, str]: ...

    def capabilities(self) -> Sequence[Mapping[str, Any]]: ...

    async def resources(self) -> Offered: ...

    async def templates(self) -> Offered: ...

    async def prompts(self) -> Offered: ...

    def watch(self, heard: Callable[[str, str, Mapping[str, Any]], None]) -> Callable[[], None]: ...

    async def set_log_level(self, level: str) -> None: ...

    def roots_changed(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Prompt:
    server: str
    own_name: str
    definition: Mapping[str, Any]


class Gateway:
    def __init__(self, fleet: Upstreams, registry: ToolRegistry, run: Run, asking: InputRequired | None) -> None:
        self._fleet, self._registry, self._run, self._asking = fleet, registry, run, asking
        self._subscribers: Counter[tuple[str, str]] = Counter()

    async def resources(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        return _page("resources", _items(await self._resources(caller)), params.get("cursor"))

    async def templates(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        return _page("resourceTemplates", _items(await self._templates(caller)), params.get("cursor"))

    async def prompts(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        listed = [{**prompt.definition, "name": name} for name, prompt in (await self._prompts(caller)).items()]
        return _page("prompts", listed, params.get("cursor"))

    async def read(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        uri = read_text(params, "uri")
        server = await self._server_of(uri, caller)
        return await self._ask(server, "resources/read", {"uri": uri}, caller, params)

    async def get(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        prompt = await self._prompt(read_text(params, "name"), caller)
        args = _taken(params, "arguments", name=prompt.own_name)
        return await self._ask(prompt.server, "prompts/get", args, caller, params)

    async def complete(self, params: Params, caller: RequestContext) -> dict[str, Any]:
        ref = params.get("ref")
        if not isinstance(ref, Mapping) or not isinstance(params.get("argument"), Mapping):
            raise WireError(INVALID_PARAMS, "params.ref and params.argument must be objects")
        if ref.get("type") == "ref/prompt":
            prompt = await self._prompt(read_text(ref, "name"), caller)
            server, ref = prompt.server, {**ref, "name": prompt.own_name}
        else:
            server = await self._server_of(read_text(ref, "uri"), caller)
        return await self._ask(server, "completion/complete", _taken(params, "argument", "context", ref=ref), caller)

    async def subscribe(self, uri: str, caller: RequestContext) -> dict[str, Any]:
        server = await self._server_of(uri, caller)
        self._subscribers[server, uri] += 1
        try:
            return await self._ask(server, "resources/subscribe", {"uri": uri}, caller)
        except BaseException:
            self._subscribers[server, uri] -= 1
            if not self._subscribers[server, uri]:
                del self._subscribers[server, uri]
            raise

    async def unsubscribe(self, uri: str, caller: RequestContext) -> dict[str, Any]:
        """The server is told only when nobody here is left who wants to know."""
        server = next((server for server, known in self._subscribers if known == uri), None)
        if server is None:
            return {}
        self._subscribers[server, uri] -= 1
        if self._subscribers[server, uri] > 0:
            return {}
        del self._subscribers[server, uri]
        return await self._ask(server, "resources/unsubscribe", {"uri": uri}, caller)

    async def _ask(
        self, server: str, method: str, args: Mapping[str, Any], caller: RequestContext, params: Params = _NOTHING
    ) -> dict[str, Any]:
        """`params` are the client's own, where it may be asked something before it is answered."""
        hidden = self._registry.get(relay_name(server, method))
        if hidden is None or not caller.view.admits(hidden.spec):
            raise WireError(INVALID_PARAMS, f"server {server!r} does not take {method!r}")
        if self._asking is not None and params:
            await self._asking.read_retry(method, params, caller)
        call = ToolCall(
            tool=hidden.spec.name,
            args=args,
            session=caller.session,
            principal=caller.principal,
            origin="mcp",
            peer=caller,
        )
        caller.call_id = call.id
        result = await self._run(call)
        required = self._asking.required(method, params, caller, result) if self._asking is not None else None
        return relayed(result) if required is None else required

    async def _server_of(self, uri: str, caller: RequestContext) -> str:
        for server, known in await self._resources(caller):
            if known.get("uri") == uri:
                return server
        templates = await self._templates(caller)
        for server, known in templates:
            template = known.get("uriTemplate")
            if template == uri or (isinstance(template, str) and _may_expand_to(template, uri)):
                return server
        candidates = [name for name in self._fleet.prefixes() if self._readable(name, caller)]
        if len(candidates) == 1:
            return candidates[0]
        raise WireError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})

    async def _prompt(self, name: str, caller: RequestContext) -> _Prompt:
        found = (await self._prompts(caller)).get(name)
        if found is None:
            raise WireError(INVALID_PARAMS, f"Unknown prompt: {name}")
        return found

    async def _prompts(self, caller: RequestContext) -> dict[str, _Prompt]:
        await self._fleet.settled(PATIENCE)
        prefixes, named = self._fleet.prefixes(), dict[str, _Prompt]()
        for server, definition in self._seen(await self._fleet.prompts(), "prompts/get", caller):
            own = definition.get("name")
            try:
                named.setdefault(tool_name(prefixes[server], str(own)), _Prompt(server, str(own), definition))
            except (NameRefused, KeyError):
                continue  # the server's own problem; it stops no other's prompts
        return named

    async def _resources(self, caller: RequestContext) -> Offered:
        await self._fleet.settled(PATIENCE)
        return _once("uri", self._seen(await self._fleet.resources(), "resources/read", caller))

    async def _templates(self, caller: RequestContext) -> Offered:
        await self._fleet.settled(PATIENCE)
        return _once("uriTemplate", self._seen(await self._fleet.templates(), "resources/read", caller))

    def _seen(self, offered: Offered, method: str, caller: RequestContext) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Without what the client could not ask for anyway."""
        for server, definition in offered:
            hidden = self._registry.get(relay_name(server, method))
            if hidden is not None and caller.view.admits(hidden.spec):
                yield server, definition

    def _readable(self, server: str, caller: RequestContext) -> bool:
        hidden = self._registry.get(relay_name(server, "resources/read"))
        return hidden is not None and caller.view.admits(hidden.spec)


def relayed(result: ToolResult) -> dict[str, Any]:
    """What a server answered, as it answered it. Raises WireError where it did not."""
    match result.outcome:
        case Failure() as failure:
            raise refused(failure)
        case _:
            return dict(result.meta.raw if result.meta.raw is not None else result.outcome.data)


def refused(failure: Failure) -> WireError:
    """The server's own error where it gave one, else ours."""
    told = failure.detail.get("jsonrpc") if isinstance(failure.detail, Mapping) else None
    if isinstance(told, Mapping) and isinstance(told.get("code"), int):
        return WireError(told["code"], str(told.get("message", "")), told.get("data"))
    return WireError(TRAITS[failure.code].jsonrpc, failure.message, {"code": str(failure.code)})


def _taken(params: Params, *keys: str, **given: Any) -> dict[str, Any]:
    return {key: params[key] for key in keys if params.get(key) is not None} | given


def _once(key: str, offered: Iterable[tuple[str, Mapping[str, Any]]]) -> Offered:
    """Of those with the same place the first, which is the one that answers there."""
    places: set[Any] = set()
    kept = []
    for server, definition in offered:
        place = definition.get(key)
        if not isinstance(place, str) or place not in places:
            kept.append((server, definition))
        if isinstance(place, str):
            places.add(place)
    return kept


def _items(offered: Offered) -> list[Mapping[str, Any]]:
    return [definition for _, definition in offered]


def _page(key: str, items: Sequence[Mapping[str, Any]], cursor: Any) -> dict[str, Any]:
    start = 0
    if cursor is not None:
        place = read_cursor(cursor)
        if not place.isascii() or not place.isdigit() or len(place) > 9:
            raise WireError(INVALID_PARAMS, "Invalid cursor")
        start = int(place)
    end = start + PAGE
    page = {key: list(items[start:end])}
    return page | {"nextCursor": write_cursor(str(end))} if end < len(items) else page


def _may_expand_to(template: str, uri: str) -> bool:
    """Whether the URI has the template's literal parts in their order; what stands in braces may be anything."""
    literals = re.split(r"\{[^{}]*\}", template)
    if not uri.startswith(literals[0]) or not uri.endswith(literals[-1]):
        return False
    place = len(literals[0])
    for literal in literals[1:]:
        place = uri.find(literal, place)
        if place < 0:
            return False
        place += len(literal)
    return True
