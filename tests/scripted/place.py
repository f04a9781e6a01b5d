"""A workspace, a file of tools, and a runtime with both."""

from pathlib import Path
from typing import Any

from tests.world import World
from toolreeve import Toolreeve
from toolreeve.config import Settings


class Place(World):
    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.tools = place / "tools.yaml"

    def settings(self, **changes: Any) -> Settings:
        return super().settings(**{"tool_files": (str(self.tools),)} | changes)

    def declares(self, text: str, **options: Any) -> Toolreeve:
        self.tools.write_text(text)
        return self.reeve(**options)


async def yes(_: object) -> bool:
    return True
