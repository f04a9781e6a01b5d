"""The A2A door against the SDK's own client: the card, calls, streams, and what is refused."""

import pytest
from a2a.helpers import get_artifact_text
from a2a.types import AgentCard, GetExtendedAgentCardRequest, GetTaskRequest, ListTasksRequest, TaskState
from google.protobuf.json_format import ParseDict

from tests.serve.a2a.agents import connected, post, send, stream, tool_call
from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.core.call import Role

CARD = "/.well-known/agent-card.json"
CALCULATE = tool_call("calculate", expression="6 * 7")


async def test_the_card_has_a_skill_for_each_tool_and_is_not_sent_twice(world: World) -> None:
    async with serving(world.reeve()) as server:
        first = await server.client.get(CARD)
        again = await server.client.get(CARD, headers={"if-none-match": first.headers["etag"]})
        tools = (await server.client.get("/api/v1/tools")).json()

    card = first.json()
    assert {skill["id"] for skill in card["skills"]} == {tool["name"] for tool in tools["tools"]}
    versions = [(each["protocolBinding"], each["protocolVersion"]) for each in card["supportedInterfaces"]]
    assert versions == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]
    assert card["url"] == f"{server.url}/a2a"
    assert (again.status_code, again.content) == (304, b"")


async def test_a_card_shows_only_what_its_caller_may_use(world: World) -> None:
    async with serving(world.reeve()) as server:
        viewer = await server.token(Role.VIEWER)
        public = (await server.client.get(CARD)).json()
        shown = (await server.client.get(CARD, headers=viewer)).json()
        async with connected(server, viewer) as client:
            extended = await client.get_extended_agent_card(GetExtendedAgentCardRequest())

    assert [skill["id"] for skill in public["skills"]] == ["tools"]
    assert public["securitySchemes"]["bearer"]
    names = {skill["id"] for skill in shown["skills"]}
    assert "read_file" in names
    assert "write_file" not in names
    assert {skill.id for skill in extended.skills} == names


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_call_travels_the_road_and_its_result_is_an_artifact(world: World, binding: str) -> None:
    async with serving(world.reeve()) as server, connected(server, binding=binding) as client:
        task = await send(client, CALCULATE)
        found = await client.get_task(GetTaskRequest(id=task.id))
        listed = await client.list_tasks(ListTasksRequest(context_id=task.context_id))
        records = await server.reeve.audit.list(limit=5)

    assert task.status.state == TaskState.TASK_STATE_COMPLETED
    assert (task.artifacts[0].artifact_id, get_artifact_text(task.artifacts[0])) == ("1", "42")
    assert found == task
    assert ([each.id for each in listed.tasks], listed.total_size) == ([task.id], 1)
    assert [(each.body["tool"], each.body["origin"]) for each in records] == [("calculate", "a2a")]


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_stream_has_the_task_then_each_change_with_its_sequence(world: World, binding: str) -> None:
    async with serving(world.reeve()) as server, connected(server, binding=binding, streaming=True) as client:
        events = await stream(client, "/calculate expression='2 ** 10'")

    assert [each.WhichOneof("payload") for each in events] == ["task", "artifact_update", "status_update"]
    assert get_artifact_text(events[1].artifact_update.artifact) == "1024"
    assert [each.metadata["sequence"] for each in (events[1].artifact_update, events[2].status_update)] == [1, 2]


async def test_calls_run_in_order_and_the_first_failure_ends_the_task(world: World) -> None:
    calls = [
        *tool_call("calculate", "a", expression="1")["toolCalls"],
        *tool_call("read_file", "b", path="no.txt")["toolCalls"],
    ]
    calls += tool_call("calculate", "c", expression="2")["toolCalls"]
    async with serving(world.reeve()) as server, connected(server) as client:
        task = await send(client, {"toolCalls": calls})

    assert task.status.state == TaskState.TASK_STATE_FAILED
    assert [each.artifact_id for each in task.artifacts] == ["a", "b"]
    assert "The 1 calls after it were not made" in task.status.message.parts[0].text


async def test_tasks_of_another_user_do_not_exist(world: World) -> None:
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        bob = await server.token(Role.ADMIN, "bob")
        async with connected(server, ada) as client:
            task = await send(client, CALCULATE)
        seen = await post(server, "tasks/get", {"id": task.id}, **ada)
        hidden = await post(server, "tasks/get", {"id": task.id}, **bob)
        missing = await post(server, "tasks/get", {"id": "none"}, **bob)
        listed = await post(server, "tasks/list", {}, **bob)
        canceled = await post(server, "tasks/cancel", {"id": task.id}, **bob)

    assert seen["result"]["id"] == task.id
    assert (hidden["error"]["code"], missing["error"]["code"], canceled["error"]["code"]) == (-32001,) * 3
    assert listed["result"] == {"tasks": [], "total": 0, "hasMore": False}


