"""ACP agents as tools: sessions, failures, governors, and the environment's agent."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from a2a.types import TaskState

from tests.acp.holding import PROGRAM, Person, received, requests, settings_for, until, write_script
from tests.serve.a2a.agents import connected, post, send
from tests.serve.a2a.test_turns import until_ended
from tests.serve.api.api_server import ApiServer, serving
from toolreeve.acp.client import agent_tools
from toolreeve.acp.client.agent_tools import AgentTools
from toolreeve.acp.client.agents import FROM_ENVIRONMENT, find_agent, read_agents
from toolreeve.config import Configuration, Settings, from_settings
from toolreeve.config.sections.approval import Approval
from toolreeve.core.call import Role
from toolreeve.core.errors import ErrorCode
from toolreeve.runtime.toolreeve import Toolreeve


@asynccontextmanager
async def offering(place: Path, person: Person | None = None, **changes: Any) -> AsyncIterator[Toolreeve]:
    configuration = from_settings(replace(settings_for(place, profile="goose", mode=""), **changes))
    reeve = new_runtime(configuration, approve=person)
    async with reeve:
        yield reeve


def new_runtime(configuration: Configuration, **options: Any) -> Toolreeve:
    agents = AgentTools(list(read_agents(configuration, print).values()))
    reeve = Toolreeve(settings=configuration, tools=agents.tools, **options)
    agents.bind(reeve)
    return reeve


def started(place: Path) -> int:
    return [each.get("method") for each in received(place)].count("session/new")


async def test_a_session_of_the_caller_is_a_session_of_the_agent(tmp_path: Path) -> None:
    write_script(tmp_path, {"steps": []})
    async with offering(tmp_path) as reeve:
        first = await reeve.call("agent_test", prompt="one", session="a")
        again = await reeve.call("agent_test", prompt="two", session="a")
        assert started(tmp_path) == 1
        await reeve.call("agent_test", prompt="three", session="b")

    assert first.unwrap() == again.unwrap() == "done"
    assert first.data["stop"] == "end_turn"
    assert started(tmp_path) == 2
    prompts = [each["params"]["prompt"][0]["text"] for each in received(tmp_path) if each["method"] == "session/prompt"]
    assert prompts == ["one", "two", "three"]


async def test_calls_inside_are_recorded_in_the_same_session_and_asked(tmp_path: Path) -> None:
    person = Person(says=True)
    write_script(tmp_path, {"steps": [requests("fs/write_text_file", path="a.txt", content="x")]})
    async with offering(tmp_path, person) as reeve:
        await reeve.call("agent_test", prompt="write", session="a")

    assert [(each.tool, each.session, each.client) for each in person.asked] == [("write_file", "a", "test")]
    assert (tmp_path / "work" / "a.txt").read_text() == "x"


async def test_an_agent_that_crashed_is_started_anew_and_then_left_alone(tmp_path: Path) -> None:
    write_script(tmp_path, {"steps": [{"exit": 3}]})
    async with offering(tmp_path) as reeve:
        results = [await reeve.call("agent_test", prompt="go", session="a") for _ in range(6)]

    codes = [result.error.code for result in results if result.error is not None]
    assert codes == [ErrorCode.TOOL_EXEC] * 5 + [ErrorCode.CIRCUIT_OPEN]
    assert started(tmp_path) == 5


async def test_an_agent_that_ignores_the_end_of_its_call_is_ended(tmp_path: Path) -> None:
    write_script(tmp_path, {"steps": [{"hang": ""}]})
    async with offering(tmp_path) as reeve, asyncio.timeout(60):
        call = asyncio.create_task(reeve.call("agent_test", prompt="go", session="a"))
        kept = tmp_path / "home" / "received"
        await until(lambda: kept.exists() and "session/prompt" in kept.read_text())
        call.cancel()
        await asyncio.wait({call})
        write_script(tmp_path, {"steps": []})
        again = await reeve.call("agent_test", prompt="go", session="a")

    assert again.unwrap() == "done"
    assert started(tmp_path) == 2


async def test_an_agent_ends_with_the_token_it_was_called_with(tmp_path: Path) -> None:
    """It would go on for ten minutes otherwise, and in the middle of a turn for half an hour."""
    write_script(tmp_path, {"steps": []})
    settings = from_settings(settings_for(tmp_path, profile="goose", mode=""))
    async with serving(new_runtime(settings, approve=())) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        bob = await server.token(Role.OPERATOR, "bob")
        for headers in (ada, bob):
            write_script(home_of(tmp_path, headers is ada), {"steps": []})
            answer = await server.call("agent_test", {"prompt": "go"}, headers=headers)
            assert answer.json()["success"], answer.text
        idle = agents_running(tmp_path)
        (secret, number), _ = server.secrets.items()
        await server.reeve.internals.store.credentials.revoke(number)
        await until(lambda: len(agents_running(tmp_path)) == 1)
        left = agents_running(tmp_path)
        await server.until({"authorization": f"Bearer {secret}"}, 401)

    assert len(idle) == 2
    assert left < idle


def home_of(place: Path, is_ada: bool) -> Path:
    """A place whose `home` is that of the user's agent."""
    spec = find_agent(from_settings(settings_for(place, profile="goose", mode="")), "test")
    own = spec.home_of("ada" if is_ada else "bob")
    folder = place / ("ada" if is_ada else "bob")
    folder.mkdir(exist_ok=True)
    own.mkdir(exist_ok=True)
    (folder / "home").symlink_to(own)
    return folder


