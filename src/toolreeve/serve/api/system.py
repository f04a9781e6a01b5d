"""Endpoints about the server: status, session, doctor, configuration and clients."""

from typing import Any, Literal

from typing_extensions import TypedDict

from toolreeve.config.fields import setting_fields, value_at
from toolreeve.core.secrets.redactor import Redactor
from toolreeve.serve.api.approvals import count_pending
from toolreeve.serve.api.endpoint import ApiRequest, Endpoints
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


@system.get("/status")
async def show_status(request: ApiRequest) -> StatusReport:
    """The state of this server."""
    from importlib.metadata import version

    services = request.services
    reeve = services.reeve
    whole = request.credential.sees_all
    settings = reeve.configuration.settings
    return {
        "version": version("toolreeve"),
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
    found = await request.services.doctor()
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
    return {"clients": [dict(each) for each in await request.services.clients()]}
