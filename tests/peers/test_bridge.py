"""The whole chain: A2A client, our server, goose in its sandbox, a scripted model."""

import asyncio
import contextlib
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
from a2a.types import CancelTaskRequest, GetTaskRequest, Task, TaskState

from tests.peers.test_goose import goose_settings, is_task
from tests.serve.a2a.agents import connected, send
from tests.serve.api.api_server import ApiServer, serving
from toolreeve.acp.client.agent_tools import AgentTools
from toolreeve.acp.client.agents import read_agents
from toolreeve.config import from_settings
from toolreeve.core.call import Role
from toolreeve.runtime.toolreeve import Toolreeve
from toolreeve.testing import ScriptedModel, call, say
from toolreeve.testing.script import Reply

APPROVER = ["read", "call", "approve"]


@asynccontextmanager
async def bridge(place: Path, turns: list[Reply]) -> AsyncIterator[tuple[ApiServer, ScriptedModel]]:
    with ScriptedModel(turns, only=is_task) as model:
        configuration = from_settings(goose_settings(place, model))
        agents = AgentTools(list(read_agents(configuration, print).values()))
        reeve = Toolreeve(settings=configuration, approve=(), tools=agents.tools)
        agents.bind(reeve)
        async with serving(reeve) as server:
            yield server, model


async def decide(console: httpx2.AsyncClient, number: str) -> httpx2.Response:
    """The console shows a card before it can be answered."""
    place = f"/api/v1/approvals/{number}"
    card = (await console.get(place)).json()
    for _ in range(100):
        answer = await console.post(f"{place}/decide", json={"digest": card["digest"], "answer": "allow"})
        if answer.status_code == 200:
            break
        await asyncio.sleep(0.05)
    return answer


async def test_two_approvals_one_in_the_console_and_one_over_a2a(tmp_path: Path) -> None:
    turns: list[Reply] = [
        call("write", path=str(tmp_path / "work" / "a.txt"), content="one\n"),
        call("shell", command="cat a.txt > b.txt"),
        say("Finished the job."),
        say("I remember."),
    ]
    async with bridge(tmp_path, turns) as (server, model):
        approver = await server.token(Role.OPERATOR, "anna", scopes=APPROVER)
        async with connected(server, approver) as client, server.browser() as console:
            first = await send(client, "write the files")
            assert first.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
            assert not (tmp_path / "work" / "a.txt").exists()
            waiting = (await console.get("/api/v1/approvals")).json()["approvals"]
            assert [each["tool"] for each in waiting] == ["write_file"]
            answer = await decide(console, waiting[0]["id"])
            assert answer.status_code == 200, answer.text

            second = await wait_for(server, first.id, approver, TaskState.TASK_STATE_INPUT_REQUIRED, "bash")
            done = await send(client, "allow_once", task_id=second.id, context_id=second.context_id)
            later = await send(client, "go on", context_id=first.context_id)

    assert done.status.state == TaskState.TASK_STATE_COMPLETED
    assert (tmp_path / "work" / "b.txt").read_text() == "one\n"
    assert done.artifacts[0].parts[0].text == "Finished the job."
    assert later.artifacts[0].parts[0].text == "I remember."
    assert "write the files" in str(model.requests[3]["messages"])


async def wait_for(server: ApiServer, number: str, headers: dict[str, str], state: TaskState, text: str) -> Task:
    """The task once it is in this state with this question."""
    async with connected(server, headers) as client:
        for _ in range(200):
            task = await client.get_task(GetTaskRequest(id=number))
            if task.status.state == state and text in str(task.status.message):
                return task
            await asyncio.sleep(0.05)
    raise TimeoutError


async def test_a_task_that_is_canceled_at_its_question_changes_nothing(tmp_path: Path) -> None:
    turns: list[Reply] = [call("write", path=str(tmp_path / "work" / "a.txt"), content="one\n"), say("No.")]
    async with bridge(tmp_path, turns) as (server, _):
        headers = await server.token(Role.OPERATOR, "anna", scopes=APPROVER)
        async with connected(server, headers) as client:
            first = await send(client, "write the file")
            ended = await client.cancel_task(CancelTaskRequest(id=first.id))

    assert first.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert ended.status.state == TaskState.TASK_STATE_CANCELED
    assert not (tmp_path / "work" / "a.txt").exists()


@asynccontextmanager
async def server_process(place: Path, model: ScriptedModel) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """`toolreeve serve` with goose configured, and its address."""
    settings = goose_settings(place, model)
    table = settings.acp_agents["goose"]
    config = place / "home" / ".config" / "toolreeve"
    config.mkdir(parents=True, exist_ok=True)
    (config / "toolreeve.toml").write_text(
        f"[network]\nallow = {json.dumps(list(settings.network.allow))}\n"
        f"[approval]\ntimeout = 60\n[acp_agents.goose]\ncommand = {json.dumps(table['command'])}\n"
        f"hosts = {json.dumps(table['hosts'])}\nhome = {json.dumps(str(place / 'goose'))}\n"
        "[acp_agents.goose.env]\n" + "".join(f"{name} = {json.dumps(text)}\n" for name, text in table["env"].items())
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "toolreeve", "serve", "--port", "0", "--workspace", str(place / "work")),
        env={"PATH": os.environ["PATH"], "HOME": str(place / "home")},
        cwd=place,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        while not (found := re.search(rb"A2A at (\S+)/a2a", await process.stderr.readline())):
            assert process.returncode is None
        yield process, found[1].decode()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def running_agents(place: Path) -> list[int]:
    home = str(place / "goose")
    found = []
    for each in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if each.name() == "goose" and each.environ().get("HOME") == home:
                found.append(each.pid)
    return found


async def test_a_task_whose_server_is_killed_is_found_and_not_repeated(tmp_path: Path) -> None:
    turns: list[Reply] = [call("write", path=str(tmp_path / "work" / "a.txt"), content="one\n"), say("Done.")]
    with ScriptedModel(turns, only=is_task) as model:
        async with server_process(tmp_path, model) as (process, url):
            asked = await ask_over_http(url, "SendMessage", "write the file")
            assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            assert running_agents(tmp_path)
            process.kill()
            await process.wait()
        async with server_process(tmp_path, model) as (_, url):
            found = await ask_over_http(url, "GetTask", asked["id"])
        for _ in range(100):
            if not running_agents(tmp_path):
                break
            await asyncio.sleep(0.05)

    assert found["status"]["state"] == "TASK_STATE_FAILED"
    assert "is not repeated" in str(found["status"]["message"])
    assert len(model.requests) == 1
    assert not (tmp_path / "work" / "a.txt").exists()
    assert running_agents(tmp_path) == []


async def ask_over_http(url: str, method: str, text: str) -> dict[str, Any]:
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}]}
    params = {"message": message} if method == "SendMessage" else {"id": text}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx2.AsyncClient(timeout=30) as client:
        answer = (await client.post(f"{url}/a2a", json=body, headers={"A2A-Version": "1.0"})).json()
    task: dict[str, Any] = answer["result"].get("task", answer["result"])
    return task