def agents_running(place: Path) -> set[int]:
    processes = [each.info | {"pid": each.pid} for each in psutil.process_iter(["cmdline", "environ"])]
    mine = [each for each in processes if str(PROGRAM) in (each["cmdline"] or ())]
    return {each["pid"] for each in mine if str(place) in (each["environ"] or {}).get("HOME", "")}


async def test_every_user_has_a_home_of_their_own(tmp_path: Path) -> None:
    spec = find_agent(from_settings(settings_for(tmp_path)), "test")
    users = ["local", "ada", "bob", "../ada", "ada/..", "a" * 300, "A" * 300, "ädå"]
    homes = [spec.home_of(user) for user in users]
    own, other = (spec.program_in(home) for home in homes[:2])

    assert homes[0] == tmp_path / "home"
    assert len(set(homes)) == len(users)
    assert {home.parent for home in homes} == {tmp_path}
    assert own.env["HOME"] == str(homes[0])
    assert other.env["HOME"] == str(homes[1])
    assert str(homes[0]) not in (other.sandbox or {})["allowed_paths"]


async def test_a_user_holds_so_many_agents_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_tools, "MAX_HELD", 2)
    write_script(tmp_path, {"steps": []})
    async with offering(tmp_path) as reeve:
        for session in "abc":
            await reeve.call("agent_test", prompt="go", session=session)
        await until(lambda: len(agents_running(tmp_path)) == 2)
        write_script(tmp_path, {"steps": [{"hang": ""}]})
        busy = [asyncio.create_task(reeve.call("agent_test", prompt="go", session=each)) for each in "de"]
        await until(lambda: started(tmp_path) == 5)
        refused = await reeve.call("agent_test", prompt="go", session="f")
        for each in busy:
            each.cancel()
        await asyncio.wait(busy)

    assert refused.error is not None
    assert (refused.error.code, "2 agents of this user" in refused.error.message) == (ErrorCode.RATE_LIMITED, True)


@pytest.mark.parametrize("forgets", [False, True])
async def test_a_conversation_goes_on_after_a_restart(tmp_path: Path, forgets: bool) -> None:
    write_script(tmp_path, {"steps": [], "loads": True})
    async with offering(tmp_path) as reeve:
        await reeve.call("agent_test", prompt="one", session="a")
    write_script(tmp_path, {"steps": [], "loads": True, "forgets": forgets})
    async with offering(tmp_path) as reeve:
        again = await reeve.call("agent_test", prompt="two", session="a")
        other = await reeve.call("agent_test", prompt="three", session="b")

    opened = [each["method"] for each in received(tmp_path) if each["method"] in ("session/new", "session/load")]
    assert opened == ["session/new", "session/load", *(["session/new"] if forgets else []), "session/new"]
    loaded = next(each["params"] for each in received(tmp_path) if each["method"] == "session/load")
    assert loaded["sessionId"] == "s1"
    assert again.unwrap() == other.unwrap() == "done"


