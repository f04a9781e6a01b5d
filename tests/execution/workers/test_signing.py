"""Pool keys: what they sign, what they verify, what is not a key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.errors import ToolreeveError
from toolreeve.execution.workers.signing import is_signed, new_key, read_key

KINDS = ("hmac", "ed25519")


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_gateway_signs_its_workers_verify(kind: str) -> None:
    gateway, worker = (read_key(text) for text in new_key(kind))

    assert worker.verifies(b"call", gateway.sign(b"call"))


@pytest.mark.parametrize("kind", KINDS)
@given(message=st.binary(), other=st.binary(), signature=st.binary(max_size=80))
def test_no_other_message_and_no_other_signature_is_verified(
    kind: str, message: bytes, other: bytes, signature: bytes
) -> None:
    gateway, worker = (read_key(text) for text in new_key(kind))

    assert not worker.verifies(message, signature)
    assert other == message or not worker.verifies(other, gateway.sign(message))


@pytest.mark.parametrize("kind", KINDS)
def test_an_old_key_is_accepted_while_keys_are_replaced(kind: str) -> None:
    old, new = (tuple(map(read_key, new_key(kind))) for _ in range(2))
    signature = old[0].sign(b"call")

    assert is_signed(b"call", signature, [new[1], old[1]])
    assert not is_signed(b"call", signature, [new[1]])


@given(text=st.text() | st.binary(max_size=40).map(lambda raw: f"hmac:{raw.hex()}"))
def test_what_is_not_a_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ToolreeveError) as problem:
        read_key(text)

    assert "toolreeve workers key" in str(problem.value)
    assert len(text) < 10 or text not in str(problem.value)
