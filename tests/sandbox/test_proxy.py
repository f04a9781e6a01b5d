import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network import Answer, dns_server, listening, web_server
from tests.sandbox.test_hello import client_hello
from toolreeve.core.events import Event
from toolreeve.core.urls import Address
from toolreeve.guard.network import NetworkGuard, NetworkSettings
from toolreeve.guard.resolver import HostsResolver, Resolver, parse_hosts
from toolreeve.sandbox.proxy import Proxy, ProxyLimits, proxy_environment
from toolreeve.sandbox.requests import Malformed, parse_head

HOSTS = "127.0.0.1 open.example\n127.0.0.2 secret.example"


class Running:
    def __init__(self, port: int, events: list[Event], told: asyncio.Event) -> None:
        self.port = port
        self.events = events
        self._told = told

    async def event(self) -> Mapping[str, object]:
        """The first event that is told."""
        return (await self.first(1))[0]

    async def first(self, count: int) -> list[Mapping[str, object]]:
        async with asyncio.timeout(10):
            while len(self.events) < count:
                self._told.clear()
                await self._told.wait()
        return [event.data for event in self.events[:count]]


@asynccontextmanager
async def proxy(
    *allow: str, resolver: Resolver | None = None, limits: ProxyLimits | None = None
) -> AsyncIterator[Running]:
    listener = socket.create_server(("127.0.0.1", 0))
    events: list[Event] = []
    told = asyncio.Event()

    def emit(event: Event) -> None:
        events.append(event)
        told.set()

    guard = NetworkGuard(NetworkSettings(allow=allow), resolver or HostsResolver(parse_hosts(HOSTS)))
    serving = asyncio.create_task(
        Proxy(guard, emit=emit, now=time.time, task_id="sandbox-1", limits=limits).serve(listener)
    )
    try:
        yield Running(listener.getsockname()[1], events, told)
        assert not serving.done(), "the proxy broke down"
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        listener.close()


