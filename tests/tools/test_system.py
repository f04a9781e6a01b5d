import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.core.call import Principal, RecordScope, Role, ToolCall
from toolreeve.core.context import Context, ModelListing
from toolreeve.core.danger import DangerLevel
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Output
from toolreeve.core.tool import AnyFunctionTool, bind
from toolreeve.tools.system import (
    SYSTEM_TOOLS,
    categorise,
    get_audit_log,
    get_datetime,
    get_system_info,
    list_llm_models,
)

ADMIN = Principal(user="root", role=Role.ADMIN)
NOON = 1769608800.25  # 2026-01-28T14:00:00.250Z


@dataclass
class Log:
    """An audit log that is a list, and remembers what it was asked."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    problem: Exception | None = None
    asked: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)

    async def recent(self, *, last_n: int, filters: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        self.asked.append((last_n, filters))
        if self.problem:
            raise self.problem
        return self.entries[:last_n]


@dataclass
class Models:
    known: Mapping[str, Sequence[str]] = field(default_factory=dict)

    async def list(self) -> ModelListing:
        return ModelListing(models=self.known)


@dataclass
class Capabilities:
    """All that these tools may see, and nothing else."""

    root: str
    audit: Log
    models: Models

    @property
    def files(self) -> "Capabilities":
        return self

    def now(self) -> float:
        return NOON


def run(
    tool: AnyFunctionTool,
    /,
    *,
    root: Path | None = None,
    audit: Log | None = None,
    models: Models | None = None,
    principal: Principal = ADMIN,
    **args: Any,
) -> Output:
    seen = Capabilities(root=str(root), audit=audit or Log(), models=models or Models())
    bound = bind(tool)
    context = Context(ToolCall(tool=tool.name, args=args, principal=principal), seen)  # type: ignore[arg-type]

    async def travel() -> Output:
        return await bound.run(bound.input.parse(args), context)

    return asyncio.run(travel())


def test_every_system_tool_is_safe_and_only_looks() -> None:
    assert {tool.name: (tool.spec.danger, tool.spec.read_only, tool.spec.category) for tool in SYSTEM_TOOLS} == {
        "get_system_info": (DangerLevel.SAFE, True, "system"),
        "get_datetime": (DangerLevel.SAFE, True, "utility"),
        "list_llm_models": (DangerLevel.SAFE, True, "system"),
        "get_audit_log": (DangerLevel.SAFE, True, "system"),
        "calculate": (DangerLevel.SAFE, True, "utility"),
    }


def test_system_info_describes_this_machine(tmp_path: Path) -> None:
    data = run(get_system_info, root=tmp_path).data

    assert data["cpu_count"] == psutil.cpu_count()
    assert data["memory_total_gb"] == round(psutil.virtual_memory().total / 1024**3, 2)
    assert data["workspace"] == str(tmp_path)
    assert {"os", "disk_total_gb", "disk_free_gb", "python_version"} <= set(data)


def test_datetime_is_in_the_requested_zone() -> None:
    output = run(get_datetime, timezone="Asia/Kolkata")

    assert output.main == "2026-01-28T19:30:00+05:30"
    assert output.data == {
        "datetime": "2026-01-28T19:30:00+05:30",
        "date": "2026-01-28",
        "time": "19:30:00",
        "timestamp": NOON,
        "timezone": "Asia/Kolkata",
        "utc_offset": "+05:30",
        "weekday": "Wednesday",
    }


def test_datetime_without_a_zone_is_the_machines_own_and_carries_its_offset() -> None:
    moment = datetime.fromisoformat(run(get_datetime).data["datetime"])

    assert moment.tzinfo is not None
    assert moment.timestamp() == int(NOON)


@pytest.mark.parametrize("zone", ["Europe/Berln", "../../etc/passwd", "/etc/passwd", "\0", "x" * 5000, "Europe"])
def test_a_zone_that_does_not_exist_is_refused(zone: str) -> None:
    with pytest.raises(ToolError, match="is not a known time zone") as raised:
        run(get_datetime, timezone=zone)

    assert raised.value.code is ErrorCode.INVALID_PARAMS
    if zone == "Europe/Berln":
        assert raised.value.suggestions[0] == "Europe/Berlin"


@pytest.mark.parametrize(
    ("model", "category"),
    [
        ("qwen2.5:14b", "general"),
        ("mistral:7b", "general"),
        ("llama3.2", "general"),
        ("deepseek-chat", "general"),
        ("deepseek-coder:33b", "code"),
        ("codellama", "code"),
        ("codegemma:7b", "code"),
        ("starcoder2", "code"),
        ("llava:13b", "vision"),
        ("bakllava", "vision"),
        ("qwen2.5-vl:7b", "vision"),
        ("bge-m3", "embedding"),
        ("qwen3-embedding", "embedding"),
        ("text-embedding-3-small", "embedding"),
        ("kimi-k2:1t-cloud", "cloud"),
        ("moonshot-v1", "cloud"),
        ("claude-opus-4", "cloud"),
    ],
)
def test_a_model_is_grouped_by_its_name(model: str, category: str) -> None:
    assert categorise(model) == category


def test_models_of_all_providers_are_grouped_together() -> None:
    models = Models({"ollama": ["llava", "mistral", "codellama"], "openai": ["gpt-4o", "mistral"]})

    assert run(list_llm_models, models=models).data == {
        "models": {
            "general": ["mistral"],
            "code": ["codellama"],
            "vision": ["llava"],
            "embedding": [],
            "cloud": ["gpt-4o"],
        },
        "count": 4,
        "providers": {"ollama": 3, "openai": 2},
    }


def test_no_provider_is_an_empty_listing_that_says_so() -> None:
    data = run(list_llm_models).data

    assert data["count"] == 0
    assert "OLLAMA_BASE_URL" in data["note"]


def test_the_audit_log_is_asked_for_twenty_entries_by_default() -> None:
    audit = Log([{"tool": "bash", "seq": number} for number in range(50)])

    output = run(get_audit_log, audit=audit)

    assert output.data["count"] == len(output.data["entries"]) == 20
    assert audit.asked == [(20, {})]


def test_filters_reach_the_audit_log_as_text() -> None:
    audit = Log()

    run(get_audit_log, audit=audit, last_n=5, tool="bash", user="ann", success=False)

    assert audit.asked == [(5, {"tool": "bash", "user": "ann", "success": "false"})]


@pytest.mark.parametrize("args", [{"last_n": 0}, {"last_n": -1}, {"last_n": 501}, {"last_n": "all"}, {"sql": "1=1"}])
def test_wrong_arguments_never_reach_the_audit_log(args: dict[str, Any]) -> None:
    audit = Log()

    with pytest.raises(ToolError) as raised:
        run(get_audit_log, audit=audit, **args)

    assert raised.value.code is ErrorCode.INVALID_PARAMS
    assert audit.asked == []


def test_a_log_that_cannot_be_read_is_an_audit_error() -> None:
    with pytest.raises(ToolError, match="could not be read: disk on fire") as raised:
        run(get_audit_log, audit=Log(problem=OSError("disk on fire")))

    assert raised.value.code is ErrorCode.AUDIT_ERROR


def test_a_log_of_large_entries_is_cut_and_says_so() -> None:
    audit = Log([{"seq": number, "args": "x" * 20_000} for number in range(100)])

    output = run(get_audit_log, audit=audit, last_n=100)

    assert output.truncated
    assert output.data["count"] == 13
    assert output.data["next"].startswith("get_audit_log(last_n=13)")


async def read_log(reeve: Toolreeve, session: str, **more: Any) -> Any:
    args = more.pop("args", {})
    return await reeve.run(ToolCall(tool="get_audit_log", args=args, session=session, **more))


async def test_a_caller_reads_only_about_its_own_calls_and_never_their_arguments(world: World) -> None:
    ann = Principal(user="ann")
    async with world.reeve() as reeve:
        for session, user in (("a", "ann"), ("a", "bob"), ("b", "ann")):
            args = {"path": f"{session}-{user}-secret"}
            await reeve.run(ToolCall(tool="file_exists", args=args, session=session, principal=Principal(user=user)))
        seen = await read_log(reeve, "a", principal=ann)
        at_home = await read_log(reeve, "c", principal=ann, record_scope=RecordScope.USER)
        everything = await read_log(reeve, "z", principal=ADMIN)

    (entry,) = seen.data["entries"]
    assert (entry["tool"], entry["session"], entry["user"]) == ("file_exists", "a", "ann")
    assert entry["workspace"] == str(world.workspace)
    assert "secret" not in str(seen.data)
    assert [each["session"] for each in at_home.data["entries"]] == ["a", "b", "a"]
    assert "secret" not in str(at_home.data)
    assert {(each["session"], each["user"]) for each in everything.data["entries"]} >= {("a", "bob"), ("b", "ann")}
    assert "b-ann-secret" in str(everything.data)


async def test_the_log_of_another_workspace_is_not_shown(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.reeve() as reeve:
        await reeve.run(ToolCall(tool="get_datetime", args={}, session="a"))
    world.workspace = tmp_path / "other"
    world.workspace.mkdir()
    async with world.reeve() as reeve:
        seen = await read_log(reeve, "a", record_scope=RecordScope.USER)

    assert seen.data["entries"] == []


@pytest.mark.parametrize("filters", [{"session": "b"}, {"user": "bob"}])
async def test_asking_about_the_calls_of_others_is_refused(world: World, filters: dict[str, str]) -> None:
    async with world.reeve() as reeve:
        refused = await read_log(reeve, "a", args=filters)

    assert refused.error is not None
    assert refused.error.code is ErrorCode.DENIED
