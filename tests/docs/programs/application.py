"""A typed program: tools of rich types, an approver, a rule."""

import asyncio
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from pydantic import BaseModel, Field

from toolreeve import (
    Answer,
    Caching,
    Context,
    DangerLevel,
    Effect,
    EffectKind,
    ErrorCode,
    ExecutionContext,
    PermissionMode,
    PermissionPolicy,
    PermissionRule,
    Principal,
    RateLimit,
    Request,
    Retry,
    Role,
    Settings,
    ToolCall,
    ToolError,
    Toolreeve,
    tool,
)


class Priority(Enum):
    LOW = "low"
    HIGH = "high"


class Item(BaseModel):
    name: str
    children: list["Item"] = []
    priority: Priority = Priority.LOW


@dataclass
class Summary:
    count: int
    names: list[str]


class Options(TypedDict, total=False):
    depth: int


@tool(danger="low", retry=Retry(attempts=2), rate=RateLimit(calls=5, per=1.0), caching=Caching(ttl=5.0))
async def summarize(
    ctx: Context,
    items: list[Item],
    by: Literal["name", "priority"] = "name",
    options: Options | None = None,
    limit: Annotated[int, Field(ge=1, description="At most so many")] = 10,
) -> Summary:
    """Summarize items."""
    ctx.progress(f"{len(items)} items by {by}")
    if not items:
        raise ToolError(ErrorCode.INVALID_PARAMS, "no items", suggestions=["pass one"])
    return Summary(len(items), [item.name for item in items][:limit])


async def approve(request: Request) -> Answer:
    print(request.tool, [choice.sentence for choice in request.choices], [str(each) for each in request.effects])
    if request.danger >= DangerLevel.HIGH:
        return request.deny(note="too dangerous")
    return request.allow(scope="session", choice=0)


async def main() -> None:
    rule = PermissionRule(tool="write_file", decision="ask")
    policy = PermissionPolicy(ExecutionContext(mode=PermissionMode.DEFAULT, budget_limit=1.0))
    async with Toolreeve(
        workspace=Path.cwd(),
        tools=[summarize],
        policy=[rule],
        approve=approve,
        principal=Principal(user="a", role=Role.ADMIN),
    ) as reeve:
        result = await reeve.call("summarize", items=[{"name": "a"}], timeout=2.0)
        if result.error:
            print(result.error.code, result.error.suggestions)
        else:
            print(result.unwrap())
        call = ToolCall(tool="calculate", args={"expression": "1"}, estimated_cost=0.1)
        print((await reeve.run(call)).meta.duration_ms)

        effect = Effect(EffectKind.READ, "x")
        print(effect.kind, Settings(), policy)


if __name__ == "__main__":
    asyncio.run(main())
