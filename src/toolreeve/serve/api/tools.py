"""Endpoints of tools: list, show, call, batch and chain."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.responses import Response
from typing_extensions import TypedDict

from toolreeve import flows
from toolreeve.core import json
from toolreeve.core.call import ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode
from toolreeve.core.names import client_arguments
from toolreeve.core.result import Failed, ToolResult
from toolreeve.core.suggest import did_you_mean
from toolreeve.core.tool import BoundTool, ToolSpec
from toolreeve.serve.api.endpoint import SSE, ApiRequest, Body, Endpoints, Query, json_response
from toolreeve.serve.api.problems import MEDIA_TYPE, Problem, failed_result
from toolreeve.serve.api.router import PREFIX
from toolreeve.serve.api.running import HttpPeer, follow, session_of
from toolreeve.serve.api.streams import event_stream, frame
from toolreeve.serve.tokens import AccessScope

MAX_CALLS = 100
BYTES_PER_TOKEN = 4
tools = Endpoints("tools")

Danger = Literal["safe", "low", "medium", "high", "critical"]
_DANGERS: Mapping[DangerLevel, Danger] = {level: level.value for level in DangerLevel}
Arguments = dict[str, Any]


class ToolRow(TypedDict):
    """`tokens` estimates what the definition takes in a model's context."""

    name: str
    title: str
    description: str
    danger: Danger
    category: str
    read_only: bool
    idempotent: bool
    server: str | None
    trusted: bool
    source: str
    tags: list[str]
    tokens: int


class ToolDetail(ToolRow):
    examples: list[dict[str, Any]]
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    undoable: bool
    confinable: bool


class ToolList(TypedDict):
    tools: list[ToolRow]
    total: int


class ToolResultBody(TypedDict):
    """The result of a call that succeeded. One that failed is problem details with the same members."""

    success: bool
    data: dict[str, Any] | None
    error: dict[str, Any] | None
    meta: dict[str, Any]


class CallAccepted(TypedDict):
    """The call runs; `url` has its state, and its result once it has ended."""

    call_id: str
    url: str


class ResultList(TypedDict):
    results: list[Any]


class ToolQuery(Query):
    q: Annotated[str | None, Field(max_length=200, description="Words to search for.")] = None
    category: Annotated[str | None, Field(max_length=100)] = None
    server: Annotated[str | None, Field(max_length=200)] = None
    danger: Danger | None = None


class CallBody(Body):
    args: Arguments = Field(default_factory=dict, description="The arguments, as the tool's input_schema says.")
    session: Annotated[str | None, Field(max_length=200, description="Groups calls for undo and grants.")] = None
    timeout: Annotated[float | None, Field(gt=0, le=86_400, strict=False, description="In seconds.")] = None


class OneCall(Body):
    tool: Annotated[str, Field(max_length=200)]
    args: Arguments = Field(default_factory=dict)


class BatchBody(Body):
    calls: Annotated[list[OneCall], Field(min_length=1, max_length=MAX_CALLS)]
    session: Annotated[str | None, Field(max_length=200)] = None
    concurrency: Annotated[int, Field(ge=1, le=64)] = 8


class ChainBody(Body):
    steps: Annotated[list[OneCall], Field(min_length=1, max_length=MAX_CALLS)]
    session: Annotated[str | None, Field(max_length=200)] = None
    stop_on_error: bool = True


@tools.get("/tools")
async def list_tools(request: ApiRequest, query: ToolQuery) -> ToolList:
    """List the tools that the credential may use."""
    registry = request.services.reeve.tools
    found = registry.search(query.q, limit=1000) if query.q else registry.list()
    view = request.services.views.of(request.credential)
    specs = [each.spec for each in found if view.shows(each.spec)]
    rows = [describe_tool(spec) for spec in specs if _matches(spec, query)]
    return {"tools": rows, "total": len(rows)}


@tools.get("/tools/{name:path}")
async def show_tool(request: ApiRequest, name: str) -> ToolDetail:
    """Show a tool with its schemas."""
    spec = find_tool(request, name).spec
    row = describe_tool(spec)
    return {
        **row,
        "examples": [dict(each) for each in spec.examples],
        "input_schema": dict(spec.input),
        "output_schema": None if spec.output is None else dict(spec.output),
        "undoable": spec.undoable,
        "confinable": spec.confinable,
    }


@tools.post(
    "/tools/{name:path}/call", AccessScope.CALL, returns=ToolResultBody, streams=True, statuses={202: CallAccepted}
)
async def call_tool(request: ApiRequest, name: str, body: CallBody) -> Response:
    """Call a tool. `Prefer: respond-async` answers at once; `Accept: text/event-stream` streams progress."""
    bound = find_tool(request, name)
    args = client_arguments(name, body.args)
    call = new_call(request, bound.spec.name, args, session=body.session, timeout=body.timeout)
    return await run_call(request, call)


