"""Messages as they are sent: repeated ones do nothing twice, malformed ones nothing at all."""

import asyncio
from typing import Any

import pytest
from a2a.types import Message, Part, Role
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from tests.serve.a2a.agents import post
from tests.serve.api.api_server import serving
from tests.world import World
from toolreeve import tool
from toolreeve.core.call import Role as UserRole
from toolreeve.serve.a2a.messages import RequestedCall, read_answer, read_calls
from toolreeve.serve.tokens import AccessScope

VERSION = {"a2a-version": "1.0"}
APPROVES = (AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE)


def sent(number: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"message": {"messageId": number, "role": "ROLE_USER", "parts": list(parts), **more}}


async def test_a_message_that_is_sent_again_runs_once_and_gets_the_same_task(world: World) -> None:
    ran = []

    @tool(danger="safe")
    def count() -> int:
        """Count the calls."""
        ran.append(1)
        return len(ran)

    async with serving(world.reeve(tools=[count])) as server:
        first = sent("m", {"text": "/count"})
        answers = await asyncio.gather(*(post(server, "SendMessage", first, **VERSION) for _ in range(5)))
        streamed = await post(server, "SendStreamingMessage", first, **VERSION)
        other = await post(server, "SendMessage", sent("m", {"text": "/calculate expression=1"}), **VERSION)
        bob = await server.token(UserRole.OPERATOR, "bob")
        of_bob = await post(server, "SendMessage", first, **VERSION, **bob)

    tasks = [each["result"]["task"] for each in answers]
    assert len({task["id"] for task in tasks}) == 1
    assert {task["status"]["state"] for task in tasks} == {"TASK_STATE_COMPLETED"}
    assert streamed["result"]["task"] == tasks[0]
    assert other["result"]["task"]["artifacts"][0]["parts"][0]["text"] == "1"
    assert of_bob["result"]["task"]["id"] != tasks[0]["id"]
    assert ran == [1, 1]


async def test_an_answer_that_is_sent_again_does_not_answer_the_next_question(world: World) -> None:
    calls = [{"id": name, "toolId": "write_file", "parameters": {"path": name, "content": name}} for name in ("a", "b")]
    async with serving(world.reeve()) as server:
        ada = await server.token(UserRole.OPERATOR, "ada", scopes=APPROVES)
        asked = await post(server, "SendMessage", sent("m1", {"data": {"toolCalls": calls}}), **ada, **VERSION)
        number = asked["result"]["task"]["id"]
        yes = sent("m2", {"text": "yes"}, taskId=number)
        answers = [await post(server, "SendMessage", yes, **ada, **VERSION) for _ in range(3)]

    assert [each["result"]["task"]["status"]["state"] for each in answers] == ["TASK_STATE_INPUT_REQUIRED"] * 3
    assert ((world.workspace / "a").exists(), (world.workspace / "b").exists()) == (True, False)


MALFORMED: dict[str, Any] = {
    "no message": {},
    "no parts": sent("m"),
    "no id": {"message": {"role": "ROLE_USER", "parts": [{"text": "/calculate expression=1"}]}},
    "unknown role": sent("m", {"text": "/calculate expression=1"}, role="ROLE_KING"),
    "our role": sent("m", {"text": "/calculate expression=1"}, role="ROLE_AGENT"),
    "an empty part": sent("m", {}),
    "a part of two kinds": sent("m", {"text": "a", "data": {}}),
    "a part that is a text": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": ["text"]}},
    "bytes that are none": sent("m", {"raw": "!!!"}),
    "parts that are no list": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": {}}},
    "deep data": sent("m", {"data": {"toolId": "calculate", "parameters": {"expression": [[[[[[[[[[1]]]]]]]]]]}}}),
    "params that are a list": [],
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_a_malformed_message_is_refused_and_begins_nothing(world: World, case: str) -> None:
    async with serving(world.reeve()) as server:
        answer = await post(server, "SendMessage", MALFORMED[case], **VERSION)
        listed = await post(server, "tasks/list", {})
        records = await server.reeve.audit.list(limit=5)

    failed = "error" in answer or answer["result"]["task"]["status"]["state"] != "TASK_STATE_COMPLETED"
    assert failed, answer
    if "error" in answer:
        assert answer["error"]["code"] in (-32600, -32602, -32005)
        assert (listed["result"]["total"], list(records)) == (0, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
KEYS = st.sampled_from(["toolCalls", "toolId", "parameters", "id", "optionId", "confirmed", "$file"])
DATA = JSON | st.dictionaries(KEYS, JSON | st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=3), max_size=4)
PARTS = st.builds(lambda value: Part(data=ParseDict(value, Value())), DATA) | st.builds(
    lambda text: Part(text=text), st.text(max_size=60) | st.text(max_size=30).map("/{}".format)
)


@given(st.lists(PARTS, max_size=3))
def test_whatever_is_said_is_read_or_refused(parts: list[Part]) -> None:
    message = Message(message_id="m", role=Role.ROLE_USER, parts=parts)
    assert read_answer(message) in (True, False, None)
    try:
        calls = read_calls(message, max_file_bytes=100)
    except A2AError:
        return
    assert calls
    assert all(isinstance(call, RequestedCall) and call.tool for call in calls)
