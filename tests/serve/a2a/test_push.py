"""Push notifications over the durable outbox, against a real receiver."""

import hashlib
import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from a2a.client import Client
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig,
)

from tests.serve.a2a.agents import connected, post, send, tool_call
from tests.serve.api.api_server import ApiServer, serving
from tests.serve.test_webhook_dispatcher import Receiver, receiving
from tests.world import World
from toolreeve.config.sections.network import Network
from toolreeve.core.call import Principal, Role
from toolreeve.serve.webhook_dispatcher import WebhookDispatcher

WRITE = tool_call("write_file", path="a.txt", content="written")
QUICK = {"initialDelay": 0.01, "maxDelay": 0.02, "maxAttempts": 4}


@asynccontextmanager
async def parked(world: World, receiver: Receiver) -> AsyncIterator[tuple[ApiServer, Client, str]]:
    """A task that waits for an answer, on a server that may reach the receiver."""
    settings = world.settings(network=Network(allow=(f"127.0.0.1:{receiver.port}",)))
    async with serving(world.reeve(settings=settings)) as server, connected(server) as client:
        asked = await send(client, WRITE)
        yield server, client, asked.id


async def approve(server: ApiServer) -> None:
    (question,) = (await server.reeve.approvals.list()).items
    by = Principal(user="pat", role=Role.ADMIN)
    await server.reeve.approvals.decide(question["id"], answer="allow", by=by, dead_time=0)


async def test_every_event_after_the_configuration_is_sent_in_order_and_signed(world: World) -> None:
    async with receiving(statuses=[500]) as receiver, parked(world, receiver) as (server, client, number):
        config = TaskPushNotificationConfig(
            task_id=number,
            id="mine",
            url=receiver.url,
            token="token-of-the-caller",
            authentication=AuthenticationInfo(scheme="Bearer", credentials="abc"),
        )
        shown = await client.create_task_push_notification_config(config)
        await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver, id="mine", token="t" * 20))
        await approve(server)
        got = [await receiver.next() for _ in range(4)]

    assert (shown.id, shown.url, shown.token, shown.HasField("authentication")) == ("mine", receiver.url, "", False)
    first = got[0]["headers"]
    signed = f"{first['x-a2a-timestamp']}.{number}-2.".encode() + got[0]["body"]
    expected = hmac.new(b"t" * 20, signed, hashlib.sha256).hexdigest()
    assert (first["x-a2a-signature"], first["x-a2a-notification-token"]) == (f"sha256={expected}", "t" * 20)
    assert [each["headers"]["x-toolreeve-id"] for each in got] == [f"{number}-{n}" for n in (2, 2, 3, 4)]
    kinds = [next(iter(set(each) & {"statusUpdate", "artifactUpdate"})) for each in got]
    assert kinds == ["statusUpdate", "statusUpdate", "artifactUpdate", "statusUpdate"]
    assert got[-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def _settings(number: str, receiver: Receiver, **more: Any) -> dict[str, Any]:
    return {"taskId": number, "pushNotificationConfig": {"url": receiver.url, "retryConfig": QUICK, **more}}


async def test_a_configuration_selects_events_by_kind_and_priority(world: World) -> None:
    async with receiving() as receiver, parked(world, receiver) as (server, _, number):
        chosen = {"enabledEvents": ["artifact", "status_change"], "minPriority": "normal"}
        added = await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver, id="a", **chosen))
        await approve(server)
        got = await receiver.next()

    assert added["result"] == {
        "taskId": number,
        "pushNotificationConfig": {
            "id": "a",
            "url": receiver.url,
            "enabledEvents": ["status_change"],
            "retryConfig": {**QUICK, "backoffMultiplier": 2.0, "jitter": True},
        },
    }
    assert got["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


AUTHENTICATIONS: dict[str, tuple[dict[str, Any], str, str]] = {
    "schemes": ({"schemes": ["Basic"], "credentials": "eHg="}, "authorization", "Basic eHg="),
    "bearer": ({"type": "bearer", "token": "abc"}, "authorization", "Bearer abc"),
    "apikey": ({"type": "apikey", "headerName": "X-Key", "apiKey": "key-of-ada"}, "x-key", "key-of-ada"),
    "custom": ({"type": "custom", "headerName": "X-Mine", "headerValue": "value-of-ada"}, "x-mine", "value-of-ada"),
}


@pytest.mark.parametrize("case", AUTHENTICATIONS)
async def test_each_authentication_becomes_its_header_and_is_shown_to_nobody(world: World, case: str) -> None:
    given, header, value = AUTHENTICATIONS[case]
    async with receiving() as receiver, parked(world, receiver) as (server, _, number):
        await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver, authentication=given))
        listed = await post(server, "tasks/pushNotificationConfig/list", {"id": number})
        await approve(server)
        got = await receiver.next()

    assert got["headers"][header] == value
    assert value not in str(listed)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "metadata": ({"url": "http://169.254.169.254/latest"}, "refused"),
    "loopback": ({"url": "http://127.0.0.1:1/"}, "refused"),
    "scheme": ({"url": "file:///etc/passwd"}, "refused"),
    "unknown key": ({"quietHours": 1}, "quietHours"),
    "unknown kind": ({"enabledEvents": ["all"]}, "input_required"),
    "no kind left": ({"enabledEvents": ["artifact"], "minPriority": "high"}, "leave no event"),
    "half of the quiet hours": ({"quietHoursStart": "22:00"}, "quiet_end"),
    "unknown zone": (
        {"quietHoursStart": "22:00", "quietHoursEnd": "06:00", "quietHoursTimezone": "Mars/One"},
        "Mars/One",
    ),
    "attempts": ({"retryConfig": {"maxAttempts": 1000}}, "max_attempts"),
    "header injection": (
        {"authentication": {"type": "custom", "headerName": "x", "headerValue": "a\r\nb: c"}},
        "visible ASCII",
    ),
    "another host": ({"authentication": {"type": "custom", "headerName": "Host", "headerValue": "x"}}, "host"),
    "id": ({"id": "../x"}, "id"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_sent_is_refused_when_it_is_configured(world: World, case: str) -> None:
    more, said = REFUSED[case]
    async with receiving() as receiver, parked(world, receiver) as (server, _, number):
        answer = await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver, **more))
        listed = await post(server, "tasks/pushNotificationConfig/list", {"id": number})

    assert answer["error"]["code"] == -32602
    assert said in answer["error"]["message"]
    assert listed["result"] == []