async def speak(port: int, said: bytes) -> bytes:
    """Everything the proxy answers to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    async with asyncio.timeout(10):
        answer = await reader.read()
    writer.close()
    return answer


async def test_a_plain_request_is_forwarded_and_told() -> None:
    async with web_server(lambda got: Answer(body=got.path.encode())) as web, proxy(f"open.example:{web.port}") as via:
        request = (
            f"POST http://open.example:{web.port}/a?b HTTP/1.1\r\nHost: elsewhere\r\nProxy-Authorization: x\r\n"
            "Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nX-Keep: 2\r\nContent-Length: 4\r\n\r\nbody"
        )
        answer = await speak(via.port, request.encode())

        assert answer.endswith(b"\r\n\r\n/a?b")
        got = web.received[0]
        assert (got.method, got.path, got.body) == ("POST", "/a?b", b"body")
        assert got.headers == {
            "host": f"open.example:{web.port}",
            "x-keep": "2",
            "content-length": "4",
            "connection": "close",
        }
        assert await via.event() == {
            "protocol": "http",
            "method": "POST",
            "host": "open.example",
            "port": web.port,
            "decision": "allow",
            "reason": "",
            "rule": f"open.example:{web.port}",
            "address": "127.0.0.1",
            "bytes_sent": 4,
            "bytes_received": len(answer),
        }
        assert (via.events[0].event, via.events[0].task_id) == ("network_connection", "sandbox-1")


async def test_a_tunnel_carries_bytes_both_ways() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()

    async with listening(echo) as port, proxy(f"127.0.0.1:{port}") as via:
        reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
        writer.write(f"CONNECT open.example:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 200 Connection established\r\n\r\n"
        writer.write(b"hello")
        writer.write_eof()

        assert await reader.read() == b"HELLO"
        writer.close()
        told = await via.event()
        assert (told["protocol"], told["bytes_sent"], told["bytes_received"]) == ("connect", 5, 5)


@pytest.mark.parametrize(
    "place",
    [b"\x03\x0copen.example", b"\x01\x7f\x00\x00\x01", b"\x04" + bytes(10) + b"\xff\xff\x7f\x00\x00\x01"],
    ids=["name", "IPv4", "mapped IPv6"],
)
async def test_socks_carries_bytes_and_resolves_names_itself(place: bytes) -> None:
    async with web_server() as web, proxy(f"127.0.0.1:{web.port}") as via:
        hello = b"\x05\x01\x00" + b"\x05\x01\x00" + place + web.port.to_bytes(2, "big")
        answer = await speak(via.port, hello + b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")

        assert answer.startswith(b"\x05\x00" + b"\x05\x00\x00\x01" + bytes(6) + b"HTTP/1.1 200")
        assert (await via.event())["protocol"] == "socks5"


FORBIDDEN = [
    "127.0.0.2",
    "secret.example",
    "0x7f.2",
    "2130706434",
    "[::1]",
    "[::ffff:127.0.0.2]",
    "localhost",
    "10.0.0.1",
]


@pytest.mark.parametrize("host", FORBIDDEN)
async def test_forbidden_places_are_refused_in_every_protocol(host: str) -> None:
    async with web_server(host="127.0.0.2") as secret, proxy(f"127.0.0.1:{secret.port}", "open.example:*") as via:
        port = secret.port
        plain = await speak(via.port, f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode())
        tunnel = await speak(via.port, f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        name = host.encode()
        socks = await speak(
            via.port, b"\x05\x01\x00\x05\x01\x00\x03" + bytes((len(name),)) + name + port.to_bytes(2, "big")
        )

        assert plain.split(b" ")[1] in (b"403", b"502")
        assert tunnel.split(b" ")[1] in (b"403", b"502")
        assert socks[:2] == b"\x05\x00"
        assert socks[3] in (2, 4)
        assert secret.connections == 0
        assert len(via.events) == 3


async def test_a_name_that_rebinds_is_judged_each_time() -> None:
    async with (
        web_server() as web,
        dns_server({"rebind.example": [["127.0.0.1"], ["127.0.0.2"]]}) as (_, resolver),
        proxy(f"127.0.0.1:{web.port}", resolver=resolver) as via,
    ):
        request = f"GET http://rebind.example:{web.port}/ HTTP/1.1\r\n\r\n".encode()

        assert (await speak(via.port, request)).startswith(b"HTTP/1.1 200")
        assert (await speak(via.port, request)).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    ("asked", "through"), [("open.example", True), (None, True), ("also.example", True), ("shut.example", False)]
)
async def test_a_tunnel_is_not_used_to_ask_for_another_name(asked: str | None, through: bool) -> None:
    arrived: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read())

    async with listening(listen) as port, proxy(f"open.example:{port}", f"also.example:{port}") as via:
        hello = client_hello(asked)
        record = b"\x16\x03\x01" + len(hello).to_bytes(2, "big") + hello
        reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
        writer.write(f"CONNECT open.example:{port} HTTP/1.1\r\n\r\n".encode() + record)
        writer.write_eof()
        async with asyncio.timeout(5):
            await reader.read()
        writer.close()

        assert arrived == ([record] if through else [b""])
        assert (await via.event())["decision"] == ("allow" if through else "deny")


async def test_a_tls_client_that_hides_its_name_in_pieces_is_refused() -> None:
    arrived: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read())

    async with listening(listen) as port, proxy(f"open.example:{port}") as via:
        piece = client_hello("shut.example")[:40]
        record = b"\x16\x03\x01" + len(piece).to_bytes(2, "big") + piece
        await speak(via.port, f"CONNECT open.example:{port} HTTP/1.1\r\n\r\n".encode() + record)

        assert (await via.event())["decision"] == "deny"
        assert arrived == [b""]


@given(st.binary(max_size=80), st.sampled_from([b"", b"GET http://a.example/ HTTP/1.1\r\n", b"CONNECT "]))
def test_any_head_is_a_request_or_malformed(data: bytes, start: bytes) -> None:
    with suppress(Malformed):
        wanted = parse_head(start + data + b"\r\n\r\n")
        assert 0 < wanted.port < 65536
        assert wanted.head.count(b"\r\n\r\n") == (1 if wanted.head else 0)


async def test_a_rule_for_a_method_does_not_open_a_tunnel() -> None:
    async with web_server() as web, proxy(f"GET open.example:{web.port}") as via:
        place = f"open.example:{web.port}"

        assert (await speak(via.port, f"GET http://{place}/ HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 200")
        assert (await speak(via.port, f"POST http://{place}/ HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")
        assert (await speak(via.port, f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "body", ["Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "\r\n"]
)
async def test_a_second_request_behind_the_first_goes_nowhere(body: str) -> None:
    async with web_server() as web, proxy(f"open.example:{web.port}") as via:
        first = f"POST http://open.example:{web.port}/1 HTTP/1.1\r\n{body}"
        hidden = f"DELETE /2 HTTP/1.1\r\nHost: internal\r\n\r\nDELETE http://open.example:{web.port}/3 HTTP/1.1\r\n\r\n"
        await speak(via.port, (first + hidden).encode())

        assert [(got.method, got.path) for got in web.received] == [("POST", "/1")]


async def test_a_chunked_body_arrives_whole() -> None:
    async with web_server() as web, proxy(f"open.example:{web.port}") as via:
        head = f"PUT http://open.example:{web.port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        await speak(via.port, head.encode() + b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\n")

        assert web.received[0].body == b"hello world"


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: open.example\r\n\r\n",
        b"GET https://open.example/ HTTP/1.1\r\n\r\n",
        b"GET ftp://open.example/ HTTP/1.1\r\n\r\n",
        b"GET http://user@open.example/ HTTP/1.1\r\n\r\n",
        b"GET http://open.example/ HTTP/2.0\r\n\r\n",
        b"get http://open.example/ HTTP/1.1\r\n\r\n",
        b"CONNECT open.example HTTP/1.1\r\n\r\n",
        b"CONNECT open.example:0 HTTP/1.1\r\n\r\n",
        b"CONNECT a@open.example:80 HTTP/1.1\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        b"POST http://open.example/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST http://open.example/ HTTP/1.1\r\nContent-Length: +3\r\n\r\nabc",
        b"POST http://open.example/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST http://open.example/ HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nA: b\nContent-Length: 5\r\n\r\n",
        b"GET http://open.example/\0 HTTP/1.1\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET http://open.example/ HTTP/1.1\r\nA: " + b"b" * 70_000,
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(said: bytes) -> None:
    async with proxy("open.example") as via:
        assert (await speak(via.port, said)).startswith(b"HTTP/1.1 400")
        assert (await via.event())["decision"] == "deny"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"\x05\x01\x02", b"\x05\xff"),
        (b"\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", b"\x05\x00\x05\x07"),
        (b"\x05\x01\x00\x05\x01\x00\x09", b"\x05\x00\x05\x08"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x03a b\x00\x50", b"\x05\x00\x05\x02"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x03a\x00b\x00\x50", b"\x05\x00\x05\x02"),
        (b"\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50", b"\x05\x00\x05\x02"),
    ],
)
async def test_socks_that_is_not_understood_is_refused_in_its_own_words(said: bytes, answer: bytes) -> None:
    async with proxy("*") as via:
        assert (await speak(via.port, said)).startswith(answer)


@pytest.mark.parametrize("said", [b"", b"GET http://open", b"\x05\x01", b"\x05\x01\x00\x05\x01\x00\x03\xff"])
async def test_a_client_that_dawdles_is_sent_away(said: bytes) -> None:
    async with proxy("*", limits=ProxyLimits(head_timeout=0.05)) as via:
        await speak(via.port, said)
        assert "no request came" in str((await via.event())["reason"])


async def test_a_connection_on_which_nothing_moves_ends() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()
        await asyncio.Event().wait()

    async with listening(silent) as port, proxy(f"127.0.0.1:{port}", limits=ProxyLimits(idle_timeout=0.05)) as via:
        await speak(via.port, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert "nothing moved" in str((await via.event())["reason"])


async def test_what_goes_through_is_capped() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(65536))
            await writer.drain()

    async with listening(endless) as port, proxy(f"127.0.0.1:{port}", limits=ProxyLimits(max_bytes=200_000)) as via:
        answer = await speak(via.port, f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())

        assert len(answer) < 300_000
        assert "200000 bytes" in str((await via.event())["reason"])


async def test_more_clients_than_places_wait_their_turn() -> None:
    async with web_server() as web, proxy(f"127.0.0.1:{web.port}", limits=ProxyLimits(connections=2)) as via:
        request = f"GET http://127.0.0.1:{web.port}/ HTTP/1.1\r\n\r\n".encode()
        answers = await asyncio.gather(*(speak(via.port, request) for _ in range(20)))

        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)


async def test_a_connection_that_goes_wrong_unforeseen_does_not_take_the_others_down() -> None:
    class Failing:
        async def resolve(self, _: str) -> Sequence[Address]:
            raise ZeroDivisionError("unforeseen")

    async with web_server() as web, proxy(f"127.0.0.1:{web.port}", resolver=Failing()) as via:
        assert await speak(via.port, f"GET http://open.example:{web.port}/ HTTP/1.1\r\n\r\n".encode()) == b""
        fine = await speak(via.port, f"GET http://127.0.0.1:{web.port}/ HTTP/1.1\r\n\r\n".encode())

        assert fine.startswith(b"HTTP/1.1 200")
        assert (await via.event())["reason"] == "ZeroDivisionError: unforeseen"


async def test_connections_end_with_the_proxy() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(silent) as port:
        async with proxy(f"127.0.0.1:{port}") as via:
            reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
            writer.write(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def run(*argv: str, port: int, cwd: Path) -> str:
    """Run a program with nothing but the proxy's variables and a home of its own; give what it prints."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"} | proxy_environment(port)
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(60):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


