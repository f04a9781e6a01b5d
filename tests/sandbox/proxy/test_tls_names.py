"""The checked TLS name is the one that OpenSSL, as the server, sees, however records are cut."""

import asyncio
import functools
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.network import listening
from tests.sandbox.proxy.proxy_client import proxy
from tests.sandbox.proxy.test_tls_sni import client_hello
from toolreeve.core.errors import ToolError
from toolreeve.sandbox.proxy.tls_sni import Opening, read_opening

GOOD, EVIL = "open.example", "evil.example"


@functools.cache
def certificate() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"]
        both = [*command, "-keyout", f"{folder}/key", "-out", f"{folder}/crt"]
        subprocess.run(both, check=True, capture_output=True)
        return Path(folder, "key").read_bytes() + Path(folder, "crt").read_bytes()


def tls_server(curve: str | None = None) -> tuple[ssl.SSLContext, list[str | None]]:
    """OpenSSL as a server, and the names that it was asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate())
        file.flush()
        context.load_cert_chain(file.name)
    if curve:
        context.set_ecdh_curve(curve)
    names: list[str | None] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    return context, names


def seen_by_openssl(said: bytes) -> list[str | None]:
    context, names = tls_server()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    incoming.write(said)
    with pytest.raises(ssl.SSLError):  # the client says no more than this
        context.wrap_bio(incoming, outgoing, server_side=True).do_handshake()
    return names


def opened(said: bytes) -> Opening:
    async def read() -> Opening:
        reader = asyncio.StreamReader()
        reader.feed_data(said)
        reader.feed_eof()
        return await read_opening(reader)

    return asyncio.run(read())


def record(content: bytes, kind: int = 0x16) -> bytes:
    return bytes((kind, 3, 1)) + len(content).to_bytes(2, "big") + content


def cut(message: bytes, places: Sequence[int]) -> list[bytes]:
    ends = sorted({place % (len(message) - 1) + 1 for place in places})
    return [message[start:end] for start, end in zip([0, *ends], [*ends, len(message)], strict=True)]


@given(st.lists(st.integers(0, 10_000), max_size=30), st.sampled_from([GOOD, EVIL, None]))
def test_a_client_hello_in_any_number_of_records_is_checked_by_the_name_that_openssl_sees(
    places: list[int], name: str | None
) -> None:
    said = b"".join(record(piece) for piece in cut(client_hello(name), places) if piece)

    assert opened(said) == Opening(said, tls=True, name=name)
    assert seen_by_openssl(said) == [name]


@given(
    st.lists(st.integers(0, 10_000), max_size=4),
    st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from([b"", b"\0", b"\x01\x5a"]), st.integers(0x13, 0x19))),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=3),
)
def test_what_openssl_takes_for_a_name_was_checked_or_refused(
    places: list[int], strangers: list[tuple[int, bytes, int]], flips: list[tuple[int, int]]
) -> None:
    message = bytearray(client_hello(EVIL))
    for place, value in flips:
        message[place % len(message)] = value
    records = [record(piece) for piece in cut(bytes(message), places)]
    for place, content, kind in strangers:
        records.insert(place % (len(records) + 1), record(content, kind))
    said = b"".join(records)

    try:
        judged = opened(said)
    except ToolError:
        return
    if judged.tls:
        assert set(seen_by_openssl(said)) <= {judged.name}
    else:
        assert seen_by_openssl(said) == []


def with_names(*names: bytes, kind: int = 0, again: bool = False) -> bytes:
    """A ClientHello whose server_name extension is made by hand."""
    entries = b"".join(bytes((kind,)) + len(name).to_bytes(2, "big") + name for name in names)
    content = len(entries).to_bytes(2, "big") + entries
    extension = b"\0\0" + len(content).to_bytes(2, "big") + content
    extensions = extension * (2 if again else 1)
    body = b"\x03\x03" + bytes(32) + b"\0" + b"\0\x02\x13\x01" + b"\x01\0" + len(extensions).to_bytes(2, "big")
    body += extensions
    return b"\x01" + len(body).to_bytes(3, "big") + body


WHOLE = client_hello(EVIL)
REFUSED = {
    "an empty record first": record(b"") + record(WHOLE),
    "an empty record between": record(WHOLE[:9]) + record(b"") + record(WHOLE[9:]),
    "an alert first": record(b"\x01\x5a", 0x15) + record(WHOLE),
    "a change of ciphers first": record(b"\x01", 0x14) + record(WHOLE),
    "data first": record(b"\0\0", 0x17) + record(WHOLE),
    "a heartbeat first": record(b"\x01\0\0", 0x18) + record(WHOLE),
    "an alert between": record(WHOLE[:9]) + record(b"\x01\x5a", 0x15) + record(WHOLE[9:]),
    "another version of records": b"\x16\x02" + record(WHOLE)[2:],
    "a record that is too large": b"\x16\x03\x01\x40\x01" + bytes(16385),
    "another message first": record(b"\x0b\0\0\0" + WHOLE),
    "bytes behind the message": record(WHOLE + b"\0"),
    "a second ClientHello behind the first": record(client_hello(GOOD) + WHOLE),
    "a ClientHello that never ends": b"".join(record(b"\x01\xff\xff\xff"[:4] + bytes(16000)) for _ in range(6)),
    "a ClientHello in too many records": b"".join(record(WHOLE[place : place + 1]) for place in range(len(WHOLE))),
    "a ClientHello that is cut off": record(WHOLE[:40]),
    "two names": record(with_names(GOOD.encode(), EVIL.encode())),
    "the extension twice": record(with_names(GOOD.encode(), again=True)),
    "a name of another kind": record(with_names(GOOD.encode(), kind=1)),
    "no name in the extension": record(with_names()),
    "an empty name": record(with_names(b"")),
    "a name with a zero": record(with_names(b"open.example\0.evil.example")),
    "a name in escapes": record(with_names(b"%6fpen.example")),
    "a name that is not ASCII": record(with_names("öpen.example".encode())),
    "a name with a space": record(with_names(b"open.example ")),
}


@pytest.mark.parametrize("said", REFUSED.values(), ids=REFUSED)
async def test_what_begins_like_tls_and_is_not_a_whole_client_hello_never_arrives(said: bytes) -> None:
    arrived: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        arrived.append(await reader.read())

    async with listening(listen) as port, proxy(f"{GOOD}:{port}") as via:
        reader, writer = await asyncio.open_connection("127.0.0.1", via.port)
        writer.write(f"CONNECT {GOOD}:{port} HTTP/1.1\r\n\r\n".encode() + said)
        writer.write_eof()
        async with asyncio.timeout(10):
            await reader.read()
        writer.close()

        event = await via.event()
        assert (event["decision"], arrived) == ("deny", [b""])
        assert "must begin with one whole ClientHello" in str(event["reason"])


async def handshake(port: int, place: str, name: str, change: Callable[[int, bytes], bytes]) -> bool:
    """A TLS client in a tunnel that changes what it says. Whether the handshake was done."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        for turn in range(10):
            try:
                client.do_handshake()
                return True
            except ssl.SSLWantReadError:
                writer.write(change(turn, outgoing.read()))
                async with asyncio.timeout(10):
                    piece = await reader.read(65536)
                if not piece:
                    return False
                incoming.write(piece)
            except ssl.SSLError:
                return False
        return False
    finally:
        writer.close()


async def nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


@pytest.mark.parametrize("curve", [None, "secp384r1"], ids=["at once", "after a retry"])
async def test_a_handshake_through_a_tunnel_succeeds(curve: str | None) -> None:
    context, names = tls_server(curve)
    async with listening(nothing, tls=context) as port, proxy(f"{GOOD}:{port}") as via:
        assert await handshake(via.port, f"{GOOD}:{port}", GOOD, lambda _, said: said)

        assert set(names) == {GOOD}


async def test_a_second_client_hello_after_a_retry_cannot_ask_for_another_name() -> None:
    context, names = tls_server("secp384r1")  # the client's guess is another curve: it is asked to try again

    def change(turn: int, said: bytes) -> bytes:
        return said.replace(GOOD.encode(), EVIL.encode()) if turn else said

    async with listening(nothing, tls=context) as port, proxy(f"{GOOD}:{port}") as via:
        assert not await handshake(via.port, f"{GOOD}:{port}", GOOD, change)

        assert (await via.event())["decision"] == "deny"
        assert names == [GOOD]
