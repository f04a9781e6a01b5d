"""Error mapping: what a script's exit codes mean.

The author defines the meaning; it is reported in one of two profiles. `acp-basic`: the detail of an error is a text,
and structured data goes to the result's diagnostics. `extended-json`: the detail is the structure itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolreeve.core.errors import TRAITS, ErrorCode, ToolError
from toolreeve.core.failure_reason import find_reason
from toolreeve.core.process import Ended
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import Message

Profile = Literal["acp-basic", "extended-json"]
_OURS = {
    TRAITS[code].jsonrpc: code for code in (ErrorCode.PATH_NOT_FOUND, ErrorCode.INVALID_PARAMS, ErrorCode.PERMISSION)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    code: int
    message: str = ""
    detail: "Message | Mapping[str, Any] | None" = None
    retryable: bool = False


_UNMAPPED = Meaning(code=TRAITS[ErrorCode.TOOL_EXEC].jsonrpc)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMapping:
    meanings: Mapping[int, Meaning]
    profile: Profile = "acp-basic"
    problems: list[tuple[str, str, str]] = field(default_factory=list)

    def failure(self, ended: Ended, args: Mapping[str, Any], data: Mapping[str, Any]) -> ToolError:
        """The error of a script that ended with a non-zero exit code."""
        meaning = self.meanings.get(ended.exit_code)
        known = meaning or _UNMAPPED
        detail = _rendered(known.detail, args)
        retryable = meaning is None or meaning.retryable
        message = known.message or _summary(ended.exit_code, data["stderr"])
        diagnostics = {
            "code": known.code,
            "message": message,
            "retryable": retryable,
            "exit_code": ended.exit_code,
            "stderr": data["stderr"],
        }
        if detail is not None:
            diagnostics["detail"] = detail
        return ToolError(
            _OURS.get(known.code, ErrorCode.TOOL_EXEC),
            message,
            detail=diagnostics if self.profile == "extended-json" else detail or message,
            retryable=retryable,
            data=data,
            meta={"diagnostics": diagnostics, "sandbox": ended.sandbox, "truncated": ended.truncated},
        )


def _summary(exit_code: int, stderr: str) -> str:
    summary = f"the script exited with {exit_code}"
    why = find_reason(stderr)
    return f"{summary}: {why}" if why else summary


def _rendered(detail: Message | Mapping[str, Any] | None, args: Mapping[str, Any]) -> Any:
    return detail.render(args) if isinstance(detail, Message) else detail


def read_mapping(given: Mapping[str, Any], profile: Profile) -> ErrorMapping:
    meanings: dict[int, Meaning] = {}
    problems: list[tuple[str, str, str]] = []
    for key, value in given.items():
        if int(key) not in range(1, 256):
            problems.append((key, "is not an exit code of a failure", "use a number from 1 to 255"))
            continue
        mapped: Mapping[str, Any] = {"code": value} if isinstance(value, int) else value
        try:
            detail = _detail(mapped.get("detail"), profile)
        except TemplateProblem as problem:
            problems.append((key, f"detail: {problem.problem}", problem.fix))
            continue
        meanings[int(key)] = Meaning(
            code=mapped["code"],
            message=mapped.get("message", ""),
            detail=detail,
            retryable=mapped.get("retryable", False),
        )
    return ErrorMapping(meanings=meanings, profile=profile, problems=problems)


def _detail(given: Any, profile: Profile) -> Message | Mapping[str, Any] | None:
    if isinstance(given, str):
        return Message(given)
    if given is not None and profile == "acp-basic":
        fix = "write a text, or set error_profile to extended-json"
        raise TemplateProblem("an object needs the error profile extended-json", line=1, fix=fix)
    return given  # type: ignore[no-any-return]
