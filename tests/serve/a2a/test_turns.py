"""Questions over A2A: a task waits for a person, wherever they answer, and nothing runs twice."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from a2a.client import Client
from a2a.types import CancelTaskRequest, GetTaskRequest, SubscribeToTaskRequest, Task, TaskState

from tests.serve.a2a.agents import connected, post, send, stream, tool_call
from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.config import State
from toolreeve.config.sections.a2a import A2a
from toolreeve.core.call import Principal, Role
from toolreeve.serve.tokens import AccessScope, Tokens

WRITE = tool_call("write_file", path="a.txt", content="written")
APPROVES = (AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE)
WAITS = TaskState.TASK_STATE_INPUT_REQUIRED
DONE = TaskState.TASK_STATE_COMPLETED
CANCELED = TaskState.TASK_STATE_CANCELED


async def pending(server: ApiServer) -> list[str]:
    return [each["id"] for each in (await server.reeve.approvals.list()).items]


async def until_ended(client: Client, number: str) -> Task:
    for _ in range(400):
        task = await client.get_task(GetTaskRequest(id=number))
        if task.status.state != WAITS and task.status.state != TaskState.TASK_STATE_WORKING:
            return task
        await asyncio.sleep(0.02)
    raise TimeoutError


@pytest.mark.parametrize(
    "said",
    [{"decision": "approve"}, {"optionId": "allow_once"}, {"confirmed": True}, "yes", "Proceed_once."],
    ids=["decision", "option", "confirmed", "text", "alias"],
)
async def test_an_approver_answers_with_the_next_message_and_the_call_runs_once(world: World, said: Any) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.OPERATOR, "ada", scopes=APPROVES)
        async with connected(server, token) as client:
            asked = await send(client, WRITE)
            before = (world.workspace / "a.txt").exists()
            done = await send(client, said, task_id=asked.id)
            records = await server.reeve.audit.list(limit=20)

    described = asked.status.message.parts[1].data.struct_value["input_required"]
    assert asked.status.state == WAITS
    assert described["tool_call"]["toolId"] == "write_file"
    assert [each["optionId"] for each in described["permission_options"]] == ["allow_once", "reject_once"]
    assert (before, done.status.state, (world.workspace / "a.txt").read_text()) == (False, DONE, "written")
    assert [each.body.get("success") for each in records if each.kind == "call"] == [True, False]


async def test_an_agent_may_refuse_but_never_approve_its_own_call(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.OPERATOR, "agent")
        async with connected(server, token) as client:
            asked = await send(client, WRITE)
        said = {"taskId": asked.id, "permissionOptionId": "allow_once"}
        refused = await post(server, "tasks/provideInputAndContinue", said, **token)
        waiting = await post(server, "tasks/getInputRequired", {"taskId": asked.id}, **token)
        ended = await post(
            server, "tasks/provideInputAndContinue", {**said, "permissionOptionId": "reject_once"}, **token
        )

    assert "scope 'approve'" in refused["error"]["message"]
    assert waiting["result"]["inputRequired"] is True
    assert ended["result"]["status"]["state"] == "canceled"
    assert not (world.workspace / "a.txt").exists()


async def test_an_ambiguous_answer_asks_again(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.OPERATOR, "ada", scopes=APPROVES)
        async with connected(server, token) as client:
            asked = await send(client, WRITE)
            unclear = await send(client, "maybe later", task_id=asked.id)
            lasting = await send(client, {"optionId": "allow_always"}, task_id=asked.id)
            both = await send(client, {"decision": "approve", "confirmed": False}, task_id=asked.id)
            open_questions = await pending(server)

    assert [each.status.state for each in (unclear, lasting, both)] == [WAITS] * 3
    assert "neither yes nor no" in unclear.status.message.parts[0].text
    assert len(open_questions) == 1
    assert not (world.workspace / "a.txt").exists()


async def test_a_person_elsewhere_answers_and_a_stream_sees_it(world: World) -> None:
    async with serving(world.reeve()) as server, connected(server, streaming=True) as client:
        events = await stream(client, WRITE)
        number = events[0].task.id
        following = client.subscribe(SubscribeToTaskRequest(id=number))
        seen = [await anext(following)]
        (question,) = await pending(server)
        await server.reeve.approvals.decide(
            question, answer="allow", by=Principal(user="pat", role=Role.ADMIN), dead_time=0
        )
        seen += [each async for each in following]

    states = [each.status_update.status.state for each in seen if each.HasField("status_update")]
    assert events[-1].status_update.status.state == WAITS
    assert seen[0].task.status.state == WAITS
    assert states == [TaskState.TASK_STATE_WORKING, DONE]
    assert (world.workspace / "a.txt").read_text() == "written"


async def test_a_stream_continues_after_the_sequence_it_has_seen(world: World) -> None:
    headers = {"last-event-id": "1", "a2a-version": "1.0"}
    async with serving(world.reeve()) as server:
        async with connected(server) as client:
            task = await send(client, tool_call("calculate", expression="1 + 1"))
        body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task.id}}
        rest = await server.client.post("/a2a", json=body, headers=headers)
        ended = await server.client.post("/a2a", json=body, headers={"a2a-version": "1.0"})
        bad = await server.client.post("/a2a", json=body, headers={**headers, "last-event-id": "x"})

    assert rest.text.count("data: ") == 1
    assert "TASK_STATE_COMPLETED" in rest.text
    assert ended.json()["error"]["code"] == -32004
    assert bad.json()["error"]["code"] == -32602


async def test_a_canceled_task_withdraws_its_question_and_is_canceled_once(world: World) -> None:
    async with serving(world.reeve()) as server, connected(server) as client:
        asked = await send(client, WRITE)
        done = await client.cancel_task(CancelTaskRequest(id=asked.id))
        open_questions = await pending(server)
        again = await post(server, "tasks/cancel", {"id": asked.id})
        late = await post(server, "tasks/provideInputAndContinue", {"taskId": asked.id, "input": "no"})

    assert (done.status.state, open_questions) == (CANCELED, [])
    assert (again["error"]["code"], late["error"]["code"]) == (-32002, -32004)


async def test_of_two_answers_at_once_one_counts(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.OPERATOR, "ada", scopes=APPROVES)
        async with connected(server, token) as client:
            asked = await send(client, WRITE)
            said = {"taskId": asked.id, "input": "yes"}
            answers = await asyncio.gather(
                *(post(server, "tasks/provideInputAndContinue", said, **token) for _ in range(5))
            )
            task = await until_ended(client, asked.id)
            calls = [each for each in await server.reeve.audit.list(limit=50) if each.body.get("success") is True]

    assert sum("result" in each for each in answers) == 1
    assert {each["error"]["code"] for each in answers if "error" in each} <= {-32602, -32004}
    assert (task.status.state, len([each for each in calls if each.kind == "call"])) == (DONE, 1)


async def test_a_restarted_server_finds_its_task_and_runs_the_call_once(world: World) -> None:
    """The question is answered while no server runs at all."""
    async with serving(world.reeve()) as server, connected(server) as client:
        asked = await send(client, WRITE)
        (question,) = await pending(server)
        row = await server.reeve.internals.store.tasks.find(asked.id)
    async with world.reeve() as other:
        await other.approvals.decide(question, answer="allow", by=Principal(user="pat", role=Role.ADMIN), dead_time=0)
    async with serving(world.reeve()) as server, connected(server) as client:
        task = await until_ended(client, asked.id)
        records = await server.reeve.audit.list(limit=50)

    assert row is not None
    assert (row.question, row.process) == (question, "")
    assert task.status.state == DONE
    assert len([each for each in records if each.kind == "call" and each.body["success"] is True]) == 1


async def test_a_call_that_a_killed_process_had_begun_is_not_repeated(world: World) -> None:
    script = (
        "import asyncio, os, signal\n"
        "from toolreeve import Toolreeve\n"
        "from toolreeve.config import Settings, State, Workspace\n"
        "from toolreeve.config.sections.policy import Policy\n"
        "from tests.serve.a2a.agents import connected, send, tool_call\n"
        "from tests.serve.api.api_server import serving\n"
        "async def die(name: str) -> str:\n"
        "    'Write a mark, then die.'\n"
        "    open(name, 'a').write('ran')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "async def main():\n"
        f"    workspace = Workspace(dir={str(world.workspace)!r})\n"
        f"    state = State(dir={str(world.state)!r})\n"
        "    settings = Settings(workspace=workspace, state=state, policy=Policy(mode='bypass'))\n"
        "    reeve = Toolreeve(settings=settings, tools=[die])\n"
        "    async with serving(reeve) as server, connected(server) as client:\n"
        f"        await send(client, tool_call('die', name={str(world.workspace / 'mark')!r}))\n"
        "asyncio.run(main())\n"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", script, env={**os.environ, "PYTHONPATH": "."})
    status = await asyncio.wait_for(child.wait(), 60)
    async with serving(world.reeve()) as server:
        (row,) = (await post(server, "tasks/list", {}))["result"]["tasks"]
        task = await server.reeve.internals.store.tasks.find(row["id"])

    assert status == -signal.SIGKILL
    assert (world.workspace / "mark").read_text() == "ran"
    assert row["status"]["state"] == "failed"
    assert "may have taken effect" in row["status"]["message"]["parts"][0]["text"]
    assert task is not None
    assert task.ended


async def test_a_parked_task_of_a_killed_server_is_found_and_its_call_runs_once(world: World, tmp_path: Path) -> None:
    """`toolreeve serve` is killed with SIGKILL while a person decides, and started again."""
    place = {"XDG_STATE_HOME": str(world.state), "XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    said = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": WRITE}]}}
    async with serve_process(world, place) as (process, http):
        asked = (await rpc(http, "SendMessage", said))["task"]
        process.kill()
        await process.wait()
    settings = world.settings(state=State(dir=str(world.state / "toolreeve")))
    async with world.reeve(settings=settings) as other:
        (question,) = (await other.approvals.list()).items
        before = await other.internals.store.tasks.find(asked["id"])
        async with serve_process(world, place) as (_, http):
            found = await rpc(http, "GetTask", {"id": asked["id"]})
            by = Principal(user="pat", role=Role.ADMIN)
            await other.approvals.decide(question["id"], answer="allow", by=by, dead_time=0)
            for _ in range(400):
                task = await rpc(http, "GetTask", {"id": asked["id"]})
                if task["status"]["state"] == "TASK_STATE_COMPLETED":
                    break
                await asyncio.sleep(0.02)
            repeated = (await rpc(http, "SendMessage", said))["task"]
        records = await other.audit.list(limit=50)

    assert before is not None
    assert (before.question, found["status"]["state"]) == (question["id"], "TASK_STATE_INPUT_REQUIRED")
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert (repeated["id"], repeated["artifacts"]) == (task["id"], task["artifacts"])
    assert len([each for each in records if each.kind == "call" and each.body["success"] is True]) == 1
    assert (world.workspace / "a.txt").read_text() == "written"


@asynccontextmanager
async def serve_process(
    world: World, env: Mapping[str, str]
) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx2.AsyncClient]]:
    """`toolreeve serve`, and a client at its address."""
    command = (sys.executable, "-m", "toolreeve", "serve", "--port", "0", "--workspace", str(world.workspace))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **env}, stderr=pipe)
    assert process.stderr is not None
    try:
        line = await asyncio.wait_for(process.stderr.readline(), 60)
        url = line.decode().split()[3].removesuffix("/mcp,")
        async with httpx2.AsyncClient(base_url=url, timeout=20) as client:
            yield process, client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def rpc(http: httpx2.AsyncClient, method: str, params: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await http.post("/a2a", json=body, headers={"a2a-version": "1.0"})).json()["result"]


async def test_a_token_that_was_revoked_meanwhile_continues_nothing(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.OPERATOR, "gone")
        other = await server.token(Role.OPERATOR, "gone")
        async with connected(server, token) as client:
            asked = await send(client, WRITE)
        await server.reeve.internals.store.credentials.revoke(next(iter(server.secrets.values())))
        await server.until(token, 401)
        (question,) = await pending(server)
        await server.reeve.approvals.decide(
            question, answer="allow", by=Principal(user="pat", role=Role.ADMIN), dead_time=0
        )
        async with connected(server, other) as client:
            task = await until_ended(client, asked.id)

    assert task.status.state == TaskState.TASK_STATE_FAILED
    assert not (world.workspace / "a.txt").exists()


async def test_a_user_has_so_many_waiting_tasks_and_no_more(world: World) -> None:
    settings = world.settings(a2a=A2a(waiting_tasks_per_user=2))
    async with serving(world.reeve(settings=settings)) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        bob = await server.token(Role.OPERATOR, "bob")
        async with connected(server, ada) as client, connected(server, bob) as other:
            tasks = [await send(client, tool_call("write_file", path=f"{n}.txt", content="x")) for n in range(3)]
            free = await send(other, tool_call("write_file", path="3.txt", content="x"))
            await client.cancel_task(CancelTaskRequest(id=tasks[0].id))
            again = await send(client, tool_call("write_file", path="4.txt", content="x"))
            open_questions = await pending(server)

    assert [each.status.state for each in tasks] == [WAITS, WAITS, TaskState.TASK_STATE_FAILED]
    assert "a2a.waiting_tasks_per_user" in tasks[2].status.message.parts[0].text
    assert (free.status.state, again.status.state) == (WAITS, WAITS)
    assert len(open_questions) == 3


async def test_a_task_does_not_go_on_with_a_token_that_has_expired(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour = 3600
    later_by = [0]
    kept = Tokens.__init__
    monkeypatch.setattr(Tokens, "__init__", lambda self: kept(self, now=lambda: time.time() + later_by[0]))
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada", expires=time.time() + hour)
        async with connected(server, ada) as client:
            asked = await send(client, WRITE)
        later_by[0] = 2 * hour
        await server.until(ada, 401)
        (question,) = await pending(server)
        pat = Principal(user="pat", role=Role.ADMIN)
        await server.reeve.approvals.decide(question, answer="allow", by=pat, dead_time=0)
        later = await server.token(Role.OPERATOR, "ada")
        async with connected(server, later) as client:
            ended = await until_ended(client, asked.id)

    assert ended.status.state == TaskState.TASK_STATE_FAILED
    assert "no longer accepted" in ended.status.message.parts[0].text
    assert not (world.workspace / "a.txt").exists()
