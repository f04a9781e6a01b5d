"""Anthropic's reports on the real road, against a strict local server."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.connectors.connected import Connected
from tests.connectors.google_server import answer
from tests.network import Answer, Received, web_server
from toolreeve.core.errors import ErrorCode

KEY = "sk-ant-admin01-test-key-0000000000"
USAGE = {
    "starting_at": "2026-01-01T00:00:00Z",
    "ending_at": "2026-01-02T00:00:00Z",
    "results": [
        {
            "uncached_input_tokens": 100,
            "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 5},
            "cache_read_input_tokens": 50,
            "output_tokens": 20,
            "server_tool_use": {"web_search_requests": 1},
            "model": "claude-a",
        },
        {"uncached_input_tokens": 900, "output_tokens": 1, "model": "claude-b"},
    ],
}
COST = {"results": [{"amount": "123.78912", "currency": "USD", "description": "Tokens"}]}
CODE = {
    "date": "2026-01-01T00:00:00Z",
    "actor": {"type": "user_actor", "email_address": "ann@corp.example"},
    "core_metrics": {"num_sessions": 3},
    "model_breakdown": [
        {
            "model": "claude-a",
            "tokens": {"input": 10, "output": 5, "cache_read": 1, "cache_creation": 2},
            "estimated_cost": {"currency": "USD", "amount": 1025},
        }
    ],
}
ANALYTICS = {"group": {"model": "claude-a"}, "usage": {"output_tokens": 4, "requests": 2}}
PATHS = {
    "/v1/organizations/usage_report/messages": USAGE,
    "/v1/organizations/cost_report": COST,
    "/v1/organizations/usage_report/claude_code": CODE,
    "/v1/organizations/analytics/usage": ANALYTICS,
}


def respond(request: Received) -> Answer:
    """Two pages of every report."""
    target = urlsplit(request.path)
    query = parse_qs(target.query)
    assert request.headers["anthropic-version"] == "2023-06-01"
    if request.headers.get("x-api-key") != KEY:
        return answer({"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}, 401)
    if "page" in query:
        assert query["page"] == ["p2"]
        return answer({"data": [PATHS[target.path]], "has_more": False, "next_page": None})
    return answer({"data": [PATHS[target.path]], "has_more": True, "next_page": "p2"})


async def report(connected: Connected, key: str = KEY, **args: Any) -> tuple[Any, list[Received]]:
    connected.keep({"ANTHROPIC_ADMIN_KEY": key})
    async with web_server(respond) as web, connected.reeve(web) as reeve:
        return await reeve.call("anthropic_usage", args), web.received


async def test_usage_counts_nested_tokens_over_all_pages(connected: Connected) -> None:
    result, received = await report(
        connected, action="usage", starting_at="2026-01-01T00:00:00Z", group_by=["model", "workspace_id"]
    )

    assert result.success, result.error
    assert result.data["count"] == 2
    totals = result.data["summary"]["totals"]
    assert totals["cache_creation.ephemeral_5m_input_tokens"] == 14
    assert totals["uncached_input_tokens"] == 2000
    assert result.data["summary"]["top"] == [
        {"group": "claude-b", "value": "1802"},
        {"group": "claude-a", "value": "366"},
    ]
    assert "group_by%5B%5D=model&group_by%5B%5D=workspace_id" in received[0].path
    assert result.meta.labels == ("private",)


async def test_cents_become_dollars_exactly(connected: Connected) -> None:
    result, _ = await report(connected, action="cost", starting_at="2026-01-01T00:00:00Z", bucket_width="1d")

    assert result.data["data"][0]["results"][0]["amount_usd"] == "1.2378912"
    assert result.data["summary"]["amount_usd"] == "2.4757824"


async def test_an_amount_without_bounds_is_not_written_out(connected: Connected) -> None:
    row = {"results": [{"currency": "USD", "amount": "1e999999999"}]}
    connected.keep({"ANTHROPIC_ADMIN_KEY": KEY})
    async with web_server(lambda _: answer({"data": [row], "has_more": False})) as web, connected.reeve(web) as reeve:
        result = await reeve.call("anthropic_usage", action="cost", starting_at="2026-01-01T00:00:00Z")

    assert "amount_usd" not in result.data["data"][0]["results"][0]


async def test_a_day_of_claude_code(connected: Connected) -> None:
    result, _ = await report(connected, action="claude_code", starting_at="2026-01-01", limit=1)

    assert result.data["count"] == 1
    assert result.data["more"] is True
    assert result.data["summary"]["amount_usd"] == "10.25"


async def test_the_newer_endpoints(connected: Connected) -> None:
    result, received = await report(
        connected, action="usage", source="analytics", starting_at="2026-01-01T00:00:00Z", bucket_width="1h"
    )

    assert result.data["summary"]["totals"] == {"usage.output_tokens": 8, "usage.requests": 4}
    assert "time_bucket_width=1h" in received[0].path


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ({"action": "claude_code", "starting_at": "2026-01-01T00:00:00Z"}, "/starting_at"),
        ({"action": "claude_code", "starting_at": "2026-01-01", "group_by": ["model"]}, "/group_by"),
        ({"action": "usage", "starting_at": "2026-01-01"}, "/starting_at"),
        ({"action": "cost", "starting_at": "2026-01-01T00:00:00Z", "bucket_width": "1h"}, "/bucket_width"),
    ],
)
async def test_what_an_endpoint_does_not_take_is_refused(connected: Connected, args: Any, named: str) -> None:
    result, received = await report(connected, **args)

    assert result.error.code is ErrorCode.INVALID_PARAMS
    assert named in result.error.message
    assert not received


async def test_a_key_that_is_rejected_says_which_is_needed_and_is_never_shown(connected: Connected) -> None:
    wrong = "sk-ant-api03-wrong-key-1111111111"
    result, _ = await report(connected, key=wrong, action="cost", starting_at="2026-01-01T00:00:00Z")

    assert "toolreeve secrets set ANTHROPIC_ADMIN_KEY" in result.error.message
    assert wrong not in result.error.message
    assert wrong.encode() not in connected.world.database_bytes()
