"""Tools that report on machine, time, models and audit log."""

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from toolreeve.core import json
from toolreeve.core.call import RecordScope
from toolreeve.core.context import Context
from toolreeve.core.danger import DangerLevel
from toolreeve.core.effects import Effect, EffectKind, Reach
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.files import Files
from toolreeve.core.result import Output
from toolreeve.core.suggest import find_similar
from toolreeve.core.tool import Arguments, tool
from toolreeve.tools.calculate import calculate
from toolreeve.tools.effects import nothing

MAX_ENTRIES = 500
ENTRY_FIELDS = (
    "call_id",
    "timestamp",
    "tool",
    "user",
    "role",
    "session",
    "workspace",
    "origin",
    "client",
    "decision",
    "approved_by",
    "success",
    "code",
    "message",
    "duration_ms",
    "waited_ms",
    "attempts",
    "cached",
    "truncated",
    "labels",
    "output_length",
)
"""What a caller is shown of its own calls."""
MAX_AUDIT_BYTES = 256 * 1024
_GIB = 1024**3
_KERNEL_FACTS = ("/proc/meminfo", "/proc/loadavg")


def _machine_effects(_: Arguments, files: Files) -> Sequence[Effect]:
    """Facts of the kernel, and the free space on the disk of the workspace."""
    looked_at = (*_KERNEL_FACTS, files.root)
    return tuple(Effect(EffectKind.READ, path, Reach.NAMES) for path in looked_at)


def _accept(_: Arguments, __: Context) -> None:
    """Accepts every call: no argument is a path, so the path guard does not apply."""


@tool(danger=DangerLevel.SAFE, category="system", effects=_machine_effects, screen=_accept, source="toolreeve")
def get_system_info(context: Context) -> Output:
    """Return the operating system, processors, memory, disk, Python version and workspace of this machine."""
    import psutil

    memory = psutil.virtual_memory()
    workspace = context.files.root
    disk = psutil.disk_usage(workspace)
    return Output(
        data={
            "os": platform.system(),
            "os_release": platform.release(),
            "architecture": platform.machine(),
            "cpu_count": os.cpu_count() or 1,
            "load_average": [round(load, 2) for load in psutil.getloadavg()],
            "memory_total_gb": _gib(memory.total),
            "memory_available_gb": _gib(memory.available),
            "memory_percent": memory.percent,
            "disk_total_gb": _gib(disk.total),
            "disk_free_gb": _gib(disk.free),
            "disk_percent": disk.percent,
            "python_version": platform.python_version(),
            "workspace": workspace,
        }
    )


def _gib(size: int) -> float:
    return round(size / _GIB, 2)


@tool(danger=DangerLevel.SAFE, category="utility", effects=nothing, inline=True, source="toolreeve")
async def get_datetime(context: Context, timezone: str | None = None) -> Output:
    """Return the current date and time: as ISO 8601 with offset, in parts, and as a Unix timestamp.

    Args:
        timezone: An IANA name such as `Europe/Berlin`, or `UTC`. The machine's own by default.
    """
    timestamp = context.now()
    zone = _zone(timezone) if timezone else None
    moment = datetime.fromtimestamp(timestamp, zone or UTC)
    if zone is None:
        moment = moment.astimezone()
    text = moment.isoformat(timespec="seconds")
    return Output(
        data={
            "datetime": text,
            "date": moment.date().isoformat(),
            "time": moment.time().isoformat(timespec="seconds"),
            "timestamp": timestamp,
            "timezone": timezone or moment.tzname() or "local",
            "utc_offset": text[19:],
            "weekday": moment.strftime("%A"),
        },
        main=text,
    )


def _zone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z"):
        return UTC
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = sorted(zoneinfo.available_timezones())
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"/timezone: {name[:100]!r} is not a known time zone; use an IANA name such as 'Europe/Berlin', or 'UTC'",
            suggestions=find_similar(name, known),
        ) from None


# Checked in this order: an embedding model of a cloud provider is an embedding model.
CATEGORIES: Mapping[str, tuple[str, ...]] = {
    "embedding": ("embed", "bge-", "multilingual-e5", "gte-", "minilm", "rerank"),
    "cloud": ("cloud", "moonshot", "kimi", "gpt-3", "gpt-4", "gpt-5", "chatgpt", "claude", "gemini", "grok"),
    "vision": ("llava", "vision", "-vl", "vl:", "moondream", "minicpm-v", "cogvlm", "pixtral"),
    "code": ("code", "coder", "codestral", "devstral"),
}
GENERAL = "general"


