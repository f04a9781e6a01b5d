"""Checks of `doctor` that every control is active, by trying what it must refuse.

No file is opened for a probe, and only the state directory is changed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.cli.doctor.checks import Check, Status
from toolreeve.cli.doctor.sandbox import sandbox
from toolreeve.cli.options import Options
from toolreeve.core.call import ToolCall
from toolreeve.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    from toolreeve.config import Configuration
    from toolreeve.core.tool import ToolSpec
    from toolreeve.core.verdict import Verdict
    from toolreeve.guard.files.workspace import WorkspaceFiles
    from toolreeve.runtime.toolreeve import Toolreeve
    from toolreeve.upstream.status import ServerStatus

OUTSIDE = ("/etc/shadow", "../" * 40 + "etc/shadow", "/proc/self/root/etc/shadow", "a\0b")
SENSITIVE = (".env", ".ssh/id_rsa")
TOKEN = "ghp_" + "x" * 36


def files(invocation: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.cli.runtime import new_workspace

    with new_workspace(invocation) as workspace:
        yield _refused("paths outside", workspace, OUTSIDE)
        named = found.settings.workspace.sensitive_allow
        yield _refused("sensitive files", workspace, SENSITIVE, allowed=named)
        state = Path(found.settings.state.dir)
        yield _refused("own state", workspace, [str(state / "toolreeve.db")])
        yield _refused("own settings", workspace, [str(found.project_file)], change=True)
        if found.settings.workspace.allow_write:
            yield Check("control", "writing", Status.OK, "on; every change keeps what it replaced, for undo")
        else:
            yield asyncio.run(_write_refused(workspace))


async def _write_refused(workspace: "WorkspaceFiles") -> Check:
    """A write that is not refused is taken back at once."""
    probe = ToolCall(tool="write_file", args={}, origin="doctor")
    name = f".toolreeve-probe-{probe.id}"
    try:
        await workspace.write(probe, name, b"")
    except ToolError as refusal:
        if refusal.code is ErrorCode.WRITE_DISABLED:
            return Check("control", "writing", Status.OK, "off; a write was tried and refused")
        raise
    await workspace.delete(probe, name)
    return Check("control", "writing", Status.FAIL, "workspace.allow_write is false, but a write was not refused")


def _refused(
    name: str, workspace: "WorkspaceFiles", paths: Sequence[str], *, change: bool = False, allowed: Sequence[str] = ()
) -> Check:
    open_ones = [path for path in paths if workspace.explain(path, change=change).decision != "deny"]
    if not open_ones:
        return Check("control", name, Status.OK, "refused, as they should be")
    if allowed:
        return Check("control", name, Status.WARN, f"allowed by workspace.sensitive_allow: {', '.join(allowed)}")
    return Check("control", name, Status.FAIL, f"not refused: {', '.join(map(repr, open_ones))}")


def policy(invocation: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.cli.runtime import new_runtime

    runtime = new_runtime(invocation)
    try:
        yield _mode(found)
        yield _decisions(runtime)
        limit = found.settings.policy.budget_limit
        text = "no limit set" if limit is None else f"${limit:.2f} for all calls together"
        yield Check("control", "budget", Status.OK, text)
    finally:
        runtime.files.close()


def _mode(found: "Configuration") -> Check:
    mode, origin = found.settings.policy.mode, found.origins["policy.mode"]
    if mode == "bypass":
        return Check("control", "mode", Status.WARN, f"bypass ({origin}): only the floor refuses anything")
    return Check("control", "mode", Status.OK, f"{mode} ({origin})")


def _decisions(runtime: "Toolreeve") -> Check:
    """Every tool gets an answer to a plain call of it; how many of each kind."""
    counts = Counter(_verdict(runtime, bound.spec).decision.word for bound in runtime.tools)
    text = ", ".join(f"{counts[word]} {word}" for word in ("allow", "ask", "deny"))
    return Check("control", "decisions", Status.OK, f"{len(runtime.tools)} tools: {text}")


def _verdict(runtime: "Toolreeve", spec: "ToolSpec") -> "Verdict":
    properties = spec.input.get("properties", {})
    args = {name: _sample(properties.get(name, {})) for name in spec.input.get("required", ())}
    return runtime.explain(spec.name, args).verdict


def _sample(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "array":
        return [_sample(schema.get("items", {}))]
    if kind == "object":
        return {name: _sample(schema.get("properties", {}).get(name, {})) for name in schema.get("required", ())}
    return {"integer": 1, "number": 1.0, "boolean": False, "null": None}.get(kind, "probe")


def record(invocation: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.core.secrets.redactor import Redactor

    clean = TOKEN not in Redactor(found.secrets).text(f"token {TOKEN}")
    count = len(found.secrets)
    text = f"{count} value{'s' * (count != 1)} of the environment, and whatever looks like a key"
    yield Check("control", "redaction", Status.OK if clean else Status.FAIL, text)
    yield asyncio.run(_audit(invocation))


async def _audit(invocation: Options) -> Check:
    from toolreeve.cli.runtime import new_runtime, no_servers

    async with new_runtime(invocation, servers=no_servers) as runtime:
        verified = await runtime.audit.verify()
    if verified.ok:
        return Check("control", "audit", Status.OK, f"{verified.records} records, hash chain intact")
    return Check("control", "audit", Status.FAIL, str(verified.problems[0]), fix="run `toolreeve audit verify`")


def servers(invocation: Options, found: "Configuration") -> Iterator[Check]:
    """Each MCP server, connected to."""
    if found.mcp_servers:
        yield from asyncio.run(_servers(invocation))


async def _servers(invocation: Options) -> list[Check]:
    from toolreeve.cli.runtime import new_runtime

    async with new_runtime(invocation) as runtime:
        await runtime.fleet.settled()
        return [_server(status) for status in runtime.fleet.status()]


def _server(status: "ServerStatus") -> Check:
    if status.state == "off":
        return Check("server", status.name, Status.OK, "turned off")
    if status.state != "up":
        fix = f"run `toolreeve servers test {status.name}`"
        return Check("server", status.name, Status.WARN, f"{status.state}: {status.problem}", fix=fix)
    if status.changed:
        changed = f"{len(status.changed)} of {status.tools} tools changed since they were first seen, and are refused"
        return Check("server", status.name, Status.WARN, changed, fix=f"run `toolreeve servers accept {status.name}`")
    left_out = f", {len(status.problems)} left out" if status.problems else ""
    state = Status.WARN if status.problems else Status.OK
    fix = f"run `toolreeve servers show {status.name}`" if status.problems else ""
    return Check("server", status.name, state, f"{status.tools} tools{left_out}", fix=fix)


def serving(_: Options, found: "Configuration") -> Iterator[Check]:
    """What `toolreeve serve` holds its clients to."""
    from toolreeve.serve.limits import describe, read_limits

    yield Check("control", "serve limits", Status.OK, "; ".join(describe(read_limits(found.settings.serve))))


EXAMINATIONS: Sequence[Callable[[Options, "Configuration"], Iterator[Check]]] = (
    files,
    sandbox,
    policy,
    record,
    serving,
    servers,
)
