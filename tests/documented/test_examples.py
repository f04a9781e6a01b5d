"""Every runnable example of the source documents, counted: it runs, or names what brings it."""

import pytest

from tests.documented import agent_api, builtin_server, tool_reference
from tests.documented.stage import EXAMPLES, NOT_YET, Stage, web_server
from tests.scripted.test_documented import CALLS as YAML_TOOLS
from tests.world import World

AT_LEAST = 65
SOURCES = (agent_api, builtin_server, tool_reference)


@pytest.mark.parametrize("title", EXAMPLES)
async def test_a_documented_example_runs(title: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(world.state.parent))
    with web_server() as url:
        await EXAMPLES[title](Stage(world, url))


def test_most_examples_run_and_the_others_name_what_brings_them() -> None:
    """YAML tools are run by `tests/scripted/test_documented.py`, as root and as a user."""
    running = len(EXAMPLES) + len(YAML_TOOLS)

    assert running >= AT_LEAST
    assert len({*EXAMPLES, *NOT_YET}) == len(EXAMPLES) + len(NOT_YET)
    assert all(NOT_YET.values())
