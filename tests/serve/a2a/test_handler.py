"""Every method of every binding against the task of another user, which does not exist for the caller."""

from typing import Any

import pytest

from tests.serve.a2a.agents import connected, post, send, tool_call
from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.core.call import Role
from toolreeve.serve.tokens import AccessScope

WRITE = tool_call("write_file", path="a.txt", content="written")
EVERYTHING = tuple(AccessScope)
SAID = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "yes"}], "taskId": "TASK"}
OLD_SAID = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "yes"}]}
HOOK = {"url": "https://example.com/"}
METHODS: dict[str, dict[str, Any]] = {
    "SendMessage": {"message": SAID},
    "SendStreamingMessage": {"message": SAID},
    "GetTask": {"id": "TASK"},
    "CancelTask": {"id": "TASK"},
    "SubscribeToTask": {"id": "TASK"},
    "CreateTaskPushNotificationConfig": {"taskId": "TASK", **HOOK},
    "GetTaskPushNotificationConfig": {"taskId": "TASK", "id": "x"},
    "ListTaskPushNotificationConfigs": {"taskId": "TASK"},
    "DeleteTaskPushNotificationConfig": {"taskId": "TASK", "id": "x"},
}
OLD_METHODS: dict[str, dict[str, Any]] = {
    "message/send": {"message": {**OLD_SAID, "taskId": "TASK"}},
    "message/stream": {"message": {**OLD_SAID, "taskId": "TASK"}},
    "tasks/get": {"id": "TASK"},
    "tasks/cancel": {"id": "TASK"},
    "tasks/resubscribe": {"id": "TASK"},
    "tasks/getInputRequired": {"taskId": "TASK"},
    "tasks/provideInputAndContinue": {"taskId": "TASK", "input": "yes"},
    "tasks/pushNotificationConfig/set": {"taskId": "TASK", "pushNotificationConfig": HOOK},
    "tasks/pushNotificationConfig/get": {"id": "TASK"},
    "tasks/pushNotificationConfig/list": {"id": "TASK"},
    "tasks/pushNotificationConfig/delete": {"id": "TASK", "pushNotificationConfigId": "x"},
}
REST = [
    ("GET", "/tasks/TASK", None),
    ("POST", "/tasks/TASK:cancel", {}),
    ("POST", "/tasks/TASK:subscribe", {}),
    ("POST", "/message:send", {"message": SAID}),
    ("POST", "/message:stream", {"message": SAID}),
    ("POST", "/tasks/TASK/pushNotificationConfigs", HOOK),
    ("GET", "/tasks/TASK/pushNotificationConfigs", None),
    ("GET", "/tasks/TASK/pushNotificationConfigs/x", None),
    ("DELETE", "/tasks/TASK/pushNotificationConfigs/x", None),
]


async def parked_task(server: ApiServer, owner: dict[str, str]) -> str:
    async with connected(server, owner) as client:
        return (await send(client, WRITE)).id


def about(params: Any, number: str) -> Any:
    match params:
        case dict():
            return {key: about(value, number) for key, value in params.items()}
        case "TASK":
            return number
        case _:
            return params


async def test_a_task_of_another_user_is_as_unknown_as_one_that_does_not_exist(world: World) -> None:
    """Also to an administrator with every scope; and nothing that was tried changed it."""
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        eve = await server.token(Role.ADMIN, "eve", scopes=EVERYTHING)
        number = await parked_task(server, ada)
        before = await server.reeve.internals.store.tasks.find(number)
        for methods, version in ((METHODS, {"a2a-version": "1.0"}), (OLD_METHODS, {})):
            for method, params in methods.items():
                of_another = await post(server, method, about(params, number), **eve, **version)
                of_nobody = await post(server, method, about(params, "none"), **eve, **version)
                assert of_another["error"]["code"] == -32001, method
                assert str(of_another).replace(number, "none") == str(of_nobody), method
        for verb, path, body in REST:
            found = [
                await server.client.request(
                    verb,
                    f"/a2a/rest{path.replace('TASK', each)}",
                    json=about(body, each),
                    headers={**eve, "a2a-version": "1.0"},
                )
                for each in (number, "none")
            ]
            assert [each.status_code for each in found] == [404, 404], path
            assert found[0].text.replace(number, "none") == found[1].text, path
        after = await server.reeve.internals.store.tasks.find(number)
        hooks = await server.reeve.internals.store.webhooks.list()
        listed = await post(server, "ListTasks", {}, **eve, **{"a2a-version": "1.0"})

    assert before == after
    assert (list(hooks), listed["result"].get("tasks", [])) == ([], [])
    assert not (world.workspace / "a.txt").exists()


@pytest.mark.parametrize("scope", [AccessScope.READ, AccessScope.METRICS])
async def test_a_token_without_the_scope_changes_nothing_of_its_own_task(world: World, scope: AccessScope) -> None:
    changes = {
        **{name: METHODS[name] for name in ("SendMessage", "CancelTask", "CreateTaskPushNotificationConfig")},
        "DeleteTaskPushNotificationConfig": METHODS["DeleteTaskPushNotificationConfig"],
        "tasks/provideInputAndContinue": OLD_METHODS["tasks/provideInputAndContinue"],
        "tasks/pushNotificationConfig/set": OLD_METHODS["tasks/pushNotificationConfig/set"],
        "command/execute": {"command": "calculate", "parameters": {"expression": "1"}},
    }
    async with serving(world.reeve()) as server:
        ada = await server.token(Role.OPERATOR, "ada")
        weak = await server.token(Role.OPERATOR, "ada", scopes=(scope,))
        number = await parked_task(server, ada)
        for method, params in changes.items():
            answer = await post(server, method, about(params, number), **weak, **{"a2a-version": "1.0"})
            assert "needs the scope 'call'" in answer["error"]["message"], method
        row = await server.reeve.internals.store.tasks.find(number)

    assert row is not None
    assert not row.ended
