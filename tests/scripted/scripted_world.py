"""A workspace, a file of tools, and a runtime with both."""

from pathlib import Path
from typing import Any

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.config import Settings


class ScriptedWorld(World):
    def __init__(self, root: Path, state: Path) -> None:
        super().__init__(root, state)
        self.tools = root / "tools.yaml"

    def settings(self, **changes: Any) -> Settings:
        return super().settings(**{"tool_files": (str(self.tools),)} | changes)

    def with_tools(self, text: str, **options: Any) -> Toolreeve:
        self.tools.write_text(text)
        return self.reeve(**options)


async def yes(_: object) -> bool:
    return True
