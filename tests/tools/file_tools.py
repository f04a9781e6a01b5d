"""The file tools on a workspace, with arguments checked as the pipeline does."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolreeve.core.call import ToolCall
from toolreeve.core.context import Context, ModelListing, Services
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended
from toolreeve.core.result import Output
from toolreeve.core.tool import bind
from toolreeve.guard.files.workspace import WorkspaceFiles
from toolreeve.runtime.builtin import FILE_TOOLS


def refusal(act: Callable[[], object]) -> ErrorCode | None:
    """The code with which something is refused; None if it is not."""
    try:
        act()
    except ToolError as problem:
        return problem.code
    return None


class NoServices:
    """Services without audit, models, undo and programs."""

    async def run(self, *_: Any, **__: Any) -> Ended:
        raise ToolError(ErrorCode.PERMISSION, "no program runs here")

    async def recent(self, *, last_n: int, filters: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        return ()

    async def list(self) -> ModelListing:
        return ModelListing()

    def check(self, *_: Any, **__: Any) -> None:
        return

    async def restore(self, *_: Any, **__: Any) -> Sequence[Any]:
        return ()


class FileTools:
    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        self.files = WorkspaceFiles(root, **options)
        self._tools = {tool.name: bind(tool) for tool in FILE_TOOLS}
        services = NoServices()
        self._services = Services(
            files=self.files, audit=services, models=services, undo=services, processes=services, now=lambda: 0.0
        )

    def write(self, path: str, content: str | bytes = "") -> Path:
        """Put a file into the workspace without any tool."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def call(self, tool: str, /, **args: Any) -> Output:
        bound = self._tools[tool]
        context = Context(ToolCall(tool=tool, args=args), self._services)

        async def run() -> Output:
            return await bound.run(bound.input.parse(args), context)

        return asyncio.run(run())

    def data(self, tool: str, /, **args: Any) -> dict[str, Any]:
        return dict(self.call(tool, **args).data)

    def failure(self, tool: str, /, **args: Any) -> tuple[ErrorCode, str]:
        try:
            output = self.call(tool, **args)
        except ToolError as problem:
            return problem.code, problem.message
        raise AssertionError(f"{tool} succeeded: {output}")

    def follow(self, literal: str) -> Output:
        """Make the call that a result names as the next one."""
        tool, _, rest = literal.partition("(")
        args: dict[str, Any] = eval(f"dict({rest}", {"true": True, "false": False, "dict": dict})  # ours, in a test
        return self.call(tool, **args)

    def effects(self, tool: str, /, **args: Any) -> list[str]:
        return [str(effect) for effect in self._tools[tool].effects(args, self.files)]
