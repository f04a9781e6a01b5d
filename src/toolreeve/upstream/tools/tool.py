"""Upstream tools as `BoundTool`s whose `run` calls the server.

A server's hints lower no danger unless the user trusts the server; what the user says about a tool always counts. A
tool that differs from its pin is shown as pinned, and refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.labels import UNTRUSTED
from toolreeve.core.limits import UNLIMITED, Limits
from toolreeve.core.result import Output
from toolreeve.core.schema import Schema
from toolreeve.core.tool import Arguments, BoundTool, Run, Screen, ToolSpec
from toolreeve.upstream.server_spec import ServerSpec
from toolreeve.upstream.tools.definition import input_of, output_of
from toolreeve.upstream.tools.diff import changed_places
from toolreeve.upstream.tools.names import relay_name
from toolreeve.upstream.tools.output_schema import OutputSchema
from toolreeve.upstream.tools.pins import Definition, ToolChanged
from toolreeve.upstream.tools.result import read_call, read_other
from toolreeve.upstream.upstream import Upstream

CATEGORY = "mcp"
MAX_DESCRIPTION = 16_000
_OBJECT: Mapping[str, Any] = {"type": "object"}


def new_tool(name: str, definition: Definition, upstream: Upstream, screen: Screen | None = None) -> BoundTool:
    """Raises InvalidDefinition."""
    server = upstream.spec
    schema = input_of(definition)
    user_danger = server.danger_of(definition["name"])
    read_only, idempotent, danger = _assess(definition, trusted=server.trusted, user_danger=user_danger)
    spec = ToolSpec(
        name=name,
        description=(definition.get("description") or definition.get("title") or name)[:MAX_DESCRIPTION],
        input=definition["inputSchema"],
        output=output_of(definition),
        danger=danger,
        category=CATEGORY,
        read_only=read_only,
        idempotent=idempotent,
        limits=UNLIMITED if server.timeout is None else Limits(timeout=server.timeout),
        source=f"server {server.name} ({server.source})",
        server=server.name,
        trusted=server.trusted or user_danger is not None,
        declared=definition,
    )
    output_schema = None if spec.output is None else OutputSchema(spec.output)
    run = _new_run(definition["name"], upstream, output_schema, repeatable=read_only or idempotent)
    return BoundTool(spec=spec, run=run, input=schema, inline=True, screen=screen)


def _assess(
    definition: Definition, *, trusted: bool, user_danger: DangerLevel | None
) -> tuple[bool, bool, DangerLevel]:
    """Whether it is read-only, whether it is idempotent, and its danger."""
    hints = (definition.get("annotations") or {}) if trusted else {}
    read_only = hints.get("readOnlyHint") is True
    danger = DangerLevel.HIGH
    if read_only:
        danger = DangerLevel.LOW
    elif hints.get("destructiveHint") is False:
        danger = DangerLevel.MEDIUM
    if user_danger is not None:
        danger = user_danger
        read_only = read_only or user_danger is DangerLevel.SAFE
    idempotent = read_only or hints.get("idempotentHint") is True
    return read_only, idempotent, danger


def _new_run(tool: str, upstream: Upstream, output_schema: OutputSchema | None, *, repeatable: bool) -> Run:
    labels = labels_of(upstream.spec)

    async def run(args: dict[str, Any], context: Context) -> Output:
        params = {"name": tool, "arguments": args}
        result = await upstream.request("tools/call", params, context, repeatable=repeatable)
        output = read_call(result, labels, output_schema)
        if output.diagnostics is not None:
            upstream.report_mismatch(tool, output.diagnostics)
        return output

    return run


def labels_of(server: ServerSpec) -> tuple[str, ...]:
    return () if server.trusted else UNTRUSTED


def refuse_changed(change: ToolChanged, server: str, is_accepted: Callable[[], bool]) -> Screen:
    """Refuses every call until a person has accepted the change, here or in another process.

    A model reads the refusal, so it names the changed places and nothing of what is offered there now.
    """
    changed = changed_places(change)

    def screen(_: Arguments, __: Context) -> None:
        if is_accepted():
            return
        raise ToolError(
            ErrorCode.TOOL_CHANGED,
            f"the definition of the tool {change.tool!r} changed since it was first seen ({', '.join(changed)});"
            " a person must review and accept the change",
            suggestions=(f"toolreeve servers accept {server}",),
            detail={"server": server, "tool": change.tool, "changed": list(changed)},
        )

    return screen


def new_relay(method: str, upstream: Upstream) -> BoundTool:
    """The hidden tool that takes a request other than a tool call down the road.

    The URI of a resource that the server does not list could carry data out to it, so with an untrusted server that is
    HIGH danger.
    """
    server = upstream.spec

    def assess(args: Arguments) -> DangerLevel:
        return DangerLevel.LOW if upstream.lists_resource(args.get("uri")) else DangerLevel.HIGH

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
    is_assessed = method.startswith("resources/") and not server.trusted
    return BoundTool(
        spec=spec,
        run=_new_relay_run(method, upstream),
        input=Schema(_OBJECT),
        inline=True,
        assess=assess if is_assessed else None,
    )


def _new_relay_run(method: str, upstream: Upstream) -> Run:
    labels = labels_of(upstream.spec)

    async def run(args: dict[str, Any], context: Context) -> Output:
        return read_other(await upstream.request(method, args, context, repeatable=True), labels)

    async def subscribe(args: dict[str, Any], context: Context) -> Output:
        ends = method == "resources/unsubscribe"
        return read_other(await upstream.subscribe(args, context.call, ends=ends), labels)

    return subscribe if method in ("resources/subscribe", "resources/unsubscribe") else run
