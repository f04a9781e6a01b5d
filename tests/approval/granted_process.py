"""A runtime in a process of its own that calls `write_file` as it is told, line by line."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from toolreeve import Toolreeve
from toolreeve.approval.request import Answer, Request
from toolreeve.config import Settings, State, Workspace
from toolreeve.core.call import ToolCall

ROOT = Path(__file__).parents[2]


async def serve(workspace: str, state: str) -> None:
    """Each line is a call; `grant` holds the terms of a person's yes for the session, without it nobody answers."""
    terms: dict[str, Any] = {}

    async def approve(request: Request) -> Answer:
        grant = terms.get(request.call_id)
        if grant is None:
            return request.deny(by="nobody")
        return request.allow(by="Ann", scope="session", **grant)

    settings = Settings(workspace=Workspace(dir=workspace), state=State(dir=state))
    async with Toolreeve(settings=settings, approve=approve) as reeve:
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            said = json.loads(line)
            call = ToolCall(
                tool="write_file",
                args={"path": "a.txt", "content": "x"},
                session=said["session"],
                session_issued=said["issued"],
                client=said["client"],
            )
            if said["grant"] is not None:
                terms[call.id] = said["grant"]
            result = await reeve.run(call)
            print(json.dumps(result.success), flush=True)


class GrantedProcess:
    """The other end of `serve`: one call at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._turn = asyncio.Lock()

    async def call(
        self,
        session: str,
        *,
        client: str = "agent",
        issued: bool = True,
        grant: dict[str, Any] | None = None,
        on_send: Callable[[], None] | None = None,
    ) -> bool:
        """Whether the call ran."""
        assert self.process.stdin is not None
        said = {"session": session, "client": client, "issued": issued, "grant": grant}
        async with self._turn:
            if on_send is not None:
                on_send()
            self.process.stdin.write(json.dumps(said).encode() + b"\n")
            return bool(json.loads(await self.read()))

    async def read(self) -> bytes:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            return await self.process.stdout.readline()


@asynccontextmanager
async def granted_process(workspace: Path, state: Path) -> AsyncIterator[GrantedProcess]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(workspace), str(state)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        started = GrantedProcess(process)
        assert await started.read() == b"ready\n"
        yield started
    finally:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
        async with asyncio.timeout(60):
            await process.wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
