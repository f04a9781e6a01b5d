"""The wire format: nothing of a signed call can be changed, and results arrive as they were sent."""

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolreeve.core.effects import Effect, EffectKind
from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.result import Meta, Output
from toolreeve.execution.workers.signing import new_key, read_key
from toolreeve.execution.workers.wire import (
    PIECE,
    Assembler,
    CallRefused,
    RemoteCall,
    SignedCall,
    decode_result,
    encode_error,
    encode_output,
    encode_refusal,
    pieces,
    seal,
    unseal,
)

KEY = read_key(new_key("hmac")[0])
SUBJECT = "toolreeve.call.once.build"
CALL = RemoteCall(
    tool="once",
    digest="d",
    args={"number": 2**70, "text": "\ud800"},
    decision={"effect": "allow"},
    approved=True,
    session="s",
    user="ann",
    role="operator",
    origin="mcp",
    timeout=5.0,
    version="0.1.0",
    id="c1",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def sealed(call: RemoteCall = CALL) -> SignedCall:
    return seal(call, KEY, subject=SUBJECT, reply="toolreeve.reply.build.g.1", issued=1_000.0, lifetime=60.0)


def opened(headers: dict[str, str], body: bytes, *, subject: str = SUBJECT, now: float = 1_001.0) -> RemoteCall:
    return unseal(headers, body, [KEY], subject=subject, now=now)


def meta() -> Meta:
    return Meta(call_id="c", tool="t", session="s")


def test_a_signed_call_arrives_as_it_was() -> None:
    message = sealed()

    assert opened(dict(message.headers), message.body) == CALL


@pytest.mark.parametrize("name", list(sealed().headers))
def test_a_changed_header_is_refused(name: str) -> None:
    message = sealed()

    with pytest.raises(CallRefused):
        opened({**message.headers, name: message.headers[name] + "0"}, message.body)


@pytest.mark.parametrize("name", list(sealed().headers))
def test_a_missing_header_is_refused(name: str) -> None:
    message = sealed()

    with pytest.raises(CallRefused):
        opened({key: value for key, value in message.headers.items() if key != name}, message.body)


def test_a_changed_decision_is_refused() -> None:
    message = sealed()

    with pytest.raises(CallRefused, match="not signed"):
        opened(dict(message.headers), message.body.replace(b'"approved":true', b'"approved":null'))


def test_a_call_of_another_pool_is_refused() -> None:
    message = sealed()

    with pytest.raises(CallRefused, match="not signed"):
        opened(dict(message.headers), message.body, subject="toolreeve.call.once.other")


@pytest.mark.parametrize(
    ("now", "message"),
    [
        (1_000.0 + 3_600, "issued 3600 s ago by this worker's clock and valid for 60 s (workers.queue_timeout)"),
        (1_000.0 - 3_600, "issued 3600 s in the future by this worker's clock: synchronize the clocks"),
    ],
)
def test_a_clock_that_is_an_hour_off_is_named(now: float, message: str) -> None:
    found = sealed()

    with pytest.raises(CallRefused) as refusal:
        opened(dict(found.headers), found.body, now=now)

    assert message in str(refusal.value)


def test_a_gateway_of_another_protocol_is_named() -> None:
    message = sealed()

    with pytest.raises(CallRefused, match="the gateway speaks protocol 2, this worker 1"):
        opened({**message.headers, "Toolreeve-Protocol": "2"}, message.body)


def test_a_signed_call_with_unknown_fields_is_refused() -> None:
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class NewerCall(RemoteCall):
        more: str = ""

    newer = NewerCall(**{each.name: getattr(CALL, each.name) for each in dataclasses.fields(CALL)})
    message = sealed(newer)

    with pytest.raises(CallRefused, match=r"another version of Toolreeve: 0\.1\.0"):
        opened(dict(message.headers), message.body)


@given(data=st.dictionaries(st.text(), JSON), main=JSON)
def test_outputs_arrive_as_they_were(data: dict[str, Any], main: Any) -> None:
    effects = (Effect(EffectKind.WRITE, "/w/a"),)
    output = Output(data=data, main=main, labels=("web",), order=(("stdout", 3),), cost=0.5, effects=effects)
    sent, received = meta(), meta()
    sent.attempts = 2
    sent.quarantined.append("x")

    assert decode_result(encode_output(output, sent), received) == output
    assert (received.attempts, received.quarantined) == (2, ["x"])


def test_errors_arrive_as_they_were() -> None:
    error = ToolError(ErrorCode.LIMIT, "too much", suggestions=("less",), detail={"a": 1}, data={"stdout": "x"})

    with pytest.raises(ToolError) as raised:
        decode_result(encode_error(error, meta()), meta())

    assert vars(raised.value) == vars(error)


def test_what_json_cannot_carry_is_an_error_of_the_tool() -> None:
    with pytest.raises(ToolError, match="cannot be sent from a worker"):
        encode_output(Output(data={"x": object()}), meta())
    with pytest.raises(ToolError, match="cannot be sent to a worker"):
        sealed(dataclasses.replace(CALL, args={"x": object()}))


def test_a_refusal_arrives_as_one() -> None:
    with pytest.raises(CallRefused, match="no"):
        decode_result(encode_refusal("no"), meta())


@given(content=st.binary(max_size=200))
def test_an_invalid_result_is_an_error_and_nothing_else(content: bytes) -> None:
    with pytest.raises(ToolError, match="invalid result"):
        decode_result(content, meta())


@pytest.mark.parametrize(
    "shown",
    [
        {"output": {"data": 7}},
        {"output": {"data": {}, "raw": 7}},
        {"output": {"data": {}, "labels": [7]}},
        {"output": {"data": {}, "images": ["x"]}},
        {"output": {"data": {}, "cost": -1e9}},
        {"output": {"data": {}, "cost": float("nan")}},
        {"output": {"data": {}, "cost": float("inf")}},
        {"output": {"data": {}, "command": 7}},
        {"error": {"code": "E_TOOL_EXEC", "message": 7}},
        {"error": {"code": "E_TOOL_EXEC", "message": "m", "data": 7}},
        {"error": 7},
    ],
)
def test_a_worker_that_lies_about_types_or_costs_is_not_believed(shown: dict[str, Any]) -> None:
    content = json.dumps({"meta": {"attempts": 1, "quarantined": []}, **shown}).encode()

    with pytest.raises(ToolError, match="invalid result"):
        decode_result(content, meta())


def test_a_result_too_deep_to_read_is_an_error() -> None:
    with pytest.raises(ToolError, match="invalid result"):
        decode_result(b"[" * 200_000, meta())


@given(content=st.binary(min_size=1, max_size=10), times=st.integers(0, 300_000), data=st.data())
def test_pieces_join_in_any_order(content: bytes, times: int, data: st.DataObject) -> None:
    whole = content * times
    sent = list(pieces(whole))
    assembler = Assembler()

    joined = []
    for number, piece in data.draw(st.permutations(sent)):
        index, count = map(int, number.split("."))
        joined.append(assembler.add(index, count, piece))

    assert joined[-1] == whole
    assert joined[:-1] == [None] * (len(sent) - 1)


@pytest.mark.parametrize(("number", "count", "size"), [(-1, 1, 1), (1, 1, 1), (0, 10**9, 1), (0, 1, PIECE + 1)])
def test_pieces_that_cannot_be_are_dropped(number: int, count: int, size: int) -> None:
    assert Assembler().add(number, count, b"x" * size) is None


def test_a_body_is_plain_json() -> None:
    assert json.loads(sealed().body)["decision"] == {"effect": "allow"}
