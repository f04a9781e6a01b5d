"""What a request of the newer era says beside itself: who asks, for whom, and by which way."""

from tests.upstream.people import Person
from tests.upstream.scripted import INFO, Scripted, opened
from tests.upstream.session.talking import ELICITS, calling
from toolreeve.core.mcp import Era


async def test_each_request_of_the_newer_era_says_who_asks_for_whom() -> None:
    line = Scripted()
    session = await opened(line, Era.MODERN, capabilities={"roots": {}})
    caller = Person(era=Era.MODERN, capabilities=ELICITS, log_level="error", wants_progress=True)

    calling(session, caller, _meta={"mine": 1, "progressToken": "of another wire"})
    calling(session)
    first, second = await line.next(), await line.next()

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
    line = Scripted("http")
    session = await opened(line, Era.MODERN)
    session.tool_schemas["work"] = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }

    calling(session, arguments={"region": "süd"})
    _, headers = await line.sent.get()

    assert headers == {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "work",
        "Mcp-Param-Region": "=?base64?c8O8ZA==?=",
    }
    await session.close()