@tools.post("/batch", AccessScope.CALL)
async def run_batch(request: ApiRequest, body: BatchBody) -> ResultList:
    """Run calls concurrently. Results come in the order of the calls; one failure does not stop the rest."""
    calls = _new_calls(request, body.calls, body.session)
    reeve = request.services.reeve
    results = await flows.batch(reeve.call, calls, run=reeve.run, concurrency=body.concurrency)
    return {"results": [result.to_dict() for result in results]}


@tools.post("/chain", AccessScope.CALL)
async def run_chain(request: ApiRequest, body: ChainBody) -> ResultList:
    """Run calls in sequence; `{{previous.field}}` and `{{steps[0].field}}` refer to earlier results."""
    calls = _new_calls(request, body.steps, body.session)
    reeve = request.services.reeve
    results = await flows.chain(reeve.call, calls, run=reeve.run, stop_on_error=body.stop_on_error)
    return {"results": [result.to_dict() for result in results]}


def find_tool(request: ApiRequest, name: str) -> BoundTool:
    """Raises Problem for a tool that the credential does not see, as for one that does not exist."""
    view = request.services.views.of(request.credential)
    found = view.find(name)
    if found is None:
        similar = view.similar(name[:200])
        detail = f"no tool is called {name!r:.200}; {did_you_mean(similar) or f'GET {PREFIX}/tools lists them'}"
        raise Problem(404, detail, code=ErrorCode.TOOL_NOT_FOUND, suggestions=similar)
    return found


def new_call(request: ApiRequest, tool: str, args: Mapping[str, Any], **more: Any) -> ToolCall:
    """A call of the credential's user, through this door. Its questions go to the inbox."""
    session = session_of(request.credential, more.pop("session", None))
    peer = HttpPeer(session, request.credential.id, follows=SSE in request.http.headers.get("accept", ""))
    return ToolCall(
        tool=tool,
        args=args,
        session=session,
        peer=peer,
        principal=request.credential.principal,
        origin="http",
        traceparent=request.http.headers.get("traceparent", "")[:100],
        client=request.http.headers.get("user-agent", "")[:200],
        **more,
    )


async def run_call(request: ApiRequest, call: ToolCall) -> Response:
    """The result, 202 for a call in the background, or a stream: as the request's headers ask for."""
    headers = request.http.headers
    if "respond-async" in headers.get("prefer", ""):
        _start(request, call)
        accepted = {"call_id": call.id, "url": f"{PREFIX}/calls/{call.id}"}
        return json_response(accepted, 202, location=accepted["url"], **{"preference-applied": "respond-async"})
    if isinstance(call.peer, HttpPeer) and call.peer.wants_progress:
        task = _start(request, call)
        frames = _frames(call.id, follow(task, call.peer))
        return event_stream(frames, lambda: request.services.reeve.cancel(call.id))
    return result_response(await request.services.reeve.run(call))


def result_response(result: ToolResult) -> Response:
    if isinstance(result, Failed):
        status, body = failed_result(result)
        return json_response(body, status, MEDIA_TYPE)
    return json_response(result.to_dict())


def describe_tool(spec: ToolSpec) -> ToolRow:
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description,
        "danger": _DANGERS[spec.danger],
        "category": spec.category,
        "read_only": spec.read_only,
        "idempotent": spec.idempotent,
        "server": spec.server,
        "trusted": spec.trusted,
        "source": spec.source,
        "tags": list(spec.tags),
        "tokens": round(len(json.dumps([spec.name, spec.description, dict(spec.input)])) / BYTES_PER_TOKEN),
    }


def _start(request: ApiRequest, call: ToolCall) -> Any:
    task = request.services.running.start(call)
    if task is None:
        raise Problem(429, "too many calls run in the background; wait for one to end", code=ErrorCode.LIMIT)
    return task


async def _frames(call_id: str, items: AsyncIterator[str | ToolResult]) -> AsyncIterator[bytes]:
    yield frame("started", {"call_id": call_id})
    async for item in items:
        if isinstance(item, str):
            yield frame("progress", {"call_id": call_id, "text": item})
        else:
            yield frame("result", item.to_dict())


def _matches(spec: ToolSpec, query: ToolQuery) -> bool:
    wanted = {"category": query.category, "server": query.server}
    if any(value is not None and getattr(spec, name) != value for name, value in wanted.items()):
        return False
    return query.danger is None or spec.danger.value == query.danger


def _new_calls(request: ApiRequest, calls: Sequence[OneCall], session: str | None) -> list[ToolCall]:
    """Raises Problem for a tool that the credential does not see, before any of them runs."""
    return [new_call(request, find_tool(request, each.tool).spec.name, each.args, session=session) for each in calls]
