"""Deadlines of server requests: a person's time is not the call's, and a question ends with its call."""

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.upstream.callers import ScriptedCaller
from tests.upstream.scripted_transport import ScriptedTransport, opened
from tests.upstream.session.messages import ELICITS, accept, server_request, start_call
from toolreeve.core.deadline import Deadline


class Thinking:
    """Somebody who has not decided yet."""

    def __init__(self) -> None:
        self.asked, self.decided, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.set()
        try:
            await self.decided.wait()
        finally:
            self.left.set()
        return {"action": "accept", "content": {}}


async def test_the_time_that_a_person_thinks_is_not_the_calls() -> None:
    transport, thinking = ScriptedTransport(), Thinking()
    session = await opened(transport)
    person = ScriptedCaller(capabilities=ELICITS, answer=thinking)
    deadline, passed = Deadline(0.2, 5.0), asyncio.Event()
    deadline.start(passed.set)
    call = asyncio.ensure_future(session.request("tools/call", {"name": "work"}, peer=person, deadline=deadline))
    asked = await transport.next()
    transport.say(server_request())
    await thinking.asked.wait()

    done, _ = await asyncio.wait({call, asyncio.ensure_future(passed.wait())}, timeout=0.5)
    thinking.decided.set()
    await transport.next()
    transport.say({"jsonrpc": "2.0", "id": asked["id"], "result": {"done": True}})

    assert not done
    assert await call == {"done": True}


async def test_a_question_ends_with_the_call_it_was_for() -> None:
    transport, thinking = ScriptedTransport(), Thinking()
    session = await opened(transport)
    call = start_call(session, ScriptedCaller(capabilities=ELICITS, answer=thinking))
    asked = await transport.next()
    transport.say(server_request())
    await thinking.asked.wait()

    transport.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    await call

    await asyncio.wait_for(thinking.left.wait(), 5)
    assert not thinking.decided.is_set()


async def test_a_question_ends_with_its_call_though_another_callers_goes_on() -> None:
    transport, thinking = ScriptedTransport(), Thinking()
    session = await opened(transport)
    call = start_call(session, ScriptedCaller("one", capabilities=ELICITS, answer=thinking))
    asked = await transport.next()
    transport.say(server_request())
    await thinking.asked.wait()
    other = start_call(session, ScriptedCaller("two", capabilities=ELICITS, answer=accept))
    await transport.next()

    transport.say({"jsonrpc": "2.0", "id": asked["id"], "result": {}})
    await call

    await asyncio.wait_for(thinking.left.wait(), 5)
    await session.close()
    await asyncio.wait({other})


async def test_a_server_can_cancel_its_question() -> None:
    transport, thinking = ScriptedTransport(), Thinking()
    session = await opened(transport)
    call = start_call(session, ScriptedCaller(capabilities=ELICITS, answer=thinking))
    await transport.next()
    transport.say(server_request(77))
    await thinking.asked.wait()

    transport.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}})

    await asyncio.wait_for(thinking.left.wait(), 5)
    await session.close()
    await asyncio.wait({call})


async def test_a_server_cannot_open_questions_without_end() -> None:
    transport, thinking = ScriptedTransport(), Thinking()
    session = await opened(transport)
    person = ScriptedCaller(capabilities=ELICITS, answer=thinking)
    call = start_call(session, person)
    await transport.next()

    for number in range(1000):
        transport.say(server_request(number))
    refused = [await transport.next() for _ in range(1000 - 32)]

    assert all("too many" in each["error"]["message"] for each in refused)
    assert len(person.asked) == 32
    await session.close()
    await asyncio.wait({call})
