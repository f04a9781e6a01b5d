"""A real nats-server with the generated configuration: what a worker's credential can do, and what it cannot."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import nats as nats_py
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeoutError

from tests.execution.workers.fleet import POOL, Fleet
from tests.execution.workers.nats_server import PROGRAM, NatsServer
from toolreeve.execution.workers.nats_config import password_variable, write_config
from toolreeve.execution.workers.wire import call_subject, reply_subject

USERS = ("gateway", f"worker-{POOL}", "worker-other")
PASSWORDS = {password_variable(user): f"secret-of-{user}" for user in USERS}


def config(*, tls: bool = False) -> str:
    """As generated, with the store that the test gives on the command line."""
    return write_config([POOL, "other"], tls=tls).replace('jetstream { store_dir: "/data" }\n', "")


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path / "guarded", config=config(), env=PASSWORDS).start()
    yield server
    server.stop()


@pytest.fixture
def guarded_fleet(tmp_path: Path, guarded: NatsServer) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, guarded.url)
    fleet.worker_settings = {"user": f"worker-{POOL}", "password": "${secret:NATS_PASSWORD}"}
    yield fleet
    fleet.stop()


@asynccontextmanager
async def gateway_and_worker(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, **more: Any) -> AsyncIterator[Any]:
    monkeypatch.setenv("GATEWAY_PASSWORD", "secret-of-gateway")
    async with fleet.gateway(user="gateway", password="${secret:GATEWAY_PASSWORD}", **more) as reeve:
        fleet.start_worker(env={"NATS_PASSWORD": f"secret-of-worker-{POOL}"})
        yield reeve


@asynccontextmanager
async def connected(server: NatsServer, pool: str) -> AsyncIterator[tuple[Client, asyncio.Queue[str]]]:
    """As a worker of the pool whose credential was stolen; with what the server complained of."""
    refused: asyncio.Queue[str] = asyncio.Queue()

    async def complain(problem: Exception) -> None:
        refused.put_nowait(str(problem).lower())

    user = f"worker-{pool}"
    client = await nats_py.connect(
        server.url, user=user, password=f"secret-of-{user}", inbox_prefix=f"_INBOX_{pool}", error_cb=complain
    )
    try:
        yield client, refused
    finally:
        await client.close()


async def test_calls_run_under_the_generated_permissions(guarded_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway_and_worker(guarded_fleet, monkeypatch) as reeve:
        results = [await reeve.call("once", number=1), await reeve.call("again", number=2)]
        assert (await reeve.call("large", bytes=1_500_000)).success

    assert [result.output for result in results] == ["once 1", "again 2"]


@pytest.mark.parametrize(
    "subject",
    [
        call_subject("once", POOL),
        call_subject("repeat", "other"),
        reply_subject("other", "g", "c") + ".result.t.0.1",
        "toolreeve.control.other",
        "$JS.API.STREAM.MSG.GET.toolreeve_once_build",
        "$JS.API.STREAM.DELETE.toolreeve_once_build",
        "$JS.API.STREAM.PURGE.toolreeve_once_build",
        "$JS.API.CONSUMER.CREATE.toolreeve_once_build",
        "$JS.API.CONSUMER.MSG.NEXT.toolreeve_once_other.other",
        "$JS.ACK.toolreeve_once_other.other.1.1.1.1.0",
        "$KV.toolreeve_workers.other.fake",
        "$KV.toolreeve_limits.rate",
    ],
)
async def test_a_workers_credential_cannot_publish(guarded: NatsServer, subject: str) -> None:
    async with connected(guarded, POOL) as (client, refused):
        await client.publish(subject, b"x")
        async with asyncio.timeout(10):
            assert "permissions violation for publish" in await refused.get()


@pytest.mark.parametrize(
    "subject", ["toolreeve.call.>", "toolreeve.reply.>", "_INBOX.>", "_INBOX_other.>", "toolreeve.control.other", ">"]
)
async def test_a_workers_credential_cannot_subscribe(guarded: NatsServer, subject: str) -> None:
    async with connected(guarded, POOL) as (client, refused):
        await client.subscribe(subject)
        async with asyncio.timeout(10):
            assert "permissions violation for subscription" in await refused.get()


async def test_a_worker_of_another_pool_takes_no_call(
    guarded_fleet: Fleet, guarded: NatsServer, monkeypatch: Any
) -> None:
    async with gateway_and_worker(guarded_fleet, monkeypatch) as reeve:
        assert (await reeve.call("once", number=1)).success
        async with connected(guarded, "other") as (thief, refused):
            with pytest.raises((NatsTimeoutError, nats_py.errors.Error)):
                await thief.request(
                    f"$JS.API.CONSUMER.MSG.NEXT.toolreeve_once_{POOL}.{POOL}",
                    json.dumps({"batch": 1}).encode(),
                    timeout=0.5,
                )
            async with asyncio.timeout(10):
                assert "permissions violation" in await refused.get()


async def test_lost_permissions_are_named(guarded_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway with the credential of a worker."""
    monkeypatch.setenv("GATEWAY_PASSWORD", f"secret-of-worker-{POOL}")
    async with guarded_fleet.gateway(user=f"worker-{POOL}", password="${secret:GATEWAY_PASSWORD}") as reeve:
        result = await reeve.call("once", number=1)

    assert result.error is not None
    assert "permissions violation" in result.error.message.lower()
    assert "toolreeve workers nats-config" in result.error.message


