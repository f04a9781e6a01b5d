"""A question to put to somebody, and how a call that asked one ended."""

from typing import Any

from tests.approval.people import ASK, call
from toolreeve.approval.request import Request, pose
from toolreeve.core.errors import ErrorCode
from toolreeve.core.result import ToolResult


def code(result: ToolResult) -> ErrorCode | None:
    return None if result.error is None else result.error.code


def question(**arguments: Any) -> Request:
    return pose(call(args=arguments or None), ASK, version="1", timeout=60.0, lasting="- a rule")
