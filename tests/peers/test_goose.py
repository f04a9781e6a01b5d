"""goose, a real ACP agent, held by us: offline, against a scripted model."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.peers.programs import PEERS
from toolreeve.acp.client.agents import find_agent
from toolreeve.acp.client.held_agent import HeldAgent, hold_agent
from toolreeve.approval.request import Request
from toolreeve.config import Settings
from toolreeve.config.sections.network import Network
from toolreeve.config.sections.state import State
from toolreeve.config.sections.workspace import Workspace
from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.testing import ScriptedModel, call, say
from toolreeve.testing.script import Reply

GOOSE = PEERS / "node_modules" / "@aaif" / "goose-binary-linux-x64" / "bin" / "goose"


def is_task(body: Any) -> bool:
    """goose also asks the model for a title, without tools."""
    return bool(body.get("tools"))


def goose_settings(place: Path, model: ScriptedModel, **more: Any) -> Settings:
    workspace = place / "work"
    workspace.mkdir(exist_ok=True)
    table = {
        "command": str(GOOSE),
        "env": {
            "GOOSE_PROVIDER": "openai",
            "GOOSE_MODEL": "scripted",
            "OPENAI_HOST": f"http://127.0.0.1:{model.port}",
            "OPENAI_API_KEY": "scripted",
        },
        "hosts": ["127.0.0.1"],
        "home": str(place / "home"),
        **more,
    }
    return Settings(
        workspace=Workspace(dir=str(workspace)),
        state=State(dir=str(place / "state")),
        network=Network(allow=(f"127.0.0.1:{model.port}",)),
        acp_agents={"goose": table},
    )


@asynccontextmanager
async def goose(
    place: Path, turns: list[Reply], approve: Callable[[Request], Any], **more: Any
) -> AsyncIterator[tuple[HeldAgent, ScriptedModel]]:
    with ScriptedModel(turns, only=is_task) as model:
        settings = goose_settings(place, model, **more)
        async with (
            Toolreeve(settings=settings, approve=approve) as reeve,
            hold_agent(reeve, find_agent(reeve.configuration, "goose")) as agent,
        ):
            yield agent, model


async def test_goose_writes_reads_and_runs_commands_through_the_road(tmp_path: Path) -> None:
    asked: list[str] = []

    async def approve(request: Request) -> bool:
        asked.append(request.tool)
        return True

    hello = tmp_path / "work" / "hello.txt"
    turns: list[Reply] = [
        call("write", path=str(hello), content="hello from goose\n"),
        call("read", path=str(hello)),
        call("shell", command="wc -c hello.txt && touch made"),
        say("Finished the job."),
    ]
    async with goose(tmp_path, turns, approve) as (agent, model):
        turn = await agent.prompt("write hello.txt")
        recorded = [each.body.get("tool") for each in await agent.road.reeve.audit.list()]

    assert (turn.stop, turn.text, turn.refusals) == ("end_turn", "Finished the job.", [])
    assert hello.read_text() == "hello from goose\n"
    assert (tmp_path / "work" / "made").exists()
    assert {"write_file", "read_file", "bash"} <= set(recorded)
    assert "hello from goose" in str(model.requests[2]["messages"])
    assert "17 hello.txt" in str(model.requests[3]["messages"])


async def test_nothing_is_written_when_a_person_denies(tmp_path: Path) -> None:
    async def deny(_: Request) -> bool:
        return False

    hello = tmp_path / "work" / "hello.txt"
    turns: list[Reply] = [
        call("write", path=str(hello), content="x"),
        call("shell", command="rm -rf ../work/*; echo x > hello.txt"),
        say("It was refused."),
    ]
    async with goose(tmp_path, turns, deny) as (agent, model):
        turn = await agent.prompt("write hello.txt")

    assert turn.text == "It was refused."
    assert not hello.exists()
    assert "was refused" in str(model.requests[1]["messages"][-1])


async def test_goose_reaches_our_tools_as_an_mcp_server(tmp_path: Path) -> None:
    async def approve(_: Request) -> bool:
        return True

    def write(body: Any) -> Any:
        names = [each["function"]["name"] for each in body["tools"]]
        name = next(each for each in names if each.endswith("__write_file") and each.startswith("toolreeve_"))
        return call(name, path="ours.txt", content="ours")

    async with goose(tmp_path, [write, say("done")], approve) as (agent, _):
        turn = await agent.prompt("write with the tools of the server")

    assert turn.text == "done"
    assert (tmp_path / "work" / "ours.txt").read_text() == "ours"


async def test_nothing_of_goose_is_left_when_it_is_closed(tmp_path: Path) -> None:
    async def approve(_: Request) -> bool:
        return True

    before = {each.pid for each in psutil.process_iter()}
    async with goose(tmp_path, [say("hi")], approve) as (agent, _):
        await agent.prompt("hello")
        assert any("goose" in each.name() for each in psutil.process_iter() if each.pid not in before)

    left = [each.name() for each in psutil.process_iter() if each.pid not in before and each.ppid() != os.getpid()]
    assert "goose" not in left
