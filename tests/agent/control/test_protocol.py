import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from toolreeve.agent.control.messages import ControlRequest, ControlResponse
from toolreeve.agent.control.protocol import ControlProtocol
from toolreeve.agent.control.transports import InMemoryTransport, Transport


async def answer_next(transport: InMemoryTransport, **data: object) -> None:
    request = json.loads(await transport.get_write_receiver().receive())
    response = ControlResponse(request["request_id"], data)
    await transport.get_read_sender().send(response.to_json())


async def test_a_response_is_matched_by_id_whatever_comes_before_it() -> None:
    transport = InMemoryTransport()
    protocol = ControlProtocol(transport=transport)
    await protocol.start()
    for noise in (
        "not json",
        "[]",
        '{"request_id": "req_other", "data": {"answer": "no"}}',
        '{"data": {}}',
        '{"request_id": ["x"], "data": {}}',
    ):
        await transport.get_read_sender().send(noise)

    answered, _ = await asyncio.gather(protocol.ask("Which?"), answer_next(transport, answer="this"))

    assert answered == "this"
    await protocol.stop()


async def test_a_request_that_nobody_answers_times_out() -> None:
    protocol = ControlProtocol(transport=InMemoryTransport())
    await protocol.start()

    with pytest.raises(TimeoutError):
        await protocol.send_request(ControlRequest.create("question", {}), timeout=0.01)
    await protocol.stop()


async def test_a_transport_that_cannot_write_times_out_too() -> None:
    protocol = ControlProtocol(transport=InMemoryTransport(buffer_size=1))
    await protocol.start()
    await protocol.progress("fills the buffer")

    with pytest.raises(TimeoutError):
        await protocol.send_request(ControlRequest.create("question", {}), timeout=0.01)
    await protocol.stop()


async def test_after_the_other_side_has_gone_nobody_is_waited_for() -> None:
    class Broken(InMemoryTransport):
        async def read_messages(self) -> AsyncIterator[str]:
            raise ValueError("a line is too long")
            yield

    protocol = ControlProtocol(transport=Broken())
    await protocol.start()

    with pytest.raises(ConnectionError, match="a line is too long"):
        await protocol.send_request(ControlRequest.create("question", {}), timeout=None)
    with pytest.raises(ConnectionError, match="a line is too long"):
        await protocol.send_request(ControlRequest.create("question", {}), timeout=None)
    await protocol.stop()


async def test_stopping_ends_what_waits_and_may_be_repeated() -> None:
    transport = InMemoryTransport()
    protocol = ControlProtocol(transport=transport)
    await protocol.start()
    waiting = asyncio.create_task(protocol.send_request(ControlRequest.create("question", {})))
    await transport.get_write_receiver().receive()

    await protocol.stop()
    await protocol.stop()

    with pytest.raises(ConnectionError, match="stopped"):
        await waiting


async def test_misuse_is_named() -> None:
    with pytest.raises(TypeError, match="connect"):
        ControlProtocol(transport=object())  # type: ignore[arg-type]
    protocol = ControlProtocol(transport=InMemoryTransport())
    with pytest.raises(RuntimeError, match="not started"):
        await protocol.send_request(ControlRequest.create("question", {}))
    await protocol.start()
    with pytest.raises(RuntimeError, match="already"):
        await protocol.start()
    await protocol.stop()


async def test_an_error_is_never_a_yes() -> None:
    transport = InMemoryTransport()
    protocol = ControlProtocol(transport=transport)
    await protocol.start()

    async def fail() -> None:
        request = json.loads(await transport.get_write_receiver().receive())
        await transport.get_read_sender().send(ControlResponse(request["request_id"], error="gone").to_json())

    with pytest.raises(RuntimeError, match="gone"):
        await asyncio.gather(protocol.approve("deploy"), fail())
    await protocol.stop()


def test_messages_refuse_what_they_are_not() -> None:
    request = ControlRequest.create("approval", {"action": "x"})
    assert request.request_id.startswith("req_")
    assert len(request.request_id) == 12
    assert ControlRequest.from_dict(json.loads(request.to_json())) == request
    with pytest.raises(ValueError, match="type"):
        ControlRequest("req_1", "other")  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        ControlRequest.from_dict({"type": "question"})
    with pytest.raises(ValueError, match="data or an error"):
        ControlResponse("req_1")
    assert ControlResponse("req_1", error="x").is_error


def test_every_transport_has_the_same_methods() -> None:
    assert isinstance(InMemoryTransport(), Transport)
