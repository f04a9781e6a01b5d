"""The sandbox is built for the first program, and loaded then."""

import subprocess
import sys

from tests.world import World


def test_importing_the_runtime_loads_what_a_first_call_needs_and_no_more() -> None:
    program = "import sys; from toolreeve import Toolreeve; print('\\n'.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()

    later = (
        "toolreeve.sandbox",
        "toolreeve.upstream.session",
        "toolreeve.formats",
        "mcp",
        "pydantic",
        "difflib",
        "rich",
    )
    assert [name for name in loaded if name in later] == []


async def test_a_runtime_that_starts_no_program_builds_no_sandbox(world: World) -> None:
    (world.workspace / "a.txt").write_text("hello")
    async with world.reeve() as reeve:
        assert (await reeve.call("read_file", path="a.txt")).output == "hello"

        assert reeve._parts.processes._backend is None
