"""Gateway to the resources, prompts and completions of upstream servers.

Lists are merged; every other request is a call of a hidden tool and takes the road like any other call. A URI that two
servers offer is listed once, and the server that is configured first answers.
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
from toolreeve.rpc.errors import INVALID_PARAMS, RESOURCE_NOT_FOUND
from toolreeve.serve.mcp.client_session import is_issued
from toolreeve.serve.mcp.input_required import InputRequired
from toolreeve.serve.mcp.protocol import Params, WireError, read_text
from toolreeve.serve.mcp.request_context import RequestContext
from toolreeve.serve.mcp.tool_view import PAGE, read_cursor, write_cursor
from toolreeve.upstream.tools.names import NameRefused, relay_name, tool_name

CONNECT_TIMEOUT = 10.0
"""Seconds that a list waits for servers that are still connecting."""

Offered = Sequence[tuple[str, Mapping[str, Any]]]
"""Definitions as sent by their servers, each with the server's name."""
Run = Callable[[ToolCall], Awaitable[ToolResult]]
_NOTHING: Params = {}


class Upstreams(Protocol):
    """The upstream servers as this door uses them."""

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
    def __init__(
        self, upstreams: Upstreams, registry: ToolRegistry, run: Run, input_required: InputRequired | None
    ) -> None:
        self._upstreams = upstreams
        self._registry = registry
        self._run = run
        self._input_required = input_required
        self._subscribers: Counter[tuple[str, str]] = Counter()

    async def resources(self, params: Params, context: RequestContext) -> dict[str, Any]:
        return _page("resources", _items(await self._resources(context)), params.get("cursor"))

    async def templates(self, params: Params, context: RequestContext) -> dict[str, Any]:
        return _page("resourceTemplates", _items(await self._templates(context)), params.get("cursor"))

    async def prompts(self, params: Params, context: RequestContext) -> dict[str, Any]:
        listed = [{**prompt.definition, "name": name} for name, prompt in (await self._prompts(context)).items()]
        return _page("prompts", listed, params.get("cursor"))

    async def read(self, params: Params, context: RequestContext) -> dict[str, Any]:
        uri = read_text(params, "uri")
        server = await self._server_of(uri, context)
        return await self._ask(server, "resources/read", {"uri": uri}, context, params)

    async def get(self, params: Params, context: RequestContext) -> dict[str, Any]:
        prompt = await self._prompt(read_text(params, "name"), context)
        args = _select(params, "arguments", name=prompt.own_name)
        return await self._ask(prompt.server, "prompts/get", args, context, params)

    async def complete(self, params: Params, context: RequestContext) -> dict[str, Any]:
        ref = params.get("ref")
        if not isinstance(ref, Mapping) or not isinstance(params.get("argument"), Mapping):
            raise WireError(INVALID_PARAMS, "params.ref and params.argument must be objects")
        if ref.get("type") == "ref/prompt":
            prompt = await self._prompt(read_text(ref, "name"), context)
            server = prompt.server
            ref = {**ref, "name": prompt.own_name}
        else:
            server = await self._server_of(read_text(ref, "uri"), context)
        return await self._ask(server, "completion/complete", _select(params, "argument", "context", ref=ref), context)

    async def subscribe(self, uri: str, context: RequestContext) -> dict[str, Any]:
        server = await self._server_of(uri, context)
        self._subscribers[server, uri] += 1
        try:
            return await self._ask(server, "resources/subscribe", {"uri": uri}, context)
        except BaseException:
            self._subscribers[server, uri] -= 1
            if not self._subscribers[server, uri]:
                del self._subscribers[server, uri]
            raise

    async def unsubscribe(self, uri: str, context: RequestContext) -> dict[str, Any]:
        """The server is asked only when the last subscriber leaves."""
        server = next((server for server, known in self._subscribers if known == uri), None)
        if server is None:
            return {}
        self._subscribers[server, uri] -= 1
        if self._subscribers[server, uri] > 0:
            return {}
        del self._subscribers[server, uri]
        return await self._ask(server, "resources/unsubscribe", {"uri": uri}, context)

    async def _ask(
        self, server: str, method: str, args: Mapping[str, Any], context: RequestContext, params: Params = _NOTHING
    ) -> dict[str, Any]:
        """`params` are the client's own, if the request may need input from the client."""
        hidden = self._registry.get(relay_name(server, method))
        if hidden is None or not context.view.admits(hidden.spec):
            raise WireError(INVALID_PARAMS, f"server {server!r} does not support {method!r}")
        if self._input_required is not None and params:
            await self._input_required.read_retry(method, params, context)
        call = ToolCall(
            tool=hidden.spec.name,
            args=args,
            session=context.session,
            session_issued=is_issued(context.session),
            principal=context.principal,
            origin="mcp",
            client=context.client_name,
            peer=context,
        )
        context.call_id = call.id
        result = await self._run(call)
        required = (
            self._input_required.required(method, params, context, result) if self._input_required is not None else None
        )
        return read_upstream_result(result) if required is None else required

    async def _server_of(self, uri: str, context: RequestContext) -> str:
        for server, known in await self._resources(context):
            if known.get("uri") == uri:
                return server
        templates = await self._templates(context)
        for server, known in templates:
            template = known.get("uriTemplate")
            if template == uri or (isinstance(template, str) and _may_expand_to(template, uri)):
                return server
        candidates = [name for name in self._upstreams.prefixes() if self._readable(name, context)]
        if len(candidates) == 1:
            return candidates[0]
        raise WireError(RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})

    async def _prompt(self, name: str, context: RequestContext) -> _Prompt:
        found = (await self._prompts(context)).get(name)
        if found is None:
            raise WireError(INVALID_PARAMS, f"Unknown prompt: {name}")
        return found

    async def _prompts(self, context: RequestContext) -> dict[str, _Prompt]:
        await self._upstreams.settled(CONNECT_TIMEOUT)
        prefixes = self._upstreams.prefixes()
        named: dict[str, _Prompt] = {}
        for server, definition in self._visible(await self._upstreams.prompts(), "prompts/get", context):
            own = definition.get("name")
            try:
                named.setdefault(tool_name(prefixes[server], str(own)), _Prompt(server, str(own), definition))
            except (NameRefused, KeyError):
                continue  # an invalid name affects no other prompt
        return named

    async def _resources(self, context: RequestContext) -> Offered:
        await self._upstreams.settled(CONNECT_TIMEOUT)
        return _deduplicated("uri", self._visible(await self._upstreams.resources(), "resources/read", context))

    async def _templates(self, context: RequestContext) -> Offered:
        await self._upstreams.settled(CONNECT_TIMEOUT)
        return _deduplicated("uriTemplate", self._visible(await self._upstreams.templates(), "resources/read", context))

    def _visible(
        self, offered: Offered, method: str, context: RequestContext
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The definitions that the client may ask for."""
        for server, definition in offered:
            hidden = self._registry.get(relay_name(server, method))
            if hidden is not None and context.view.admits(hidden.spec):
                yield server, definition

    def _readable(self, server: str, context: RequestContext) -> bool:
        hidden = self._registry.get(relay_name(server, "resources/read"))
        return hidden is not None and context.view.admits(hidden.spec)


def read_upstream_result(result: ToolResult) -> dict[str, Any]:
    """The server's result, unchanged. Raises WireError for a failure."""
    match result.outcome:
        case Failure() as failure:
            raise rpc_error(failure)
        case _:
            return dict(result.meta.raw if result.meta.raw is not None else result.outcome.data)


def rpc_error(failure: Failure) -> WireError:
    """The server's own error if it sent one, else ours."""
    told = failure.detail.get("jsonrpc") if isinstance(failure.detail, Mapping) else None
    if isinstance(told, Mapping) and isinstance(told.get("code"), int):
        return WireError(told["code"], str(told.get("message", "")), told.get("data"))
    return WireError(TRAITS[failure.code].jsonrpc, failure.message, {"code": str(failure.code)})


def _select(params: Params, *keys: str, **given: Any) -> dict[str, Any]:
    return {key: params[key] for key in keys if params.get(key) is not None} | given


def _deduplicated(key: str, offered: Iterable[tuple[str, Mapping[str, Any]]]) -> Offered:
    """The first definition for each key, which is the one that answers."""
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
    """Whether the URI contains the template's literal parts in order; an expression may expand to anything."""
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
