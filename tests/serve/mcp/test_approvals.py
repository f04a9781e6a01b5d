"""Approvals end to end: real MCP clients, real servers in their own processes."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from tests.world import World
from toolreeve.approval.pending import write_answer
from toolreeve.approval.request import Answer, Scope

MODERN = "2026-07-28"
ROOT = Path(__file__).parents[3]
ALLOW = {"decision": "allow once"}


class Someone:
    """Sits at the client and answers every form the same way."""

    def __init__(self, action: Any = "accept", content: Any = None) -> None:
        self.action = action
        self.content: Any = ALLOW if content is None and action == "accept" else content
        self.shown: list[ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.shown.append(params)
        return ElicitResult(action=self.action, content=self.content)


@dataclass(frozen=True, slots=True)
class Door:
    """Where a server of this world is reached. A stdio server is another one for each client."""

    target: Any

    @asynccontextmanager
    async def client(self, mode: str, asked: Someone | None = None) -> AsyncIterator[Client]:
        async with asyncio.timeout(60), Client(self.target, mode=mode, elicitation_callback=asked) as client:
            yield client


def surroundings(world: World) -> dict[str, str]:
    home = world.state.parent / "home"
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLREEVE_", "XDG_"))}
    return kept | {"HOME": str(home), "TOOLREEVE_STATE_DIR": str(world.state)}


def stdio(world: World, **variables: str) -> Door:
    args = ["-m", "toolreeve", "mcp", "--workspace", str(world.workspace)]
    return Door(StdioServerParameters(command=sys.executable, args=args, env=surroundings(world) | variables))


@asynccontextmanager
async def http(world: World) -> AsyncIterator[Door]:
    args = ("-m", "toolreeve", "serve", "--mcp", "--port", "0", "--workspace", str(world.workspace))
    server = await asyncio.create_subprocess_exec(
        sys.executable,
        *args,
        env=surroundings(world),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stderr is not None
    try:
        async with asyncio.timeout(30):
            while (found := re.search(rb"http://\S+/mcp", line := await server.stderr.readline())) is None:
                assert line, "the server ended before it said where it is"
        yield Door(found[0].decode())
    finally:
        server.send_signal(signal.SIGTERM)
        await server.wait()


@pytest.fixture(params=["stdio", "http"])
async def door(request: pytest.FixtureRequest, world: World) -> AsyncIterator[Door]:
    if request.param == "stdio":
        yield stdio(world)
        return
    async with http(world) as served:
        yield served


async def writes(client: Client, path: str = "a.txt", content: str = "x") -> Any:
    return await client.call_tool("write_file", {"path": path, "content": content})


def text(result: Any) -> str:
    return "\n".join(block.text for block in result.content)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_the_person_at_the_client_is_shown_a_form_and_their_yes_lets_the_call_run(
    world: World, door: Door, mode: str
) -> None:
    someone = Someone()
    async with door.client(mode, someone) as client:
        result = await writes(client)

    assert not result.is_error, text(result)
    assert (world.workspace / "a.txt").read_text() == "x"
    (form,) = someone.shown
    assert "Tool 'write_file' (danger=medium) requests approval" in form.message
    assert form.requested_schema["required"] == ["decision"]


@pytest.mark.parametrize("mode", ["legacy", MODERN])
@pytest.mark.parametrize(
    ("someone", "code"),
    [
        (Someone("decline"), "E_APPROVAL_PENDING"),  # at once: no person can have read it
        (Someone(content={"decision": "deny", "note": "never there"}), "E_APPROVAL_DENIED"),
        (Someone("cancel"), "E_APPROVAL_PENDING"),
        (Someone(content={"decision": True}), "E_APPROVAL_PENDING"),
        (Someone(content={}), "E_APPROVAL_PENDING"),
    ],
)
async def test_anything_else_lets_nothing_run(world: World, mode: str, someone: Someone, code: str) -> None:
    async with stdio(world).client(mode, someone) as client:
        result = await writes(client)

    assert result.is_error
    assert code in text(result)
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_yes_for_the_session_is_not_asked_for_again(world: World, door: Door, mode: str) -> None:
    someone = Someone(content={"decision": "allow for this session"})
    async with door.client(mode, someone) as client:
        await writes(client)
        result = await writes(client, content="y")

    assert not result.is_error
    assert len(someone.shown) == 1


async def test_another_worker_takes_the_answer_once(world: World) -> None:
    """Two servers share a state directory, and with it the key."""
    args = {"path": "a.txt", "content": "x"}
    yes = ElicitResult(action="accept", content={"decision": "allow once"})
    async with (
        http(world) as one,
        http(world) as other,
        one.client(MODERN, Someone()) as first,
        other.client(MODERN, Someone()) as answering,
    ):
        asked = await first.session.call_tool("write_file", args, allow_input_required=True)
        assert isinstance(asked, InputRequiredResult)
        brought: dict[str, Any] = {"input_responses": {"approval": yes}, "request_state": asked.request_state}
        done = await answering.session.call_tool("write_file", args, allow_input_required=True, **brought)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await first.session.call_tool("write_file", args, allow_input_required=True, **brought)

    assert isinstance(done, CallToolResult)
    assert not done.is_error
    assert (world.workspace / "a.txt").read_text() == "x"


class Chooser(Someone):
    """Allows what is to be approved, and chooses a colour when a server asks for one."""

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.shown.append(params)
        approval = "decision" in params.requested_schema["properties"]
        return ElicitResult(action="accept", content={"decision": "allow once"} if approval else {"colour": "red"})


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_what_an_upstream_server_asks_reaches_the_same_person_after_one_approval(world: World, mode: str) -> None:
    folder = Path(surroundings(world)["HOME"]) / ".config" / "toolreeve"
    folder.mkdir(parents=True)
    server = {"command": sys.executable, "args": ["-m", "tests.upstream.servers.official"], "cwd": str(ROOT)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in server.items()]
    (folder / "toolreeve.toml").write_text("\n".join(["[mcp_servers.far]", *lines, ""]))
    someone = Chooser()
    async with stdio(world).client(mode, someone) as client:
        result = await client.call_tool("far__ask", {})

    assert not result.is_error, text(result)
    assert "red" in text(result)
    assert ["decision" in form.requested_schema["properties"] for form in someone.shown] == [True, False]


async def answer(world: World, number: str, given: Answer) -> None:
    """A person decides in another process: here, this one."""
    async with world.reeve() as reeve:
        assert await reeve.approvals.store.decide(number, write_answer(given))


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_without_forms_waits_for_a_person_at_a_terminal(world: World, door: Door, mode: str) -> None:
    async with door.client(mode) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        pending = await writes(client)
        number = pending.structured_content["approval_id"]
        still = await client.call_tool("wait_for_approval", {"approval_id": number, "timeout": 0})
        waiting = asyncio.create_task(client.call_tool("wait_for_approval", {"approval_id": number, "timeout": 40}))
        await answer(world, number, Answer(granted=True, by="Bea", scope=Scope.ONCE))
        done = await waiting
        again = await client.call_tool("wait_for_approval", {"approval_id": number, "timeout": 0})

    assert "wait_for_approval" in listed
    assert "wait_for_approval" in text(pending)
    assert pending.is_error
    assert pending.structured_content["status"] == "pending"
    assert (still.is_error, still.structured_content["status"]) == (False, "pending")
    assert not done.is_error, text(done)
    assert (world.workspace / "a.txt").read_text() == "x"
    assert again.is_error
    assert again.structured_content["status"] == "used"


async def test_a_denial_at_a_terminal_is_reported_with_its_note(world: World) -> None:
    async with stdio(world).client("legacy") as client:
        number = (await writes(client)).structured_content["approval_id"]
        await answer(world, number, Answer(granted=False, by="Bea", note="use b.txt"))
        result = await client.call_tool("wait_for_approval", {"approval_id": number})

    assert result.is_error
    assert "E_APPROVAL_DENIED" in text(result)
    assert "refused by Bea: use b.txt" in text(result)


async def test_a_pending_call_can_be_waited_for_after_the_server_was_started_anew(world: World) -> None:
    async with stdio(world).client("legacy") as client:
        number = (await writes(client)).structured_content["approval_id"]
    await answer(world, number, Answer(granted=True, by="Bea"))
    async with stdio(world).client("legacy") as client:
        result = await client.call_tool("wait_for_approval", {"approval_id": number})

    assert not result.is_error, text(result)
    assert (world.workspace / "a.txt").read_text() == "x"


@pytest.mark.parametrize(
    "arguments",
    [{}, {"approval_id": 5}, {"approval_id": "x", "timeout": 51}, {"approval_id": "x", "timeout": True}, {"id": "x"}],
)
async def test_waiting_for_nonsense_is_an_error_that_says_what_is_expected(world: World, arguments: Any) -> None:
    async with stdio(world).client("legacy") as client:
        result = await client.call_tool("wait_for_approval", arguments)

    assert result.is_error
    assert "E_INVALID_PARAMS" in text(result)


async def test_an_unknown_approval_cannot_be_waited_for(world: World) -> None:
    async with stdio(world).client("legacy") as client:
        result = await client.call_tool("wait_for_approval", {"approval_id": "0123456789", "timeout": 50})

    assert result.is_error
    assert "no approval '0123456789' is pending for this caller" in text(result)


class Thoughtful(Someone):
    """Takes their time, and knows when the question was taken back."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.withdrawn = seconds, asyncio.Event()

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.withdrawn.set()
            raise
        return await super().__call__(context, params)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_thinking_longer_than_a_tool_may_run_is_no_timeout(world: World, mode: str) -> None:
    async with stdio(world, TOOLREEVE_LIMITS_TIMEOUT="0.3").client(mode, Thoughtful(0.7)) as client:
        result = await writes(client)

    assert not result.is_error, text(result)


async def test_an_unanswered_form_is_withdrawn_at_the_timeout(world: World) -> None:
    someone = Thoughtful(3600)
    async with stdio(world, TOOLREEVE_APPROVAL_TIMEOUT="0.2").client("legacy", someone) as client:
        result = await writes(client)
        await someone.withdrawn.wait()

    assert "E_APPROVAL_TIMEOUT" in text(result)


async def test_a_client_that_shows_forms_is_not_offered_to_wait(world: World) -> None:
    async with stdio(world).client("legacy", Someone()) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]

    assert "wait_for_approval" not in listed


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_that_answers_forms_by_itself_can_be_left_unasked(world: World, mode: str) -> None:
    yes = Someone()
    door = stdio(world, TOOLREEVE_APPROVAL_ASK_CLIENT="false")

    async with door.client(mode, yes) as client:
        answer = await client.call_tool("write_file", {"path": "a.txt", "content": "x"})
        tools = [tool.name for tool in (await client.list_tools()).tools]

    assert answer.structured_content is not None
    assert answer.structured_content["error"]["code"] == "E_APPROVAL_PENDING"
    assert yes.shown == []
    assert "wait_for_approval" in tools
    assert not (world.workspace / "a.txt").exists()