async def test_a_client_of_version_0_3_is_answered_in_its_own_words(world: World) -> None:
    part = {"kind": "data", "data": CALCULATE}
    said = {"kind": "message", "messageId": "m1", "role": "user", "parts": [part]}
    async with serving(world.reeve()) as server:
        sent = await post(server, "message/send", {"message": said})
        listed = await post(server, "tasks/list", {"limit": 1})
        again = await post(server, "tasks/cancel", {"id": sent["result"]["id"]})

    assert (sent["result"]["kind"], sent["result"]["status"]["state"]) == ("task", "completed")
    assert [each["status"]["state"] for each in listed["result"]["tasks"]] == ["completed"]
    assert again["error"]["code"] == -32002


BAD = {
    "no call": ({"text": "hello"}, -32602, "/tool name=value"),
    "unknown tool": ({"text": "/calculat expression=1"}, -32602, "calculate"),
    "unknown key": ({"data": {"toolCalls": [{"toolId": "calculate", "parametres": {}}]}}, -32602, "parametres"),
    "no object": ({"data": [1]}, -32602, "no tool call"),
    "quotes": ({"text": "/calculate expression='1"}, -32602, "cannot be read"),
    "a file alone": ({"raw": "aGk=", "mediaType": "text/plain"}, -32005, "no tool call"),
    "long text": ({"text": "/" + "x" * 10_001}, -32602, "10,000"),
}


@pytest.mark.parametrize("case", BAD)
async def test_what_is_no_call_is_refused_with_the_way_to_say_it(world: World, case: str) -> None:
    part, code, said = BAD[case]
    params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [part]}}
    async with serving(world.reeve()) as server:
        answer = await post(server, "SendMessage", params, **{"a2a-version": "1.0"})
        listed = await post(server, "tasks/list", {})

    assert answer["error"]["code"] == code
    assert said in answer["error"]["message"]
    assert listed["result"]["total"] == 0


async def test_version_media_type_and_size_are_checked_before_anything_else(world: World) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
    async with serving(world.reeve()) as server:
        newer = await post(server, "GetTask", {"id": "x"}, **{"a2a-version": "1.7"})
        typed = await server.client.post("/a2a", content=b"{}", headers={"content-type": "text/plain"})
        large = await server.client.post("/a2a/", json={**body, "params": {"id": "x" * 5_000_000}})
        rest = await server.client.get("/a2a/rest/tasks", headers={"a2a-version": "9.9"})
        form = await server.client.post(
            "/a2a/rest/message:send", content=b"a=1", headers={"content-type": "text/plain"}
        )
        broken = await server.client.post("/a2a", content=b"{", headers={"content-type": "application/json"})

    assert newer["error"]["code"] == -32009
    assert typed.json()["error"]["code"] == -32005
    assert (large.status_code, "4,194,304" in large.text) == (200, True) or large.status_code == 413
    assert (rest.status_code, form.status_code) == (400, 415)
    assert broken.json()["error"]["code"] == -32700


async def test_a_viewer_reads_and_calls_nothing(world: World) -> None:
    async with serving(world.reeve()) as server:
        viewer = await server.token(Role.VIEWER)
        params = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "/calculate expression=1"}]}}
        answer = await post(server, "SendMessage", params, **{"a2a-version": "1.0"}, **viewer)
        anonymous = await server.client.post("/a2a", json={})

    assert "scope 'call'" in answer["error"]["message"]
    assert anonymous.status_code == 401


async def test_a_client_of_1_0_gets_a_card_without_the_fields_of_0_3(world: World) -> None:
    """A missing A2A-Version means 0.3 (specification, 3.6.2), whose clients need their own fields."""
    async with serving(world.reeve()) as server:
        place = "/.well-known/agent-card.json"
        new = await server.client.get(place, headers={"a2a-version": "1.0"})
        old = await server.client.get(place)
        again = await server.client.get(place)

    ParseDict(new.json(), AgentCard())  # knows no other fields
    assert old.json()["url"] == f"{server.url}/a2a"
    assert "url" not in new.json()
    assert new.headers["etag"] != old.headers["etag"]
    assert old.headers["last-modified"] == again.headers["last-modified"]
    assert "a2a-version" in old.headers["vary"]


@pytest.mark.parametrize("streaming", [False, True])
async def test_help_is_a_message_and_no_task(world: World, streaming: bool) -> None:
    async with serving(world.reeve()) as server, connected(server, streaming=streaming) as client:
        (reply,) = await stream(client, "/help")
        listed = await client.list_tasks(ListTasksRequest())

    assert "/calculate expression" in reply.message.parts[0].text
    assert reply.message.context_id
    assert listed.total_size == 0
