"""Problem details: every error of the API is `application/problem+json` (RFC 9457).

The HTTP status of an error code is defined here and nowhere else.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NotRequired

from starlette.responses import Response
from typing_extensions import TypedDict

from toolreeve.core import json
from toolreeve.core.errors import TRAITS, ErrorCode, Severity, ToolError
from toolreeve.core.result import Failed

MEDIA_TYPE = "application/problem+json"
_STATUSES: Mapping[ErrorCode, int] = {
    ErrorCode.TOOL_NOT_FOUND: 404,
    ErrorCode.APPROVAL_TIMEOUT: 408,
    ErrorCode.APPROVAL_PENDING: 409,
    ErrorCode.CANCELLED: 409,
    ErrorCode.TOOL_CHANGED: 409,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.HTTP_ERROR: 502,
    ErrorCode.UPSTREAM: 502,
    ErrorCode.AUDIT_ERROR: 503,
    ErrorCode.CIRCUIT_OPEN: 503,
    ErrorCode.HTTP_TIMEOUT: 504,
    ErrorCode.TIMEOUT: 504,
}


class ProblemDetails(TypedDict):
    """`detail` says what is wrong and how to fix it. A failed call adds the members of its result."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    recoverable: bool
    retryable: bool
    suggestions: list[str]
    success: NotRequired[bool]
    data: NotRequired[dict[str, Any] | None]
    error: NotRequired[dict[str, Any] | None]
    meta: NotRequired[dict[str, Any]]
    context: NotRequired[dict[str, Any]]


class Problem(Exception):
    """An error that an endpoint answers with. `more` are further members, under `context`."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: ErrorCode = ErrorCode.INVALID_PARAMS,
        suggestions: Sequence[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.suggestions = tuple(suggestions)
        self.more = more

    def to_dict(self) -> dict[str, Any]:
        found = _members(self.status, self.detail, self.code, self.suggestions)
        return {**found, "context": self.more} if self.more else found


def not_found(what: str, *, suggestions: Sequence[str] = ()) -> Problem:
    return Problem(404, what, suggestions=suggestions)


def problem_of(error: ToolError) -> Problem:
    return Problem(status_of(error.code), error.message, code=error.code, suggestions=error.suggestions)


def failed_result(result: Failed) -> tuple[int, dict[str, Any]]:
    """The status and body for a failed call: its result, which is a problem document as well."""
    error = result.error
    status = status_of(error.code)
    return status, {**result.to_dict(), **_members(status, error.message, error.code, error.suggestions)}


def status_of(code: ErrorCode) -> int:
    """What the tool itself reports is 422, a refusal 403."""
    fatal = TRAITS[code].severity is Severity.FATAL
    return _STATUSES.get(code, 403 if fatal else 422)


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json.dumps(problem.to_dict()), problem.status, headers, MEDIA_TYPE)


def _members(status: int, detail: str, code: ErrorCode, suggestions: Sequence[str]) -> dict[str, Any]:
    traits = TRAITS[code]
    return {
        "type": f"urn:toolreeve:error:{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": str(code),
        "recoverable": traits.recoverable,
        "retryable": traits.retryable,
        "suggestions": list(suggestions),
    }
