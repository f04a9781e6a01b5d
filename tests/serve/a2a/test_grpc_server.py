"""A2A over gRPC with the generated client: calls, streams, questions, versions, tokens and rates."""

import asyncio
import contextlib
import datetime
import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
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
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

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
WEEK = datetime.timedelta(days=7)
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


async def test_connections_without_a_token_are_bounded(world: World) -> None:
    async with grpc_server(world, grpc_connections=4) as (server, stub):
        ada = await metadata(server, "ada")
        await stub.ListTasks(ListTasksRequest(), metadata=ada)
        port = server.reeve.configuration.settings.a2a.grpc_port
        greeted = [await greet(port) for _ in range(10)]
        still = await stub.ListTasks(ListTasksRequest(), metadata=ada)
        for _, writer in greeted:
            writer.close()

    assert sum(bool(data) for data, _ in greeted) == 3
    assert still.total_size == 0


async def greet(port: int) -> tuple[bytes, asyncio.StreamWriter]:
    """What the server says to the preface of HTTP/2; nothing if it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5))
    with contextlib.suppress(ConnectionError):
        return await asyncio.wait_for(reader.read(100), 10), writer
    return b"", writer


async def test_with_a_certificate_tls_is_required(world: World, tmp_path: Path) -> None:
    certificate, key = new_certificate(tmp_path)
    port = free_port()
    own = A2a(grpc_port=port, grpc_certificate=certificate, grpc_key=key)
    trust = grpc.ssl_channel_credentials(Path(certificate).read_bytes())
    async with (
        serving(world.reeve(settings=world.settings(a2a=own))) as server,
        grpc.aio.secure_channel(f"localhost:{port}", trust) as safe,
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as plain,
    ):
        ada = await metadata(server, "ada")
        listed = await a2a_pb2_grpc.A2AServiceStub(safe).ListTasks(ListTasksRequest(), metadata=ada)  # type: ignore[no-untyped-call]
        stub = a2a_pb2_grpc.A2AServiceStub(plain)  # type: ignore[no-untyped-call]
        unsafe = await refused(stub.ListTasks(ListTasksRequest(), metadata=ada))

    assert listed.total_size == 0
    assert unsafe[0] is grpc.StatusCode.UNAVAILABLE


async def test_a_certificate_that_cannot_be_used_stops_the_start(world: World, tmp_path: Path) -> None:
    certificate, _ = new_certificate(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = new_certificate(tmp_path / "other")
    for pair in ((certificate, None), (None, other), (certificate, other), (str(tmp_path / "none"), other)):
        own = A2a(grpc_port=free_port(), grpc_certificate=pair[0], grpc_key=pair[1])
        with pytest.raises(ConfigError, match=r"a2a\.grpc_certificate"):
            async with serving(world.reeve(settings=world.settings(a2a=own))):
                pass


def new_certificate(place: Path) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + WEEK)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (place / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (place / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(place / "cert.pem"), str(place / "key.pem")


async def test_without_the_extra_the_command_that_adds_it_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "grpc" else found(name))
    with pytest.raises(ConfigError) as missing:
        async with serving(world.reeve(settings=world.settings(a2a=A2a(grpc_port=free_port())))):
            pass

    assert "pip install 'toolreeve[a2a,grpc]'" in str(missing.value)
