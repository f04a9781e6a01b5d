"""Actions for tests of retry, breaker and cache."""

from typing import Any, cast

from toolreeve.core.action import Action
from toolreeve.core.call import LOCAL, Principal, ToolCall
from toolreeve.core.danger import DangerLevel
from toolreeve.core.files import Files
from toolreeve.core.tool import AssessDanger, bind, tool

NO_FILES = cast(Files, None)
"""These actions touch no files."""


async def act(**_: Any) -> None:
    """Do something."""


def action(
    *,
    danger: DangerLevel | AssessDanger = DangerLevel.MEDIUM,
    idempotent: bool | None = None,
    principal: Principal = LOCAL,
    **args: Any,
) -> Action:
    made = tool(danger=danger, idempotent=idempotent)(act)
    return Action(ToolCall(tool="act", args=args, principal=principal), bind(made), args, NO_FILES)
