import asyncio
import ssl
import subprocess
from pathlib import Path

import h2.config
import h2.connection
import h2.events
import pytest

from tests.network import Answer, WebServer, listening
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.http import HttpReply, HttpRequest
from toolreeve.guard.network.client import GuardedHttp
from toolreeve.guard.network.guard import NetworkGuard, NetworkSettings
from toolreeve.guard.network.resolver import HostsResolver, parse_hosts

HOSTS = "127.0.0.1 name.example other.example"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for name.example, with its key in the same folder."""
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=name.example", "-addext", "subjectAltName=DNS:name.example", "-days", "2"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(folder / "key.pem")]
    command = ["openssl", "req", "-x509", *subject, *key, "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "cert.pem"


def server_context(certificate: Path, names: list[str | None], *, protocols: list[str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    context.set_alpn_protocols(protocols)
    context.sni_callback = lambda _, name, __: names.append(name)
    return context


async def get(host: str, port: int, ca_file: Path | None) -> HttpReply:
    given = NetworkSettings(allow=(f"127.0.0.1:{port}",), ca_file=str(ca_file) if ca_file else None)
    client = GuardedHttp(NetworkGuard(given, HostsResolver(parse_hosts(HOSTS))))
    try:
        return await client.send(HttpRequest(method="GET", url=f"https://{host}:{port}/x", timeout=5))
    finally:
        await client.close()


async def test_the_certificate_is_checked_by_name_although_an_address_is_dialled(certificate: Path) -> None:
    names: list[str | None] = []
    web = WebServer(lambda _: Answer(body=b"secure"))
    async with listening(web.handle, tls=server_context(certificate, names, protocols=["http/1.1"])) as port:
        reply = await get("name.example", port, certificate)

    assert (reply.body, names) == (b"secure", ["name.example"])


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1"])
async def test_a_certificate_for_another_name_is_refused(certificate: Path, host: str) -> None:
    web = WebServer(lambda _: Answer())
    async with listening(web.handle, tls=server_context(certificate, [], protocols=["http/1.1"])) as port:
        with pytest.raises(ToolError) as caught:
            await get(host, port, certificate)

    assert caught.value.code is ErrorCode.HTTP_ERROR
    assert "certificate" in caught.value.message.lower()


async def test_an_untrusted_certificate_is_refused(certificate: Path) -> None:
    web = WebServer(lambda _: Answer())
    async with listening(web.handle, tls=server_context(certificate, [], protocols=["http/1.1"])) as port:
        with pytest.raises(ToolError) as caught:
            await get("name.example", port, None)

    assert caught.value.code is ErrorCode.HTTP_ERROR


async def speak_http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    while data := await reader.read(65536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                said = dict(event.headers)[b":authority"]
                connection.send_headers(event.stream_id, [(":status", "200"), ("content-length", str(len(said)))])
                connection.send_data(event.stream_id, said, end_stream=True)
        writer.write(connection.data_to_send())
        await writer.drain()


async def test_http2_is_spoken_where_the_server_offers_it(certificate: Path) -> None:
    async with listening(speak_http2, tls=server_context(certificate, [], protocols=["h2"])) as port:
        reply = await get("name.example", port, certificate)

    assert reply.body == f"name.example:{port}".encode()
