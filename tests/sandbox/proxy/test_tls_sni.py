import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ToolError
from toolreeve.sandbox.proxy.tls_sni import server_name


def client_hello(name: str | None) -> bytes:
    """What a real TLS client says first, without the five bytes of the record's header."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname=name).do_handshake()
    return outgoing.read()[5:]


def test_the_name_that_a_client_asks_for_is_found() -> None:
    assert server_name(client_hello("name.example")) == "name.example"
    assert server_name(client_hello(None)) is None


def test_another_kind_of_message_is_refused() -> None:
    with pytest.raises(ToolError):
        server_name(b"\x02" + client_hello("name.example")[1:])


def test_a_message_cut_anywhere_is_refused() -> None:
    whole = client_hello("name.example")

    for size in range(1, len(whole)):
        with pytest.raises(ToolError):
            server_name(whole[:size])


@given(st.binary(max_size=200))
def test_any_bytes_have_one_name_or_none_or_are_refused(data: bytes) -> None:
    try:
        name = server_name(b"\x01" + data)
    except ToolError:
        return
    assert name is None or isinstance(name, str)