async def test_curl_works_through_it_with_the_usual_variables(tmp_path: Path) -> None:
    async with (
        web_server(lambda got: Answer(body=got.method.encode())) as web,
        proxy(f"open.example:{web.port}") as via,
    ):
        url = f"http://open.example:{web.port}/"

        assert await run("curl", "-sS", url, port=via.port, cwd=tmp_path) == "GET"
        assert await run("curl", "-sS", "-d", "x" * 5000, url, port=via.port, cwd=tmp_path) == "POST"
        assert await run("curl", "-sS", "-p", url, port=via.port, cwd=tmp_path) == "GET"
        socks = ("curl", "-sS", "-x", f"socks5h://127.0.0.1:{via.port}", url)
        assert await run(*socks, port=via.port, cwd=tmp_path) == "GET"
        told = await via.first(4)
        assert [event["protocol"] for event in told] == ["http", "http", "connect", "socks5"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The files of a repository with one commit, as a plain web server would offer them."""
    origin = tmp_path / "origin"
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for command in (
        ("init", "-q", str(origin)),
        ("-C", str(origin), *identity, "commit", "-q", "--allow-empty", "-m", "first"),
        ("-C", str(origin), "update-server-info"),
    ):
        subprocess.run(["git", *command], check=True, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    return origin / ".git"


async def test_git_clones_through_it(tmp_path: Path, repository: Path) -> None:
    def serve(path: str) -> Answer:
        file = repository / path.partition("?")[0].lstrip("/").removeprefix("repo/")
        return Answer(body=file.read_bytes()) if file.is_file() else Answer(status=404)

    async with web_server(lambda got: serve(got.path)) as web, proxy(f"open.example:{web.port}") as via:
        url = f"http://open.example:{web.port}/repo"
        await run("git", "clone", "-q", url, "copy", port=via.port, cwd=tmp_path)

    assert "first" in await run("git", "-C", "copy", "log", "--oneline", port=1, cwd=tmp_path)


async def test_pip_downloads_through_it(tmp_path: Path) -> None:
    wheel = tmp_path / "built" / "reeve_probe-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    make_wheel(wheel)

    def serve(path: str) -> Answer:
        if path == "/simple/reeve-probe/":
            body = f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode()
            return Answer(body=body, headers={"content-type": "text/html"})
        return Answer(body=wheel.read_bytes()) if path == f"/files/{wheel.name}" else Answer(status=404)

    async with web_server(lambda got: serve(got.path)) as web, proxy(f"open.example:{web.port}") as via:
        index = f"http://open.example:{web.port}/simple"
        pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check")
        await run(*pip, "-i", index, "--trusted-host", "open.example", "reeve-probe", port=via.port, cwd=tmp_path)

    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def make_wheel(path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(path, "w") as archive:
        info = "reeve_probe-1.0.dist-info"
        archive.writestr("reeve_probe.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: reeve-probe\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


async def test_npm_fetches_through_it(tmp_path: Path) -> None:
    import io
    import json
    import tarfile

    package = json.dumps({"name": "reeve-probe", "version": "1.0.0"}).encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/package.json")
        member.size = len(package)
        archive.addfile(member, io.BytesIO(package))

    async with web_server() as web, proxy(f"open.example:{web.port}") as via:
        registry = f"http://open.example:{web.port}"
        version = json.loads(package) | {"dist": {"tarball": f"{registry}/reeve-probe.tgz"}}
        listing = {"name": "reeve-probe", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        files = {"/reeve-probe": json.dumps(listing).encode(), "/reeve-probe.tgz": packed.getvalue()}
        web.respond = lambda got: Answer(body=files[got.path]) if got.path in files else Answer(status=404)
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts")
        await run("npm", "install", *quiet, "--registry", registry, "reeve-probe", port=via.port, cwd=tmp_path)

    assert (tmp_path / "node_modules/reeve-probe/package.json").read_bytes() == package
