"""Notifications through Apprise, sent to a local service."""

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.approval.clients import Client
from tests.approval.people import code
from tests.approval.test_governors import serve_once
from tests.world import World
from toolreeve.approval.channels.notification import new_sender
from toolreeve.approval.decision import Decided
from toolreeve.config import Approval as ApprovalSettings
from toolreeve.core.errors import ErrorCode, ToolreeveError


def settings(world: World, port: int, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "notify": (f"json://127.0.0.1:{port}/hook",),
        "link_url": "https://console.example",
        "dead_time": 0.0,
    }
    return world.settings(approval=ApprovalSettings(**values | changes))


def message(heard: list[bytes]) -> str:
    return str(json.loads(heard[0].partition(b"\r\n\r\n")[2])["message"])


async def test_people_are_notified_with_a_link_that_answers_the_waiting_call(world: World) -> None:
    server, port, heard = await serve_once(b"{}")
    async with server, world.reeve(settings=settings(world, port)) as reeve:
        calling = asyncio.create_task(reeve.call("write_file", path="a.txt", content="x"))
        async with asyncio.timeout(60):
            await heard.came.wait()
        token = message(heard).rpartition("/approve/")[2].strip()
        outcome = await reeve.approvals.decide_by_link(token, answer="allow")
        result = await calling

    assert "A Python program wants to create a.txt" in message(heard)
    assert isinstance(outcome, Decided)
    assert result.success


async def test_a_question_that_no_call_waits_for_is_announced_and_stays_pending(world: World) -> None:
    server, port, heard = await serve_once(b"{}")
    async with server, world.reeve(settings=settings(world, port)) as reeve:
        result = await Client(capabilities={}).writes(reeve)
        pending = await reeve.approvals.count()

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert pending == 1
    assert "https://console.example/approve/" in message(heard)


async def test_a_service_that_is_away_does_not_keep_the_question_from_being_asked(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    server, port, _ = await serve_once(b"{}", "500 Oops")
    async with server, world.reeve(settings=settings(world, port)) as reeve:
        with caplog.at_level(logging.WARNING):
            result = await Client(capabilities={}).writes(reeve)

    assert code(result) is ErrorCode.APPROVAL_PENDING
    assert "approval.notify" in caplog.text


def test_an_address_that_is_not_one_is_refused_without_its_secrets() -> None:
    with pytest.raises(ToolreeveError, match="address 2") as raised:
        new_sender(["json://127.0.0.1/", "nonsense://user:hunter2@host"])

    assert "hunter2" not in str(raised.value)
