import pytest

from tests.approval.people import ASK, Listener, call
from toolreeve.approval.broker import Broker
from toolreeve.approval.channels.callback import CallbackChannel
from toolreeve.approval.request import Request
from toolreeve.core.effects import Effect
from toolreeve.core.errors import ErrorCode, ToolError


async def test_a_call_that_fails_after_its_approval_keeps_its_error_and_withdraws_the_question() -> None:
    listener = Listener()
    answered: list[Request] = []

    def effects(*_: object, **__: object) -> list[Effect]:
        if answered:
            raise ToolError(ErrorCode.PATH_NOT_FOUND, "the folder is gone")
        return []

    def answer(request: Request) -> bool:
        answered.append(request)
        return True

    broker = Broker([CallbackChannel(answer)], now=lambda: 0.0, emit=listener)

    with pytest.raises(ToolError) as raised:
        await broker.settle(call(effects=effects), ASK)

    assert raised.value.code is ErrorCode.PATH_NOT_FOUND
    assert listener.told == [("approval_requested", None), ("approval_withdrawn", "withdrawn")]
