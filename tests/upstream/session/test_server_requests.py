"""Which caller gets a server's request, and that no other does."""

import asyncio

import pytest

from tests.upstream.callers import ScriptedCaller
from tests.upstream.scripted_transport import ScriptedTransport, opened
from tests.upstream.session.messages import ELICITS, accept, server_request, start_call
from toolreeve.core.mcp import Era


async def test_a_question_never_goes_to_another_caller() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    one = ScriptedCaller("one", capabilities=ELICITS, answer=accept)
    two = ScriptedCaller("two", capabilities=ELICITS, answer=accept)
    calls = [start_call(session, one), start_call(session, two)]
    await transport.next()
    await transport.next()

    transport.say(server_request())
    answer = await transport.next()

    assert answer["error"]["code"] == -32603
    assert "several callers" in answer["error"]["message"]
    assert one.asked == two.asked == []
    await session.close()
    await asyncio.wait(calls)


async def test_a_question_during_a_call_without_a_peer_is_answered_here() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    one = ScriptedCaller("one", capabilities=ELICITS, answer=accept)
    calls = [start_call(session, one), start_call(session)]
    await transport.next()
    await transport.next()

    transport.say(server_request())

    assert "error" in await transport.next()
    assert one.asked == []
    await session.close()
    await asyncio.wait(calls)


async def test_two_calls_of_one_client_have_one_person_behind_them() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    person = ScriptedCaller("one", capabilities=ELICITS, answer=accept)
    calls = [start_call(session, person), start_call(session, person)]
    await transport.next()
    await transport.next()

    transport.say(server_request("q-1"))

    assert await transport.next() == {"jsonrpc": "2.0", "id": "q-1", "result": {"action": "accept", "content": {}}}
    await session.close()
    await asyncio.wait(calls)


async def test_a_request_that_only_lists_does_not_make_a_question_ambiguous() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    person = ScriptedCaller("one", capabilities=ELICITS, answer=accept)
    call = start_call(session, person)
    listing = asyncio.ensure_future(session.request("tools/list", {}))
    await transport.next()
    await transport.next()

    transport.say(server_request())

    assert (await transport.next())["result"]["action"] == "accept"
    await session.close()
    await asyncio.wait({call, listing})


async def test_a_question_without_a_pending_call_is_answered_here() -> None:
    transport = ScriptedTransport()
    await opened(transport, roots=({"uri": "file:///ours"},))

    for number, method in enumerate(
        ("elicitation/create", "roots/list", "sampling/createMessage", "ping", "odd/thing")
    ):
        transport.say(server_request(number, method))
    answers = [await transport.next() for _ in range(5)]

    assert [answer.get("result") for answer in answers] == [
        {"action": "cancel"},
        {"roots": [{"uri": "file:///ours"}]},
        None,
        {},
        None,
    ]
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32601, -32601]


@pytest.mark.parametrize(
    "caller",
    [
        ScriptedCaller(era=Era.MODERN, capabilities=ELICITS, answer=accept),
        ScriptedCaller(capabilities={"sampling": {}}, answer=accept),
    ],
    ids=["of the newer era", "without the capability"],
)
async def test_a_caller_that_cannot_be_asked_is_not(caller: ScriptedCaller) -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    call = start_call(session, caller)
    await transport.next()

    transport.say(server_request())

    assert (await transport.next())["result"] == {"action": "cancel"}
    assert caller.asked == []
    await session.close()
    await asyncio.wait({call})


async def test_an_error_of_the_caller_is_handed_on() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    call = start_call(session, ScriptedCaller(capabilities=ELICITS))
    await transport.next()

    transport.say(server_request())

    assert (await transport.next())["error"] == {"code": -1, "message": "nobody answers"}
    await session.close()
    await asyncio.wait({call})
