"""Checks of `doctor` on every control: it must refuse a probe.

No file is opened for a probe, and only the state directory is changed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolreeve.cli.doctor.checks import Check, Status
from toolreeve.cli.doctor.sandbox import check_sandbox
from toolreeve.cli.options import Options
from toolreeve.cli.output import count
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


def check_files(options: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.cli.runtime import new_workspace

    with new_workspace(options) as workspace:
        yield _check_refused("paths outside", workspace, OUTSIDE)
        allowed = found.settings.workspace.sensitive_allow
        yield _check_refused("sensitive files", workspace, SENSITIVE, allowed=allowed)
        state = Path(found.settings.state.dir)
        yield _check_refused("own state", workspace, [str(state / "toolreeve.db")])
        yield _check_refused("own settings", workspace, [str(found.project_file)], change=True)
        if found.settings.workspace.allow_write:
            yield Check("control", "writing", Status.OK, "on; every change can be undone")
        else:
            yield asyncio.run(_check_write_refused(workspace))


async def _check_write_refused(workspace: "WorkspaceFiles") -> Check:
    """A write that is not refused is undone at once."""
    probe = ToolCall(tool="write_file", args={}, origin="doctor")
    name = f".toolreeve-probe-{probe.id}"
    try:
        await workspace.write(probe, name, b"")
    except ToolError as refusal:
        if refusal.code is ErrorCode.WRITE_DISABLED:
            return Check("control", "writing", Status.OK, "off; a test write was refused")
        raise
    await workspace.delete(probe, name)
    return Check("control", "writing", Status.FAIL, "workspace.allow_write is false, but a write was not refused")


def _check_refused(
    name: str, workspace: "WorkspaceFiles", paths: Sequence[str], *, change: bool = False, allowed: Sequence[str] = ()
) -> Check:
    not_refused = [path for path in paths if workspace.explain(path, change=change).decision != "deny"]
    if not not_refused:
        return Check("control", name, Status.OK, "refused")
    if allowed:
        return Check("control", name, Status.WARN, f"allowed by workspace.sensitive_allow: {', '.join(allowed)}")
    return Check("control", name, Status.FAIL, f"not refused: {', '.join(map(repr, not_refused))}")


def check_policy(options: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.cli.runtime import new_runtime

    runtime = new_runtime(options)
    try:
        yield _check_mode(found)
        yield _check_decisions(runtime)
        limit = found.settings.policy.budget_limit
        text = "no limit (policy.budget_limit)" if limit is None else f"${limit:.2f} for all calls together"
        yield Check("control", "budget", Status.OK, text)
    finally:
        runtime.internals.files.close()


def _check_mode(found: "Configuration") -> Check:
    mode = found.settings.policy.mode
    origin = found.origins["policy.mode"]
    if mode == "bypass":
        return Check("control", "mode", Status.WARN, f"bypass ({origin}): only the floor refuses anything")
    return Check("control", "mode", Status.OK, f"{mode} ({origin})")


def _check_decisions(runtime: "Toolreeve") -> Check:
    """Counts the decisions about a minimal call of every tool."""
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


def check_record(options: Options, found: "Configuration") -> Iterator[Check]:
    from toolreeve.core.secrets.redactor import Redactor

    is_redacted = TOKEN not in Redactor(found.secrets).text(f"token {TOKEN}")
    text = f"{count(len(found.secrets), 'environment value')}, and anything that looks like a key"
    yield Check("control", "redaction", Status.OK if is_redacted else Status.FAIL, text)
    yield asyncio.run(_check_audit(options))


async def _check_audit(options: Options) -> Check:
    from toolreeve.cli.runtime import new_runtime, no_servers

    async with new_runtime(options, servers=no_servers) as runtime:
        verified = await runtime.audit.verify()
    if verified.ok:
        found = f"{count(verified.records, 'record')}, hash chain intact, in {runtime.audit.place}"
        return Check("control", "audit", Status.OK, found)
    return Check("control", "audit", Status.FAIL, str(verified.problems[0]), fix="run `toolreeve audit verify`")


def check_servers(options: Options, found: "Configuration") -> Iterator[Check]:
    """Connects to each MCP server."""
    if found.mcp_servers:
        yield from asyncio.run(_check_connections(options))


async def _check_connections(options: Options) -> list[Check]:
    from toolreeve.cli.runtime import new_runtime

    async with new_runtime(options) as runtime:
        await runtime.fleet.settled()
        return [_check_server(status) for status in runtime.fleet.status()]


def _check_server(status: "ServerStatus") -> Check:
    if status.state == "off":
        return Check("server", status.name, Status.OK, "turned off (enabled = false)")
    if status.state != "up":
        fix = f"run `toolreeve servers test {status.name}`"
        return Check("server", status.name, Status.WARN, f"{status.state}: {status.problem}", fix=fix)
    if status.changed:
        changed = f"{len(status.changed)} of {count(status.tools, 'tool')} changed since first seen and are refused"
        return Check("server", status.name, Status.WARN, changed, fix=f"run `toolreeve servers accept {status.name}`")
    tools = count(status.tools, "tool")
    if status.problems:
        fix = f"run `toolreeve servers show {status.name}`"
        return Check("server", status.name, Status.WARN, f"{tools}, {len(status.problems)} left out", fix=fix)
    return Check("server", status.name, Status.OK, tools)


def check_serve(_: Options, found: "Configuration") -> Iterator[Check]:
    """The quotas of `toolreeve serve`, and whether a server that runs is of this version."""
    from toolreeve.core.version import VERSION
    from toolreeve.serve.limits import describe, read_limits
    from toolreeve.serve.running_server import find_running

    yield Check("control", "serve limits", Status.OK, "; ".join(describe(read_limits(found.settings.serve))))
    running = find_running(Path(found.settings.state.dir))
    if running is not None and running.version == VERSION:
        yield Check("server", "toolreeve serve", Status.OK, f"runs at {running.url}")
    elif running is not None:
        other = f"runs at {running.url}: version {running.version}, this program is {VERSION}"
        yield Check("server", "toolreeve serve", Status.WARN, other, fix="restart `toolreeve serve`")
    if found.settings.state.url:
        shared = bool(found.settings.mcp.state_key)
        what = "MCP sessions and answers go on" if shared else "no MCP session or answer goes on"
        fix = "" if shared else "set mcp.state_key to one secret for all gateways"
        yield Check("control", "several gateways", Status.OK if shared else Status.WARN, f"{what} elsewhere", fix=fix)


def check_workers(_: Options, found: "Configuration") -> Iterator[Check]:
    """Only if [workers] is set: NATS answers, and each pool has workers of this version."""
    pools = found.settings.workers.pools
    if not pools:
        return
    from toolreeve.core.version import VERSION
    from toolreeve.runtime.remote import find_fleet

    fleet = asyncio.run(find_fleet(found))
    yield Check("workers", "nats", Status.OK, f"{fleet['nats']}; limits are {found.settings.workers.limits}")
    for pool in pools:
        here = [each for each in fleet["workers"] if each["pool"] == pool]
        others = sorted({each["version"] for each in here} - {VERSION})
        text = f"{count(len(here), 'worker')}, {count(fleet['waiting'][pool], 'call')} waiting"
        if not here:
            yield Check("workers", pool, Status.WARN, text, fix=f"start `toolreeve worker --pool {pool}`")
        elif others:
            yield Check("workers", pool, Status.WARN, f"{text}; version {', '.join(others)}", fix="use one version")
        else:
            yield Check("workers", pool, Status.OK, text)


CONTROLS: Mapping[str, Callable[[Options, "Configuration"], Iterator[Check]]] = {
    "files": check_files,
    "sandbox": check_sandbox,
    "policy": check_policy,
    "record": check_record,
    "serve": check_serve,
    "servers": check_servers,
    "workers": check_workers,
}
