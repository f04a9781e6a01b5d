"""What becomes of requests under way when the line, the session or the caller ends."""

from typing import Any

import pytest

from tests.upstream.scripted import Scripted, opened
from tests.upstream.session.talking import calling
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable


async def test_what_is_in_flight_when_the_line_is_lost_fails_with_the_reason() -> None:
    line = Scripted()
    told: list[str] = []
    session = await opened(line, on_lost=told.append)
    call = calling(session)
    await line.next()
    line.words = "Segmentation fault"

    line.lose("it ended with exit code 3")

    with pytest.raises(ServerUnavailable, match="it ended with exit code 3; its last output: Segmentation fault"):
        await call
    with pytest.raises(ServerUnavailable, match="exit code 3"):
        await session.request("ping")
    with pytest.raises(ServerUnavailable, match="exit code 3"):
        session.notify("notifications/x")
    assert (session.alive, told) == (False, ["it ended with exit code 3"])


async def test_closing_fails_what_is_in_flight_and_is_no_loss() -> None:
    line = Scripted()
    told: list[str] = []
    session = await opened(line, on_lost=told.append)
    call = calling(session)
    await line.next()

    await session.close()
    line.lose("the wire is gone")

    with pytest.raises(ServerUnavailable, match="closed"):
        await call
    assert (line.closed, told) == (True, [])


async def test_a_cancelled_call_is_taken_back_at_the_server() -> None:
    line = Scripted()
    session = await opened(line)
    call = calling(session)
    asked = await line.next()

    call.cancel()

    cancelled = {"requestId": asked["id"], "reason": "cancelled"}
    assert await line.next() == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}


async def test_what_is_no_json_is_not_sent_and_says_so() -> None:
    class Strict(Scripted):
        def send(self, message: Any, headers: Any = None) -> None:
            str(message.get("params", {}).get("name")).encode()
            super().send(message, headers)

    session = await opened(Strict())

    with pytest.raises(RemoteError, match="cannot be sent as JSON") as refused:
        await session.request("tools/call", {"name": "\ud800"}, timeout=5)
    assert refused.value.code == -32602
