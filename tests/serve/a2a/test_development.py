"""The development-tool extension: each call's life for a caller that asks for it."""

from google.protobuf.json_format import MessageToDict

from tests.serve.a2a.agents import connected, send, stream, tool_call
from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.a2a.development import URI
from toolreeve.serve.tokens import AccessScope

APPROVES = (AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE)
ACTIVE = {"a2a-extensions": f"https://example.com/other, {URI}"}


async def test_the_life_of_a_call_is_told_to_a_caller_that_activated_the_extension(world: World) -> None:
    async with serving(world.reeve()) as server:
        token = await server.token(Role.OPERATOR, "ada", scopes=APPROVES)
        async with connected(server, {**token, **ACTIVE}, streaming=True) as client:
            calls = [*tool_call("calculate", "a", expression="1")["toolCalls"]]
            calls += tool_call("write_file", "b", path="a.txt", content="x")["toolCalls"]
            events = [MessageToDict(each) for each in await stream(client, {"toolCalls": calls})]
            number = events[0]["task"]["id"]
            said = {"toolCallId": "b", "selectedOptionId": "allow_once"}
            answered = [MessageToDict(each) for each in await stream(client, said, task_id=number)]

    updates = [each["statusUpdate"] for each in (*events, *answered) if "statusUpdate" in each]
    told = [each for each in updates if URI in each["metadata"]]
    lives = [next(part["data"] for part in reversed(each["status"]["message"]["parts"])) for each in told]
    if len(lives) == 5:  # the call was running again when the second stream began: the task says so
        lives.insert(4, answered[0]["task"]["status"]["message"]["parts"][-1]["data"])
    assert [(each["toolCallId"], each["status"]) for each in lives] == [
        ("a", "EXECUTING"),
        ("a", "SUCCEEDED"),
        ("b", "EXECUTING"),
        ("b", "PENDING"),
        ("b", "EXECUTING"),
        ("b", "SUCCEEDED"),
    ]
    kinds = [each["metadata"][URI]["kind"] for each in told]
    assert kinds[:4] == ["TOOL_CALL_UPDATE"] * 3 + ["TOOL_CALL_CONFIRMATION"]
    assert set(kinds[4:]) == {"TOOL_CALL_UPDATE"}
    assert [each["id"] for each in lives[3]["confirmationRequest"]["options"]] == ["allow_once", "reject_once"]
    assert lives[1]["output"] == {"text": "1"}


async def test_a_failure_is_told_and_other_callers_are_not(world: World) -> None:
    async with serving(world.reeve()) as server:
        async with connected(server, ACTIVE) as client:
            failed = await send(client, tool_call("read_file", path="no.txt"))
        async with connected(server) as client:
            plain = await send(client, tool_call("read_file", path="no.txt"))
        card = (await server.client.get("/.well-known/agent-card.json")).json()

    life = MessageToDict(failed.status.message.parts[-1].data)
    assert (life["status"], life["error"]["type"]) == ("FAILED", "E_FILE_NOT_FOUND")
    assert len(plain.status.message.parts) == 1
    assert [each["uri"] for each in card["capabilities"]["extensions"]] == [URI]
