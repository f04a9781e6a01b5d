"""Of two processes that get the same answer, one runs the call."""

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.serve.mcp.input_required.workers import worker
from tests.world import World
from toolreeve.serve.mcp.input_required import REFUSED

RETRY = """
import asyncio, sys
from tests.serve.mcp.input_required.workers import WRITE, YES, Clock, Worker
from toolreeve.config import Settings, State, Workspace
from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.serve.mcp.protocol import WireError

async def main(work, state, token):
    settings = Settings(workspace=Workspace(dir=work), state=State(dir=state))
    async with Toolreeve(settings=settings) as reeve:
        one = Worker(reeve, Clock())
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        try:
            result = await one.call(inputResponses=YES, requestState=token)
            print("ran" if result["isError"] is False else result)
        except WireError as error:
            print(error.message)
        one.desk.close()

asyncio.run(main(*sys.argv[1:]))
"""


async def test_of_two_processes_that_bring_the_same_answer_at_once_one_runs_the_call(world: World) -> None:
    async with worker(world) as one:
        state = (await one.call())["requestState"]
    pipe = subprocess.PIPE
    root = Path(__file__).parents[4]
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            RETRY,
            str(world.workspace),
            str(world.state),
            state,
            stdin=pipe,
            stdout=pipe,
            cwd=root,
        )
        for _ in range(2)
    ]
    async with asyncio.timeout(60):
        for process in started:
            assert process.stdout is not None
            await process.stdout.readline()
        printed = await asyncio.gather(*(process.communicate(b"go\n") for process in started))

    assert sorted(out.strip() for out, _ in printed) == [REFUSED.encode(), b"ran"]