async def test_all_questions_of_an_agent_are_shown_and_each_can_be_answered(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        *(
            {"send": {"id": name, **requests("fs/write_text_file", path=name, content="x")["request"]}}
            for name in "abc"
        ),
        *({"await": name} for name in "bac"),
    ]
    settings = from_settings(settings_for(tmp_path, profile="goose", mode=""))
    async with serving(new_runtime(settings, approve=())) as server:
        headers = await server.token(Role.OPERATOR, "ada", scopes=["read", "call", "approve"])
        write_script(home_of(tmp_path, is_ada=True), {"steps": steps})
        async with connected(server, headers) as client:
            first = await send(client, "write the files")
            questions = await asked(server, first.id, headers, 3)
            wrong = await post(
                server,
                "tasks/provideInputAndContinue",
                {"taskId": first.id, "permissionOptionId": "allow_once", "approvalId": "none"},
                **headers,
            )
            await send(client, {"optionId": "allow_once", "approvalId": questions["b"]}, task_id=first.id)
            left = await asked(server, first.id, headers, 2)
            await send(client, {"optionId": "reject_once", "approvalId": questions["a"]}, task_id=first.id)
            await send(client, "yes", task_id=first.id)
            ended = await until_ended(client, first.id)

    assert "does not wait for the approval" in wrong["error"]["message"]
    assert ended.status.state == TaskState.TASK_STATE_COMPLETED
    assert sorted(left) == ["a", "c"]
    assert sorted(each.name for each in (tmp_path / "work").iterdir()) == ["b", "c"]


async def asked(server: ApiServer, task: str, headers: dict[str, str], count: int) -> dict[str, str]:
    """The open questions of a task once there are so many: the file, and the id of its approval."""
    for _ in range(1000):
        answer = (await post(server, "tasks/getInputRequired", {"taskId": task}, **headers))["result"]
        shown = [answer, *answer.get("further", ())] if answer["inputRequired"] else []
        if len(shown) == count:
            return {each["tool_call"]["parameters"]["path"]: each["approvalId"] for each in shown}
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_output_governors_send_the_agent_back_to_work(tmp_path: Path) -> None:
    check = (
        "import json, sys; body = json.load(sys.stdin); print(json.dumps({'status': 'needs_attention', "
        "'messages': ['no tests'], 'followUpPrompt': 'write tests'}))"
    )
    file = tmp_path / "governors.yaml"
    command = [sys.executable, "-c", check]
    file.write_text(f"output_governors:\n- {{id: tests, type: script, command: {command!r}}}\n")
    write_script(tmp_path, {"steps": []})
    async with offering(tmp_path, approval=Approval(governors_file=str(file))) as reeve:
        await reeve.call("agent_test", prompt="one")

    prompts = [each["params"]["prompt"][0]["text"] for each in received(tmp_path) if each["method"] == "session/prompt"]
    assert prompts == ["one", *["write tests"] * 3]


def test_the_environment_names_an_agent(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "A2A_AGENT_COMMAND": shlex.join([sys.executable, str(PROGRAM)]),
        "A2A_AGENT_API_KEY": "the-key-of-the-model",
        "A2A_AGENT_DESCRIPTION": "Writes code.",
    }
    configuration = from_settings(Settings(), environ=environ, cwd=tmp_path)

    spec = read_agents(configuration, print)[FROM_ENVIRONMENT]

    assert (spec.program.args, spec.description) == ((str(PROGRAM),), "Writes code.")
    assert spec.program.env["A2A_AGENT_API_KEY"] == "the-key-of-the-model"
    assert spec.program.sandbox is not None
    assert spec.program.sandbox["network"] == "none"