def categorise(model: str) -> str:
    """general, code, vision, embedding or cloud, by the model's name."""
    name = model.lower()
    for category, signs in CATEGORIES.items():
        if any(sign in name for sign in signs):
            return category
    return GENERAL


@tool(danger=DangerLevel.SAFE, category="system", effects=nothing, source="toolreeve")
async def list_llm_models(context: Context) -> Output:
    """List the language models of the configured providers, grouped as general, code, vision, embedding and cloud."""
    listing = await context.models.list()
    listed = listing.models
    groups: dict[str, list[str]] = {category: [] for category in (GENERAL, "code", "vision", "embedding", "cloud")}
    for model in sorted({model for models in listed.values() for model in models}):
        groups[categorise(model)].append(model)
    data: dict[str, Any] = {
        "models": groups,
        "count": sum(map(len, groups.values())),
        "providers": {provider: len(models) for provider, models in listed.items()},
    }
    if listing.problems:
        data["problems"] = dict(listing.problems)
    elif not listed:
        data["note"] = "no model provider is configured: set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or "
        data["note"] += "OLLAMA_BASE_URL"
    return Output(data=data, main=groups)


_AUDIT_FILTERS = {
    "tool": "Only calls of this tool.",
    "session": "Only calls of this session.",
    "user": "Only calls by this user.",
    "code": "Only calls that failed with this error code, such as `E_DENIED`.",
    "since": "Only calls from this time on: ISO 8601, or seconds since the epoch.",
    "until": "Only calls before this time.",
}


@tool(
    danger=DangerLevel.SAFE,
    category="system",
    effects=nothing,  # the audit log is not a file to a tool: no path leads to it
    source="toolreeve",
    input_schema={
        "type": "object",
        "properties": {
            "last_n": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_ENTRIES,
                "default": 20,
                "description": "How many entries, newest first.",
            },
            **{name: {"type": "string", "description": note} for name, note in _AUDIT_FILTERS.items()},
            "success": {"type": "boolean", "description": "Only calls that succeeded, or only those that failed."},
        },
        "required": [],
        "additionalProperties": False,
    },
)
async def get_audit_log(context: Context, last_n: int = 20, **filters: Any) -> Output:
    """Show the newest calls of this session in this workspace, without arguments: when, which tool, how it was decided,
    how it ended. An admin sees those of everybody.
    """
    wanted = {name: str(value).lower() if isinstance(value, bool) else value for name, value in filters.items()}
    wanted |= _own(context, wanted)
    try:
        entries = [dict(entry) for entry in await context.audit.recent(last_n=last_n, filters=wanted)]
    except ToolError:
        raise
    except Exception as problem:
        raise ToolError(ErrorCode.AUDIT_ERROR, f"the audit log could not be read: {problem}") from problem
    if context.call.sees is not RecordScope.ALL:
        entries = [{name: entry[name] for name in ENTRY_FIELDS if name in entry} for entry in entries]
    shown = _fitting(entries)
    data: dict[str, Any] = {"entries": shown, "count": len(shown)}
    if len(shown) < len(entries):
        data["next"] = (
            f"get_audit_log(last_n={max(1, len(shown))}), narrowed by tool, session, user, code, success or time"
        )
    return Output(data=data, main=shown, truncated=len(shown) < len(entries))


def _own(context: Context, asked: Mapping[str, str]) -> dict[str, str]:
    """The filters that hold a caller to its own calls. Raises ToolError for a question about those of others."""
    call = context.call
    if call.sees is RecordScope.ALL:
        return {}
    own = {"user": call.principal.user, "workspace": context.files.root}
    if call.sees is RecordScope.SESSION:
        own["session"] = call.session
    if foreign := [name for name, value in own.items() if asked.get(name, value) != value]:
        raise ToolError(ErrorCode.DENIED, f"/{foreign[0]}: only an admin may read about calls of others")
    return own


def _fitting(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the first entries as a result may hold."""
    room = MAX_AUDIT_BYTES
    for index, entry in enumerate(entries):
        room -= len(json.dumps(entry))
        if room < 0:
            return entries[:index]
    return entries


SYSTEM_TOOLS = (get_system_info, get_datetime, list_llm_models, get_audit_log, calculate)
