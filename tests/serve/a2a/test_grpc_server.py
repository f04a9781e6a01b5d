"""A2A over gRPC with the generated client: calls, streams, questions, versions, tokens and rates."""

import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest
from a2a.helpers import get_artifact_text
from a2a.types import (
    CancelTaskRequest,
    GetExtendedAgentCardRequest,
    GetTaskRequest,
    ListTasksRequest,
    SubscribeToTaskRequest,
    TaskState,
    a2a_pb2_grpc,
)

from tests.peers.programs import free_port
from tests.serve.a2a.agents import message, tool_call
from tests.serve.api.api_server import ApiServer, serving
from tests.world import World
from toolreeve.config.sections.a2a import A2a
from toolreeve.core.call import Role
from toolreeve.core.errors import ConfigError
from toolreeve.serve.tokens import AccessScope

APPROVES = (AccessScope.READ, AccessScope.CALL, AccessScope.APPROVE)
VERSION = ("a2a-version", "1.0")
WRITE = tool_call("write_file", path="a.txt", content="written")


@asynccontextmanager
async def grpc_server(world: World, **options: Any) -> AsyncIterator[tuple[ApiServer, Any]]:
    port = free_port()
    settings = world.settings(a2a=A2a(grpc_port=port, **options))
    async with (
        serving(world.reeve(settings=settings)) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
    ):
        yield server, a2a_pb2_grpc.A2AServiceStub(channel)  # type: ignore[no-untyped-call]


async def metadata(server: ApiServer, user: str) -> tuple[tuple[str, str], ...]:
    token = await server.token(Role.OPERATOR, user, scopes=APPROVES)
    return (VERSION, ("authorization", token["authorization"]))


async def test_calls_streams_and_questions_go_over_grpc_too(world: World) -> None:
    async with grpc_server(world) as (server, stub):
        ada = await metadata(server, "ada")
        done = (await stub.SendMessage(message("/calculate expression='6 * 7'"), metadata=ada)).task
        events = [
            each.WhichOneof("payload")
            async for each in stub.SendStreamingMessage(message("/calculate expression=2"), metadata=ada)
        ]
        asked = (await stub.SendMessage(message(WRITE), metadata=ada)).task
        following = aiter(stub.SubscribeToTask(SubscribeToTaskRequest(id=asked.id), metadata=ada))
        first = await anext(following)
        ended = (await stub.SendMessage(message("yes", task_id=asked.id), metadata=ada)).task
        followed = [each.WhichOneof("payload") async for each in following]
        listed = await stub.ListTasks(ListTasksRequest(), metadata=ada)
        card = await stub.GetExtendedAgentCard(GetExtendedAgentCardRequest(), metadata=ada)
        public = (await server.client.get("/.well-known/agent-card.json")).json()

    assert get_artifact_text(done.artifacts[0]) == "42"
    assert events == ["task", "artifact_update", "status_update"]
    assert first.task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert (ended.status.state, (world.workspace / "a.txt").read_text()) == (TaskState.TASK_STATE_COMPLETED, "written")
    assert followed == ["status_update", "artifact_update", "status_update"]
    assert listed.total_size == 3
    assert "calculate" in {skill.id for skill in card.skills}
    assert [each["protocolBinding"] for each in public["supportedInterfaces"]] == [
        "JSONRPC",
        "HTTP+JSON",
        "GRPC",
        "JSONRPC",
    ]


async def refused(call: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as problem:
        await call
    return problem.value.code(), str(problem.value.details())


async def test_a_token_a_version_and_the_own_task_are_needed(world: World) -> None:
    async with grpc_server(world) as (server, stub):
        anonymous = await refused(stub.ListTasks(ListTasksRequest(), metadata=(VERSION,)))
        ada = await metadata(server, "ada")
        eve = await metadata(server, "eve")
        wrong = await refused(stub.ListTasks(ListTasksRequest(), metadata=(VERSION, ("authorization", "Bearer x"))))
        unversioned = await refused(stub.ListTasks(ListTasksRequest(), metadata=ada[1:]))
        newer = await refused(stub.ListTasks(ListTasksRequest(), metadata=(("a2a-version", "1.7"), ada[1])))
        number = (await stub.SendMessage(message(WRITE), metadata=ada)).task.id
        hidden = [
            await refused(stub.GetTask(GetTaskRequest(id=number), metadata=eve)),
            await refused(stub.CancelTask(CancelTaskRequest(id=number), metadata=eve)),
            await refused(stub.SendMessage(message("yes", task_id=number), metadata=eve)),
        ]

    assert [anonymous[0], wrong[0]] == [grpc.StatusCode.UNAUTHENTICATED] * 2
    assert "toolreeve tokens add" in anonymous[1]
    assert [unversioned[0], newer[0]] == [grpc.StatusCode.UNIMPLEMENTED] * 2
    assert "1.7" in newer[1]
    assert {code for code, _ in hidden} == {grpc.StatusCode.NOT_FOUND}
    assert not (world.workspace / "a.txt").exists()


async def test_rates_hold_over_grpc_and_a_taken_port_is_named(world: World) -> None:
    async with grpc_server(world, requests_per_minute=1) as (server, stub):
        ada = await metadata(server, "ada")
        await stub.ListTasks(ListTasksRequest(), metadata=ada)
        limited = await refused(stub.ListTasks(ListTasksRequest(), metadata=ada))
        port = server.reeve.configuration.settings.a2a.grpc_port
        with pytest.raises(ConfigError) as taken:
            async with serving(world.reeve(settings=world.settings(a2a=A2a(grpc_port=port)))):
                pass

    assert limited[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "a2a.requests_per_minute" in limited[1]
    assert "a2a.grpc_port" in str(taken.value)


async def test_without_the_extra_the_command_that_adds_it_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "grpc" else found(name))
    with pytest.raises(ConfigError) as missing:
        async with serving(world.reeve(settings=world.settings(a2a=A2a(grpc_port=free_port())))):
            pass

    assert "pip install 'toolreeve[a2a,grpc]'" in str(missing.value)
