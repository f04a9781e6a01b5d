"""Servers that others wrote, behind our runtime: what their tools do is done, and what they answer arrives."""

import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_types import CreateMessageResult, ElicitResult, TextContent

from tests.peers.programs import node_server, python_server
from tests.serve.mcp.http_server import serving
from tests.world import World
from toolreeve import Toolreeve
from toolreeve.config import Policy
from toolreeve.core.call import ToolCall
from toolreeve.formats import format_result, parse_calls

Servers = Mapping[str, Mapping[str, Any]]


@asynccontextmanager
async def behind(world: World, servers: Servers) -> AsyncIterator[Toolreeve]:
    async with allowing(world, servers) as reeve:
        yield reeve


def allowing(world: World, servers: Servers) -> Toolreeve:
    """A runtime whose owner allows the tools of these servers."""
    allowed = tuple(f"{name}__*" for name in servers)
    return world.reeve(mcp_servers=dict(servers), settings=world.settings(policy=Policy(allowed_tools=allowed)))


async def test_the_filesystem_server_writes_a_file(world: World) -> None:
    path = world.workspace / "note.txt"
    async with behind(world, {"files": node_server("server-filesystem", world.workspace)}) as reeve:
        written = await reeve.call("files__write_file", path=str(path), content="from afar\n")
        read = await reeve.call("files__read_text_file", path=str(path))
        outside = await reeve.call("files__read_text_file", path="/etc/passwd")

    assert written.success
    assert path.read_text() == "from afar\n"
    assert read.output == "from afar\n"
    assert (outside.success, "Access denied" in outside.to_text()) == (False, True)


async def test_the_memory_server_remembers_over_a_restart(world: World) -> None:
    kept = world.workspace / "memory.jsonl"
    server = {"memory": node_server("server-memory") | {"env": {"MEMORY_FILE_PATH": str(kept)}}}
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    async with behind(world, server) as reeve:
        await reeve.call("memory__create_entities", entities=[ada])
    async with behind(world, server) as reeve:
        graph = await reeve.call("memory__read_graph")

    assert [(each["name"], each["observations"]) for each in (graph.data or {})["entities"]] == [
        ("Ada", ["writes programs"])
    ]


async def test_the_time_server_converts_times(world: World) -> None:
    async with behind(world, {"time": python_server("mcp-server-time")}) as reeve:
        converted = await reeve.call(
            "time__convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Kolkata"
        )
        wrong = await reeve.call("time__get_current_time", timezone="Nowhere/Land")

    assert "17:30:00+05:30" in converted.to_text()
    assert not wrong.success


async def test_the_git_server_commits(world: World) -> None:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=world.workspace, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.com")
    (world.workspace / "a.txt").write_text("one\n")
    repo = str(world.workspace)
    async with behind(world, {"git": python_server("mcp-server-git", "--repository", world.workspace)}) as reeve:
        await reeve.call("git__git_add", repo_path=repo, files=["a.txt"])
        done = await reeve.call("git__git_commit", repo_path=repo, message="Begin")

    assert done.success, done.to_text()
    assert git("log", "--format=%s").strip() == "Begin"


async def test_what_is_not_allowed_is_asked_about_and_an_untrusted_servers_word_does_not_change_that(
    world: World,
) -> None:
    path = world.workspace / "note.txt"
    server = {"files": node_server("server-filesystem", world.workspace)}
    async with world.reeve(mcp_servers=server) as reeve:
        read = await reeve.call("files__read_text_file", path=str(path))
        write = await reeve.call("files__write_file", path=str(path), content="x")

    assert [str(each.error.code) for each in (read, write) if each.error] == ["E_PERMISSION", "E_PERMISSION"]
    assert not path.exists()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_pictures_structures_and_progress_come_through_the_gateway(world: World, mode: Any) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    reeve = allowing(world, {"every": node_server("server-everything", "stdio")})
    async with serving(reeve) as house, Client(house.url, mode=mode) as client:
        picture = await client.call_tool("every__get-tiny-image", {})
        weather = await client.call_tool("every__get-structured-content", {"location": "Chicago"})
        await client.call_tool(
            "every__trigger-long-running-operation", {"duration": 0.3, "steps": 3}, progress_callback=hear
        )
        resources = await client.list_resources()
        text = await client.read_resource(resources.resources[0].uri)
        prompts = await client.list_prompts()

    assert [block.type for block in picture.content] == ["text", "image", "text"]
    assert set(weather.structured_content or {}) == {"temperature", "conditions", "humidity"}
    assert heard == [1, 2, 3]
    assert text.contents
    assert "every__simple-prompt" in {each.name for each in prompts.prompts}


async def test_a_server_asks_the_person_and_the_model_of_the_client_that_called(world: World) -> None:
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"name": "Ada", "check": True})

    async def sample(context: Any, params: Any) -> CreateMessageResult:
        asked.append(params.messages[0].content.text)
        return CreateMessageResult(role="assistant", content=TextContent(text="forty-two"), model="none")

    reeve = allowing(world, {"every": node_server("server-everything", "stdio")})
    async with (
        serving(reeve) as house,
        Client(house.url, mode="legacy", elicitation_callback=elicit, sampling_callback=sample) as client,
    ):
        person = await client.call_tool("every__trigger-elicitation-request", {})
        model = await client.call_tool(
            "every__trigger-sampling-request", {"prompt": "What is the answer?", "maxTokens": 9}
        )

    assert len(asked) == 2
    assert "Ada" in "".join(getattr(block, "text", "") for block in person.content)
    assert "forty-two" in "".join(getattr(block, "text", "") for block in model.content)


def openai_reply(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}


def anthropic_reply(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    used = {"type": "tool_use", "id": "call_1", "name": name, "input": dict(arguments)}
    return {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, used]}


OPENAI = {"role": "tool", "tool_call_id": "call_1", "content": "Echo: round trip"}
RESULT = {"type": "tool_result", "tool_use_id": "call_1", "content": "Echo: round trip", "is_error": False}
ANTHROPIC = {"role": "user", "content": [RESULT]}


@pytest.mark.parametrize(
    ("provider", "reply", "answered"),
    [("openai", openai_reply, OPENAI), ("anthropic", anthropic_reply, ANTHROPIC)],
    ids=["openai", "anthropic"],
)
async def test_a_model_calls_a_tool_of_a_server_in_its_providers_own_words(
    world: World, provider: str, reply: Any, answered: dict[str, Any]
) -> None:
    async with behind(world, {"every": node_server("server-everything", "stdio")}) as reeve:
        declared = [each.get("function", each)["name"] for each in reeve.tools_for(provider)]
        chosen = next(name for name in declared if name.endswith("echo"))
        known = [bound.spec.name for bound in reeve.tools.list()]
        (call,) = parse_calls(provider, reply(chosen, {"message": "round trip"}), known)
        result = await reeve.run(ToolCall(tool=call.name, args=call.args))

    assert format_result(provider, call.id, result) == answered
