"""The `_meta` and headers of a request of the modern era."""

from tests.upstream.callers import ScriptedCaller
from tests.upstream.scripted_transport import INFO, ScriptedTransport, opened
from tests.upstream.session.messages import ELICITS, start_call
from toolreeve.core.mcp import Era


async def test_each_request_of_the_newer_era_says_who_asks_for_whom() -> None:
    transport = ScriptedTransport()
    session = await opened(transport, Era.MODERN, capabilities={"roots": {}})
    caller = ScriptedCaller(era=Era.MODERN, capabilities=ELICITS, log_level="error", wants_progress=True)

    start_call(session, caller, _meta={"mine": 1, "progressToken": "of another wire"})
    start_call(session)
    first, second = await transport.next(), await transport.next()

    prefix = "io.modelcontextprotocol/"
    assert first["params"]["_meta"] == {
        "mine": 1,
        "progressToken": first["id"],
        prefix + "protocolVersion": "2026-07-28",
        prefix + "clientInfo": INFO,
        prefix + "clientCapabilities": ELICITS,
        prefix + "logLevel": "error",
    }
    assert second["params"]["_meta"] == {
        prefix + "protocolVersion": "2026-07-28",
        prefix + "clientInfo": INFO,
        prefix + "clientCapabilities": {"roots": {}},
    }
    await session.close()


async def test_headers_repeat_what_intermediaries_route_by() -> None:
    transport = ScriptedTransport("http")
    session = await opened(transport, Era.MODERN)
    session.tool_schemas["work"] = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }

    start_call(session, arguments={"region": "süd"})
    _, headers = await transport.sent.get()

    assert headers == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "work",
        "Mcp-Param-Region": "=?base64?c8O8ZA==?=",
    }
    await session.close()
