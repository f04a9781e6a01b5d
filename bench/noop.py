"""One measurement of a no-op tool, in its own process. `python -m bench.noop TOOLS STATE_DIRECTORY`"""

import asyncio
import sys
import tempfile
import time

from toolreeve import DangerLevel, Toolreeve, tool
from toolreeve.config import Settings, State, Workspace
from toolreeve.core.tool import AnyFunctionTool

CALLS = 3000


@tool(danger=DangerLevel.SAFE)
async def nothing() -> None:
    """Do nothing."""


def another(number: int) -> AnyFunctionTool:
    return tool(name=f"other_{number}", danger=DangerLevel.SAFE)(nothing.function)


async def main(tools: int, state: str) -> float:
    """CPU seconds of the whole process for one call, all threads counted, after as many calls to warm up."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(workspace=Workspace(dir=folder), state=State(dir=state))
        async with Toolreeve(settings=settings, tools=[nothing, *map(another, range(tools - 1))]) as reeve:
            for _ in range(CALLS):
                await reeve.call("nothing")
            began = time.process_time()
            for _ in range(CALLS):
                await reeve.call("nothing")
            return (time.process_time() - began) / CALLS


if __name__ == "__main__":
    print(asyncio.run(main(int(sys.argv[1]), sys.argv[2])))
