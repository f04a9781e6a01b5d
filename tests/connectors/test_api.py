"""How the client of connectors bears services that fail."""

import asyncio
import json

import pytest

from tests.connectors.connected import Connected, connected_settings
from tests.connectors.google_server import SCOPE, answer
from tests.network import Answer, WebServer, listening, read_request, web_server
from toolreeve.connectors.api import CONCURRENCY, gather
from toolreeve.core.errors import ErrorCode, ToolError

CALL = ("github_list_issues", {"repo": "ann/app"})


def connect(connected: Connected) -> None:
    connected.keep({"GITHUB_TOKEN": "github-token-12345678"})


@pytest.mark.parametrize(
    ("reply", "code", "words"),
    [
        (answer({"message": "Bad credentials"}, 401), ErrorCode.UPSTREAM, "toolreeve secrets set GITHUB_TOKEN"),
        (answer({"message": "no\nsuch thing"}, 404), ErrorCode.UPSTREAM, "GitHub answered 404: no such thing"),
        (Answer(status=503, headers={"retry-after": "900"}), ErrorCode.UPSTREAM, "try again after 900 s"),
        (Answer(status=500, headers={"retry-after": "0"}), ErrorCode.UPSTREAM, "no reason given"),
        (Answer(body=b"<html>hello"), ErrorCode.UPSTREAM, "did not answer in JSON"),
        (Answer(body=b"[" * 100_000), ErrorCode.UPSTREAM, "did not answer in JSON"),
        (Answer(body=b" " * 11_000_000), ErrorCode.LIMIT, "larger than 10 MB"),
        (Answer(body=b"not compressed", headers={"content-encoding": "gzip"}), ErrorCode.HTTP_ERROR, "decompressed"),
    ],
)
async def test_a_failure_says_what_and_what_to_do(
    connected: Connected, reply: Answer, code: ErrorCode, words: str
) -> None:
    connect(connected)
    async with web_server(lambda _: reply) as web, connected.reeve(web, "github_*") as reeve:
        result = await reeve.call(*CALL)

    assert result.error is not None
    assert result.error.code is code
    assert words in result.error.message
    assert "github-token" not in result.error.message


EVERY_TOOL: dict[str, dict[str, object]] = {
    "github_read_issue": {"repo": "ann/app", "number": 1},
    "github_comment": {"repo": "ann/app", "number": 1, "body": "hello"},
    "gmail_search": {"query": "x"},
    "gmail_read": {"messageId": "m1"},
    "gmail_send": {"to": "ann@corp.example", "subject": "s", "body": "b"},
    "calendar_list_events": {},
    "calendar_get_event": {"eventId": "e"},
    "calendar_create_event": {"summary": "s", "start": "2026-01-01", "end": "2026-01-01"},
    "anthropic_usage": {"action": "usage", "starting_at": "2026-01-01T00:00:00Z"},
}


@pytest.mark.parametrize(
    "body", [b"7", b"null", b"[]", b'["x"]', b'{"items": 7, "messages": 7, "data": 7, "comments": 1, "attendees": 7}']
)
async def test_whatever_json_a_service_answers_with_no_tool_breaks(connected: Connected, body: bytes) -> None:
    async with web_server(lambda _: Answer(body=body)) as web:
        scopes = [f"{SCOPE}{name}" for name in ("gmail.readonly", "gmail.send", "calendar.events")]
        grant = {"access_token": "t", "refresh_token": "r", "expires_at": 4e9, "scopes": scopes}
        grant |= {"client_id": "c", "issuer": f"http://127.0.0.1:{web.port}"}
        names = ("GITHUB_TOKEN", "ANTHROPIC_ADMIN_KEY", "GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET")
        grants = dict.fromkeys(("GOOGLE_GMAIL_GRANT", "GOOGLE_CALENDAR_GRANT"), json.dumps(grant))
        connected.keep(dict.fromkeys(names, "c") | grants)
        async with connected.reeve(web, *EVERY_TOOL, approve=lambda request: request.allow()) as reeve:
            results = {tool: await reeve.call(tool, args) for tool, args in EVERY_TOOL.items()}

    codes = {tool: result.error.code for tool, result in results.items() if result.error is not None}
    assert set(codes.values()) <= {ErrorCode.UPSTREAM}, results


async def test_a_body_that_is_cut_off_is_an_error(connected: Connected) -> None:
    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n[{")
        await writer.drain()

    connect(connected)
    async with listening(cut) as port:
        web = WebServer(lambda _: Answer())
        web.port = port
        async with connected.reeve(web, "github_*") as reeve:
            result = await reeve.call(*CALL)

    assert result.error is not None
    assert result.error.code is ErrorCode.HTTP_ERROR


async def test_a_body_that_does_not_end_is_given_up(connected: Connected) -> None:
    connect(connected)
    endless = Answer(body=b"[", headers={"content-length": "100"})
    async with web_server(lambda _: endless) as web:
        settings = connected_settings(connected.world, web, "github_*", timeout=0.2)
        async with connected.world.reeve(settings=settings) as reeve:
            result = await reeve.call(*CALL)

    assert result.error is not None
    assert result.error.code is ErrorCode.HTTP_TIMEOUT


async def test_a_redirect_to_another_origin_gets_no_credential(connected: Connected) -> None:
    connect(connected)
    async with web_server(lambda _: answer([])) as other:
        elsewhere = Answer(status=302, headers={"location": other.url("/steal")})
        async with web_server(lambda _: elsewhere) as web:
            settings = connected_settings(connected.world, web, "github_*")
            async with connected.world.reeve(settings=settings) as reeve:
                refused = await reeve.call(*CALL)

    assert refused.error is not None
    assert refused.error.code is ErrorCode.URL_FORBIDDEN
    assert not other.received


async def test_many_requests_are_bounded_and_the_first_failure_ends_them() -> None:
    running = 0
    most = 0

    async def work() -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return 1

    async def fail() -> int:
        raise ToolError(ErrorCode.UPSTREAM, "first")

    assert sum(await gather([work] * 50)) == 50
    assert most == CONCURRENCY
    with pytest.raises(ToolError, match="first"):
        await gather([fail, work, fail])
