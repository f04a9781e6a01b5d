"""Calls of tools that are known by name: as dangerous as those of the tools themselves."""

from typing import Any

import pytest

from toolreeve.core.danger import DangerLevel
from toolreeve.core.http import METHOD_DANGERS
from toolreeve.policy.hypothetical import build_action
from toolreeve.tools.http import http_request

SPELLINGS = [spelling for name in METHOD_DANGERS for spelling in (name, name.lower(), f" {name} ")]


@pytest.mark.parametrize("method", [*SPELLINGS, None, ""])
def test_a_request_is_as_dangerous_as_the_tool_that_sends_it(method: Any) -> None:
    args = {"url": "https://example.com", "method": method}
    assert http_request.assess is not None

    assert build_action("http_request", args).danger is http_request.assess(args)


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PURGE"])
def test_a_method_that_only_another_tool_may_send_is_dangerous(method: str) -> None:
    assert build_action("http_request", {"url": "https://example.com", "method": method}).danger is DangerLevel.HIGH