async def test_a_configuration_is_found_listed_and_deleted(world: World) -> None:
    async with receiving() as receiver, parked(world, receiver) as (server, client, number):
        for name in ("a", "b"):
            await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver, id=name))
        listed = await client.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=number)
        )
        found = await client.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(task_id=number, id="b")
        )
        await client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=number, id="b")
        )
        first = await post(server, "tasks/pushNotificationConfig/get", {"id": number})
        gone = await post(server, "tasks/pushNotificationConfig/get", {"id": number, "pushNotificationConfigId": "b"})
        for count in range(11):
            last = await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver, id=f"c{count}"))

    assert [each.id for each in listed.configs] == ["a", "b"]
    assert found.id == "b"
    assert first["result"]["pushNotificationConfig"]["id"] == "a"
    assert gone["error"]["code"] == -32001
    assert "at most 10" in last["error"]["message"]


async def test_a_message_may_bring_its_configuration_and_a_refused_one_begins_nothing(world: World) -> None:
    part = {"kind": "data", "data": WRITE}
    said = {"kind": "message", "messageId": "m1", "role": "user", "parts": [part]}
    async with receiving() as receiver, parked(world, receiver) as (server, _, _first):
        hook = {"url": receiver.url, "token": "secret"}
        await post(server, "message/send", {"message": said, "configuration": {"pushNotificationConfig": hook}})
        got = await receiver.next()
        quiet = {**hook, "quietHoursStart": "22:00"}
        ignored = await post(
            server,
            "message/send",
            {"message": {**said, "messageId": "m3"}, "configuration": {"pushNotificationConfig": quiet}},
        )
        bad = {"url": "http://169.254.169.254/"}
        refused = await post(
            server,
            "message/send",
            {"message": {**said, "messageId": "m2"}, "configuration": {"pushNotificationConfig": bad}},
        )

    assert got["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert "refused" in refused["error"]["message"]
    assert "quietHoursStart is taken by" in ignored["error"]["message"]


async def test_notifications_of_a_stopped_server_are_sent_by_the_next_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(self: WebhookDispatcher) -> None:
        """As if the process died before it sent anything."""

    async with receiving() as receiver:
        with monkeypatch.context() as stopped:
            stopped.setattr(WebhookDispatcher, "run", nothing)
            async with parked(world, receiver) as (server, _, number):
                await post(server, "tasks/pushNotificationConfig/set", _settings(number, receiver))
                await approve(server)
                for _ in range(500):
                    row = await server.reeve.internals.store.tasks.find(number)
                    if row is not None and row.ended:
                        break
        settings = world.settings(network=Network(allow=(f"127.0.0.1:{receiver.port}",)))
        async with serving(world.reeve(settings=settings)):
            got = [await receiver.next() for _ in range(3)]

    assert [each["headers"]["x-toolreeve-id"] for each in got] == [f"{number}-{n}" for n in (2, 3, 4)]
