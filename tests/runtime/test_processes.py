"""The sandbox is built for the first program, and loaded then."""

import subprocess
import sys

import pytest

from tests.world import World

LATER = (
    *("toolreeve.sandbox", "toolreeve.upstream", "toolreeve.formats", "toolreeve.serve", "toolreeve.agent"),
    *("toolreeve.approval", "toolreeve.confinement.trials", "toolreeve.record.pending", "toolreeve.record.webhooks"),
    *("toolreeve.policy.flow.judge", "toolreeve.policy.flow.review", "toolreeve.hook", "toolreeve.cli"),
    *(
        "mcp",
        "pydantic",
        "starlette",
        "uvicorn",
        "httpx2",
        "keyring",
        "apprise",
        "rich",
        "difflib",
        "opentelemetry.sdk",
    ),
)
"""What a plain call does without: each is imported for the first call or setting that needs it."""
FIRST_CALL = """
import asyncio, sys
from toolreeve import Toolreeve

async def main() -> None:
    async with Toolreeve(workspace=".") as reeve:
        assert (await reeve.call("read_file", path="a.txt")).output == "hello"

{run}
print("\\n".join(sys.modules))
"""


@pytest.mark.parametrize("run", ["", "asyncio.run(main())"], ids=["imported", "after a call"])
def test_the_runtime_imports_what_a_plain_call_needs_and_no_more(run: str, world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")
    command = [sys.executable, "-c", FIRST_CALL.format(run=run)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=world.workspace)

    loaded = ran.stdout.split()
    assert run or "jsonschema_rs" not in loaded
    assert [name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in LATER)] == []


async def test_a_runtime_that_starts_no_program_builds_no_sandbox(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")
    async with world.reeve() as reeve:
        assert (await reeve.call("read_file", path="a.txt")).output == "hello"

        assert reeve._parts.processes._backend is None
