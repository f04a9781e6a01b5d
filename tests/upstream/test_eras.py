"""Callers and servers of both eras, with a server made with the official library."""

import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.upstream.callers import ScriptedCaller
from tests.world import World
from toolreeve import Toolreeve, ToolResult
from toolreeve.core.call import ToolCall
from toolreeve.core.mcp import Era

pytestmark = pytest.mark.asyncio(loop_scope="module")
SERVER = str(Path(__file__).parent / "servers" / "official.py")
FORM: Mapping[str, Any] = {"elicitation": {"form": {}}}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def reeve(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Toolreeve]:
    world = World(tmp_path_factory.mktemp("eras"))
    table = {"command": sys.executable, "args": [SERVER], "danger": "safe"}
    async with world.reeve(mcp_servers={"s": table}) as reeve:
        yield reeve


async def call(reeve: Toolreeve, tool: str, peer: ScriptedCaller | None = None, **args: Any) -> ToolResult:
    return await reeve.run(ToolCall(tool=f"s__{tool}", args=args, peer=peer, timeout=30.0))


async def blue(_: str, __: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": "accept", "content": {"colour": "blue"}}


async def test_a_caller_of_the_legacy_era_is_asked_in_the_middle_of_the_call(reeve: Toolreeve) -> None:
    person = ScriptedCaller(capabilities=FORM, answer=blue)

    result = await call(reeve, "ask", person, text="x")

    assert result.output == "accept {'colour': 'blue'}"
    assert [method for method, _ in person.asked] == ["elicitation/create"]


async def test_a_caller_of_the_modern_era_is_answered_with_the_question_and_calls_again(reeve: Toolreeve) -> None:
    person = ScriptedCaller(era=Era.MODERN, capabilities=FORM)

    first = await call(reeve, "ask", person, text="x")
    asked = first.to_mcp()
    person.responses = {"colour": {"action": "accept", "content": {"colour": "red"}}}
    person.state = asked["requestState"]
    second = await call(reeve, "ask", person, text="x")

    assert first.data == {"status": "input_required"}
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["colour"]["method"] == "elicitation/create"
    assert second.output == "halfway {'colour': 'red'}"


async def test_a_call_without_a_peer_cancels_the_question(reeve: Toolreeve) -> None:
    assert (await call(reeve, "ask", text="x")).output == "cancel None"


@pytest.mark.parametrize("era", list(Era))
async def test_progress_and_pictures_reach_callers_of_both_eras(reeve: Toolreeve, era: Era) -> None:
    person = ScriptedCaller(era=era, wants_progress=True)

    await call(reeve, "steps", person, text="x")
    picture = (await call(reeve, "picture", person, text="x")).to_mcp()

    assert [params["progress"] for method, params in person.told if method == "notifications/progress"] == [0, 1, 2]
    assert picture["content"] == [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]
    assert picture["structuredContent"] == {"deep": {"er": [1, None, "é"]}}


async def test_our_own_roots_are_sent_where_the_caller_has_none(reeve: Toolreeve) -> None:
    assert (await call(reeve, "roots", text="x")).output.startswith("file:///")


async def test_definitions_of_the_official_library_are_kept(reeve: Toolreeve) -> None:
    assert reeve.tools.resolve("s__echo").spec.input["$defs"] == {"Text": {"type": "string", "minLength": 1}}
