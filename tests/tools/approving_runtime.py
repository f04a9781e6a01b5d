"""A runtime on a workspace whose user approves everything; programs really run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.approval.request import Request
from toolreeve.core.call import Principal, Role
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import ToolResult


class ApprovingRuntime:
    """`asked` are the tools that needed approval."""

    def __init__(self, world: World, **options: Any) -> None:
        self.root = world.workspace
        self.asked: list[str] = []
        role = options.pop("role", Role.OPERATOR)
        settings = world.settings(**options)
        self.reeve = Toolreeve(settings=settings, approve=self._agree, principal=Principal(role=role))

    async def _agree(self, request: Request) -> bool:
        self.asked.append(request.tool)
        return True

    def write(self, path: str, content: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    async def call(self, tool: str, /, **args: Any) -> ToolResult:
        return await self.reeve.call(tool, args)

    async def data(self, tool: str, /, **args: Any) -> dict[str, Any]:
        result = await self.call(tool, **args)
        assert result.success, result.to_text()
        return dict(result.data or {})

    async def failure(self, tool: str, /, **args: Any) -> tuple[ErrorCode, str]:
        result = await self.call(tool, **args)
        assert result.error is not None, result.to_dict()
        return result.error.code, result.error.message


@asynccontextmanager
async def approving_runtime(world: World, **options: Any) -> AsyncIterator[ApprovingRuntime]:
    made = ApprovingRuntime(world, **options)
    async with made.reeve:
        yield made
