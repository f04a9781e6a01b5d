"""Endpoints about the server: status, session, doctor, configuration and clients."""

from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from toolreeve.config.fields import setting_fields, value_at
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.serve.api.approvals import count_pending
from toolreeve.serve.api.endpoint import ApiRequest, Body, Endpoints
from toolreeve.serve.api.problems import Problem
from toolreeve.serve.api.services import Change
from toolreeve.serve.exchange import CONNECTION
from toolreeve.serve.tokens import AccessScope

system = Endpoints("system")


class StatusReport(TypedDict):
    """`head` is the number of the last record; `chain` the state of the last verification, if there was one. `pending`
    counts the questions that the credential may know of. `head`, `running` and `listeners`, which tell of everybody's
    calls, are None without the scope `approve` or `manage`."""

    version: str
    mode: str
    workspace: str
    sandbox: str
    head: int | None
    chain: str | None
    pending: int
    tools: int
    servers: int
    running: int | None
    listeners: int | None
    uptime_seconds: float
    problems: list[str]


class Session(TypedDict):
    """`csrf` goes into the header x-csrf-token of a browser's changes; empty without a browser session."""

    user: str
    role: str
    scopes: list[str]
    csrf: str
    expires: float | None


class DoctorCheck(TypedDict):
    area: str
    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    fix: str


class DoctorReport(TypedDict):
    checks: list[DoctorCheck]


class SettingRow(TypedDict):
    key: str
    value: Any
    origin: str
    description: str


class SettingList(TypedDict):
    settings: list[SettingRow]


class ClientList(TypedDict):
    clients: list[dict[str, Any]]


class HookRow(TypedDict):
    """`preview` is the change that installs it; `version` is what an installation must name."""

    client: str
    title: str
    state: Literal["installed", "in part", "absent", "unreadable"]
    events: list[str]
    file: str
    preview: str | None
    version: str
    command: str


class HookList(TypedDict):
    hooks: list[HookRow]


class ChangeBody(Body):
    version: Annotated[str, Field(min_length=1, max_length=64, description="That of the change that was shown.")]


class ClientChanged(TypedDict):
    files: list[str]


@system.get("/status")
async def show_status(request: ApiRequest) -> StatusReport:
    """The state of this server."""
    from toolreeve.core.version import VERSION

    services = request.services
    reeve = services.reeve
    whole = request.credential.sees_all
    settings = reeve.configuration.settings
    return {
        "version": VERSION,
        "mode": str(settings.policy.mode),
        "workspace": str(settings.workspace.dir),
        "sandbox": str(settings.sandbox.mode),
        "head": await reeve.audit.last() if whole else None,
        "chain": services.chain.state,
        "pending": await count_pending(request),
        "tools": len(reeve.tools),
        "servers": len(reeve.fleet),
        "running": len(reeve.internals.calls) if whole else None,
        "listeners": services.feed.listeners if whole else None,
        "uptime_seconds": round(services.now() - services.started, 1),
        "problems": [str(problem) for problem in reeve.problems]
        if AccessScope.CALL in request.credential.scopes
        else [],
    }


@system.get("/session")
async def show_session(request: ApiRequest) -> Session:
    """Who this credential is, and what it may do."""
    credential = request.credential
    return {
        "user": credential.principal.user,
        "role": credential.principal.role.value,
        "scopes": sorted(credential.scopes),
        "csrf": credential.csrf,
        "expires": credential.expires,
    }


@system.delete("/session", AccessScope.READ)
async def end_session(request: ApiRequest) -> None:
    """Log out: end this browser's session."""
    if request.credential.csrf:
        await request.services.revoke(request.credential.id, request.http.scope[CONNECTION])


@system.get("/doctor", AccessScope.CALL)
async def run_doctor(request: ApiRequest) -> DoctorReport:
    """DoctorCheck what is enforced here, what is not, and how to fix it."""
    found = await request.services.setup.doctor()
    checks: list[Any] = [{**each, "state": each["status"]} for each in found]
    return {"checks": [{key: each[key] for key in DoctorCheck.__annotations__} for each in checks]}  # type: ignore[misc]


@system.get("/config", AccessScope.CALL)
async def show_config(request: ApiRequest) -> SettingList:
    """The effective settings and the origin of each; secrets are redacted."""
    found = request.services.reeve.configuration
    redact = Redactor(found.secrets).value
    settings: list[SettingRow] = [
        {
            "key": each.key,
            "value": redact(each.shown(value_at(found.settings, path))),
            "origin": str(found.origins[each.key]),
            "description": each.field.description,
        }
        for path, each in setting_fields().items()
    ]
    return {"settings": settings}


@system.get("/clients", AccessScope.CALL)
async def list_clients(request: ApiRequest) -> ClientList:
    """The MCP clients of this machine, and whether they use Toolreeve."""
    return {"clients": [dict(each) for each in await request.services.setup.clients()]}


@system.post("/clients/{client}/adopt", AccessScope.MANAGE)
async def adopt_client(request: ApiRequest, client: str, body: ChangeBody) -> ClientChanged:
    """Move a client's MCP servers behind Toolreeve, exactly as shown. Their tools are asked about."""
    return await _change(request, "adopted", client, body, request.services.setup.adopt)


@system.get("/hooks", AccessScope.CALL)
async def list_hooks(request: ApiRequest) -> HookList:
    """The clients whose own tools a hook can decide about, and where it is installed."""
    found: Any = [dict(each) for each in await request.services.setup.hooks()]
    return {"hooks": found}


@system.post("/hooks/{client}/install", AccessScope.MANAGE)
async def install_hook(request: ApiRequest, client: str, body: ChangeBody) -> ClientChanged:
    """Install the hook in a client, exactly as shown."""
    return await _change(request, "hook installed", client, body, request.services.setup.install)


async def _change(request: ApiRequest, what: str, client: str, body: ChangeBody, apply: Change) -> ClientChanged:
    files = await apply(client, body.version)
    if files is None:
        raise Problem(409, f"what would change for {client!r:.100} is no longer what was shown; look at it again")
    user = request.credential.principal.user
    await request.services.reeve.internals.journal.note("setup", {what: client, "files": list(files), "user": user})
    return {"files": list(files)}
