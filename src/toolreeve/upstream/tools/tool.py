"""How does a tool of a server stand on our road? As a `BoundTool` whose `run` asks the server.

What a server says about its tools lowers no danger unless the user trusts the server; what the user says about a tool
always counts. A tool that is not what it was pinned as is shown as it was, and refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.limits import UNLIMITED, Limits
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import Arguments, BoundTool, Run, Screen, ToolSpec
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.tools.definition import input_of, output_of
from toolreeve.upstream.tools.diff import parts
from toolreeve.upstream.tools.names import relay_name
from toolreeve.upstream.tools.output_schema import OutputSchema
from toolreeve.upstream.tools.pins import Definition, ToolChanged
from toolreeve.upstream.tools.result import UNTRUSTED, read_call, read_other
from toolreeve.upstream.upstream import Upstream

CATEGORY = "mcp"
LONGEST_DESCRIPTION = 16_000
_OBJECT: Mapping[str, Any] = {"type": "object"}


def new_tool(name: str, definition: Definition, upstream: Upstream, screen: Screen | None = None) -> BoundTool:
    """Raises Unusable for a definition that cannot be one."""
    server = upstream.spec
    schema = input_of(definition)
    said = server.danger_of(definition["name"])
    read_only, idempotent, danger = _judge(definition, trusted=server.trusted, said=said)
    spec = ToolSpec(
        name=name,
        description=(definition.get("description") or definition.get("title") or name)[:LONGEST_DESCRIPTION],
        input=definition["inputSchema"],
        output=output_of(definition),
        danger=danger,
        category=CATEGORY,
        read_only=read_only,
        idempotent=idempotent,
        limits=UNLIMITED if server.timeout is None else Limits(timeout=server.timeout),
        source=f"server {server.name} ({server.source})",
        server=server.name,
        trusted=server.trusted or said is not None,
        declared=definition,
    )
    promised = None if spec.output is None else OutputSchema(spec.output)
    run = _caller(definition["name"], upstream, promised, repeatable=read_only or idempotent)
    return BoundTool(spec=spec, run=run, input=schema, inline=True, screen=screen, blocking=screen is not None)


def _judge(definition: Definition, *, trusted: bool, said: DangerLevel | None) -> tuple[bool, bool, DangerLevel]:
    """Whether it only reads, whether doing it twice does no more than once, and how dangerous it is."""
    hints = (definition.get("annotations") or {}) if trusted else {}
    reads = hints.get("readOnlyHint") is True
    danger = DangerLevel.HIGH
    if reads:
        danger = DangerLevel.LOW
    elif hints.get("destructiveHint") is False:
        danger = DangerLevel.MEDIUM
    if said is not None:
        danger, reads = said, reads or said is DangerLevel.SAFE
    return reads, reads or hints.get("idempotentHint") is True, danger


def _caller(tool: str, upstream: Upstream, promised: OutputSchema | None, *, repeatable: bool) -> Run:
    labels = labels_of(upstream.spec)

    async def run(args: dict[str, Any], context: Context) -> Output:
        params = {"name": tool, "arguments": args}
        answer = await upstream.carry("tools/call", params, context, repeatable=repeatable)
        output = read_call(answer, labels, promised)
        if output.diagnostics is not None:
            upstream.note_odd(tool, output.diagnostics)
        return output

    return run


def labels_of(server: ServerSpec) -> tuple[str, ...]:
    return () if server.trusted else UNTRUSTED


def refuse_changed(change: ToolChanged, server: str, is_accepted: Callable[[], bool]) -> Screen:
    """Refuses every call until a person has accepted the change, here or in another process.

    A model reads the refusal, so it tells where the change is and nothing of what is said there now.
    """
    changed = parts(change)

    def screen(_: Arguments, __: Context) -> None:
        if is_accepted():
            return
        raise ToolError(
            ErrorCode.TOOL_CHANGED,
            f"the definition of the tool {change.tool!r} changed since it was first seen ({', '.join(changed)});"
            " a person must look at the change and accept it",
            suggestions=(f"toolreeve servers accept {server}",),
            detail={"server": server, "tool": change.tool, "changed": list(changed)},
        )

    return screen


def new_relay(method: str, upstream: Upstream) -> BoundTool:
    """The hidden tool that takes a request other than a call of a tool down the road.

    A place that a server does not list could carry anything out to it, so where it is not trusted that is asked about.
    """
    server = upstream.spec

    def assess(args: Arguments) -> DangerLevel:
        return DangerLevel.LOW if upstream.lists(args.get("uri")) else DangerLevel.HIGH

    spec = ToolSpec(
        name=relay_name(server.name, method),
        description=f"{method} of the server {server.name}",
        input=_OBJECT,
        danger=DangerLevel.LOW,
        category=CATEGORY,
        read_only=True,
        idempotent=True,
        limits=UNLIMITED if server.timeout is None else Limits(timeout=server.timeout),
        source=f"server {server.name} ({server.source})",
        server=server.name,
        hidden=True,
    )
    judged = None if server.trusted or not method.startswith("resources/") else assess
    return BoundTool(spec=spec, run=_relayer(method, upstream), input=Schema(_OBJECT), inline=True, assess=judged)


def _relayer(method: str, upstream: Upstream) -> Run:
    labels = labels_of(upstream.spec)

    async def run(args: dict[str, Any], context: Context) -> Output:
        return read_other(await upstream.carry(method, args, context, repeatable=True), labels)

    async def subscribe(args: dict[str, Any], context: Context) -> Output:
        ends = method == "resources/unsubscribe"
        return read_other(await upstream.subscribe(args, context.call, ends=ends), labels)

    return subscribe if method in ("resources/subscribe", "resources/unsubscribe") else run
