"""Whom a server's question is put to, and that it is never put to somebody else."""

import asyncio

import pytest

from tests.upstream.people import Person
from tests.upstream.scripted import Scripted, opened
from tests.upstream.session.talking import ELICITS, accept, asking, calling
from toolreeve.core.mcp import Era


async def test_a_question_is_never_put_to_somebody_else() -> None:
    line = Scripted()
    session = await opened(line)
    one = Person("one", capabilities=ELICITS, answer=accept)
    two = Person("two", capabilities=ELICITS, answer=accept)
    calls = [calling(session, one), calling(session, two)]
    await line.next()
    await line.next()

    line.say(asking())
    answer = await line.next()

    assert answer["error"]["code"] == -32603
    assert "several callers" in answer["error"]["message"]
    assert one.asked == two.asked == []
    await session.close()
    await asyncio.wait(calls)


async def test_a_question_while_a_call_without_a_caller_runs_is_put_to_nobody() -> None:
    line = Scripted()
    session = await opened(line)
    one = Person("one", capabilities=ELICITS, answer=accept)
    calls = [calling(session, one), calling(session)]
    await line.next()
    await line.next()

    line.say(asking())

    assert "error" in await line.next()
    assert one.asked == []
    await session.close()
    await asyncio.wait(calls)


async def test_two_calls_of_one_client_have_one_person_behind_them() -> None:
    line = Scripted()
    session = await opened(line)
    person = Person("one", capabilities=ELICITS, answer=accept)
    calls = [calling(session, person), calling(session, person)]
    await line.next()
    await line.next()

    line.say(asking("q-1"))

    assert await line.next() == {"jsonrpc": "2.0", "id": "q-1", "result": {"action": "accept", "content": {}}}
    await session.close()
    await asyncio.wait(calls)


async def test_a_request_that_only_lists_does_not_make_a_question_ambiguous() -> None:
    line = Scripted()
    session = await opened(line)
    person = Person("one", capabilities=ELICITS, answer=accept)
    call = calling(session, person)
    listing = asyncio.ensure_future(session.request("tools/list", {}))
    await line.next()
    await line.next()

    line.say(asking())

    assert (await line.next())["result"]["action"] == "accept"
    await session.close()
    await asyncio.wait({call, listing})


async def test_a_question_out_of_the_blue_is_answered_for_nobody() -> None:
    line = Scripted()
    await opened(line, roots=({"uri": "file:///ours"},))

    for number, method in enumerate(
        ("elicitation/create", "roots/list", "sampling/createMessage", "ping", "odd/thing")
    ):
        line.say(asking(number, method))
    answers = [await line.next() for _ in range(5)]

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
    [Person(era=Era.MODERN, capabilities=ELICITS, answer=accept), Person(capabilities={"sampling": {}}, answer=accept)],
    ids=["of the newer era", "without the capability"],
)
async def test_a_caller_that_cannot_be_asked_is_not(caller: Person) -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session, caller)
    await line.next()

    line.say(asking())

    assert (await line.next())["result"] == {"action": "cancel"}
    assert caller.asked == []
    await session.close()
    await asyncio.wait({call})


async def test_an_error_of_the_caller_is_handed_on() -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session, Person(capabilities=ELICITS))
    await line.next()

    line.say(asking())

    assert (await line.next())["error"] == {"code": -1, "message": "nobody answers"}
    await session.close()
    await asyncio.wait({call})
