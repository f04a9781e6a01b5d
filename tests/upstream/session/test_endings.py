"""Pending requests when the transport, the session or the caller ends."""

from typing import Any

import pytest

from tests.upstream.scripted_transport import ScriptedTransport, opened
from tests.upstream.session.messages import start_call
from toolreeve.upstream.transports.transport import RemoteError, ServerUnavailable


async def test_pending_requests_fail_with_the_reason_when_the_transport_is_lost() -> None:
    transport = ScriptedTransport()
    told: list[str] = []
    session = await opened(transport, on_lost=told.append)
    call = start_call(session)
    await transport.next()
    transport.words = "Segmentation fault"

    transport.lose("it ended with exit code 3")

    with pytest.raises(ServerUnavailable, match="it ended with exit code 3; its last output: Segmentation fault"):
        await call
    with pytest.raises(ServerUnavailable, match="exit code 3"):
        await session.request("ping")
    with pytest.raises(ServerUnavailable, match="exit code 3"):
        session.notify("notifications/x")
    assert (session.alive, told) == (False, ["it ended with exit code 3"])


async def test_closing_fails_pending_requests_and_is_no_loss() -> None:
    transport = ScriptedTransport()
    told: list[str] = []
    session = await opened(transport, on_lost=told.append)
    call = start_call(session)
    await transport.next()

    await session.close()
    transport.lose("the wire is gone")

    with pytest.raises(ServerUnavailable, match="closed"):
        await call
    assert (transport.closed, told) == (True, [])


async def test_a_cancelled_call_is_cancelled_at_the_server() -> None:
    transport = ScriptedTransport()
    session = await opened(transport)
    call = start_call(session)
    asked = await transport.next()

    call.cancel()

    cancelled = {"requestId": asked["id"], "reason": "cancelled"}
    assert await transport.next() == {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}


async def test_params_that_are_not_json_are_refused() -> None:
    class Strict(ScriptedTransport):
        def send(self, message: Any, headers: Any = None) -> None:
            str(message.get("params", {}).get("name")).encode()
            super().send(message, headers)

    session = await opened(Strict())

    with pytest.raises(RemoteError, match="cannot be sent as JSON") as refused:
        await session.request("tools/call", {"name": "\ud800"}, timeout=5)
    assert refused.value.code == -32602
