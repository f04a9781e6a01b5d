"""What the door does with an SDK that has changed where it promised nothing."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from toolreeve.core.mcp import PeerError
from toolreeve.serve.mcp.sdk_server import Context, SdkChannel


def session(**parts: Any) -> Context:
    return cast(Context, SimpleNamespace(session=SimpleNamespace(**parts)))


async def test_a_client_that_cannot_be_asked_is_an_error_and_notifications_are_left_out() -> None:
    channel = SdkChannel(session())

    await channel.notify("notifications/progress", {})
    with pytest.raises(PeerError, match="the installed version of mcp"):
        await channel.request("elicitation/create", {})