async def test_a_wrong_password_is_named(guarded_fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_PASSWORD", "wrong")
    async with guarded_fleet.gateway(user="gateway", password="${secret:GATEWAY_PASSWORD}") as reeve:
        result = await reeve.call("once", number=1)

    assert result.error is not None
    assert "uthorization" in result.error.message


async def test_calls_go_over_tls_and_an_unknown_authority_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "guarded"
    make_certificates(folder)
    server = NatsServer(folder, config=config(tls=True), env=PASSWORDS).start()
    fleet = Fleet(tmp_path, server.url.replace("nats:", "tls:"))
    fleet.worker_settings = {
        "user": f"worker-{POOL}",
        "password": "${secret:NATS_PASSWORD}",
        "tls_ca": str(folder / "ca.pem"),
    }
    try:
        async with gateway_and_worker(fleet, monkeypatch, tls_ca=str(folder / "ca.pem")) as reeve:
            assert (await reeve.call("once", number=1)).success
        async with fleet.gateway(user="gateway", password="${secret:GATEWAY_PASSWORD}") as stranger:
            refused = await stranger.call("once", number=2)
    finally:
        fleet.stop()
        server.stop()

    assert refused.error is not None
    assert "certificate" in refused.error.message.lower()


def test_the_server_accepts_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "nats.conf"
    path.write_text(write_config([POOL], tls=False))

    done = subprocess.run([PROGRAM, "-t", "-c", path], env=PASSWORDS, capture_output=True, text=True, timeout=20)

    assert done.returncode == 0, done.stderr


def make_certificates(folder: Path) -> None:
    """An authority of our own, and a certificate for 127.0.0.1."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    authority, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test authority")])

    def build(subject: str, public: Any, extension: x509.ExtensionType, *, critical: bool) -> bytes:
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)])
        made = x509.CertificateBuilder(issuer, name, public, x509.random_serial_number(), now, now + timedelta(days=1))
        identifier = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
        issued_by = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
        made = made.add_extension(extension, critical).add_extension(issued_by, critical=False)
        if critical:
            usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
            made = made.add_extension(identifier, critical=False).add_extension(usage, critical=True)
        return made.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    constraints = x509.BasicConstraints(ca=True, path_length=0)
    (folder / "ca.pem").write_bytes(build("test authority", authority.public_key(), constraints, critical=True))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    (folder / "server.pem").write_bytes(build("127.0.0.1", key.public_key(), names, critical=False))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server-key.pem").write_bytes(private)
