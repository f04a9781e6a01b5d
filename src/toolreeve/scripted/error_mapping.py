"""What does an exit code mean to the caller? What the tool's author says it means, told in one of two profiles.

`acp-basic`: the detail of an error is a text, and what is structured goes to the result's diagnostics. `extended-json`:
the detail is the structure itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.core.process import Ended
from toolreeve.scripted.syntax import TemplateProblem
from toolreeve.scripted.template import Message

Profile = Literal["acp-basic", "extended-json"]
INTERNAL = -32603
_OURS = {
    -32002: ErrorCode.PATH_NOT_FOUND,
    -32602: ErrorCode.INVALID_PARAMS,
    -32001: ErrorCode.PERMISSION,
}
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    code: int
    message: str = ""
    detail: "Message | Mapping[str, Any] | None" = None
    retryable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMapping:
    meanings: Mapping[int, Meaning]
    profile: Profile = "acp-basic"
    problems: list[tuple[str, str, str]] = field(default_factory=list)

    def failure(self, ended: Ended, args: Mapping[str, Any], data: Mapping[str, Any]) -> ToolError:
        """What to raise for a script that ended with anything but zero."""
        meaning = self.meanings.get(ended.exit_code)
        code = INTERNAL if meaning is None else meaning.code
        retryable = meaning is None or meaning.retryable
        detail = None if meaning is None else _rendered(meaning.detail, args)
        message = (meaning.message if meaning else "") or _summary(ended.exit_code, data["stderr"])
        diagnostics = {
            "code": code,
            "message": message,
            "retryable": meaning is not None and meaning.retryable,
            "exit_code": ended.exit_code,
            "stderr": data["stderr"],
            **({} if detail is None else {"detail": detail}),
        }
        return ToolError(
            _OURS.get(code, ErrorCode.TOOL_EXEC),
            message,
            detail=diagnostics if self.profile == "extended-json" else detail or message,
            retryable=retryable,
            data=data,
            meta={"diagnostics": diagnostics, "sandbox": ended.sandbox, "truncated": ended.truncated},
        )


def _summary(exit_code: int, stderr: str) -> str:
    last = stderr.strip().splitlines()[-1][:_SHOWN] if stderr.strip() else ""
    return f"the script exited with {exit_code}" + (f": {last}" if last else "")


def _rendered(detail: Message | Mapping[str, Any] | None, args: Mapping[str, Any]) -> Any:
    return detail.render(args) if isinstance(detail, Message) else detail


def read_mapping(written: Mapping[str, Any], profile: Profile) -> ErrorMapping:
    meanings: dict[int, Meaning] = {}
    problems: list[tuple[str, str, str]] = []
    for key, value in written.items():
        if int(key) not in range(1, 256):
            problems.append((key, "is not an exit code of a failure", "use a number from 1 to 255"))
            continue
        spelled: Mapping[str, Any] = {"code": value} if isinstance(value, int) else value
        try:
            detail = _detail(spelled.get("detail"), profile)
        except TemplateProblem as problem:
            problems.append((key, f"detail: {problem.problem}", problem.fix))
            continue
        meanings[int(key)] = Meaning(
            code=spelled["code"],
            message=spelled.get("message", ""),
            detail=detail,
            retryable=spelled.get("retryable", False),
        )
    return ErrorMapping(meanings=meanings, profile=profile, problems=problems)


def _detail(written: Any, profile: Profile) -> Message | Mapping[str, Any] | None:
    if isinstance(written, str):
        return Message(written)
    if written is not None and profile == "acp-basic":
        fix = "write a text, or set error_profile to extended-json"
        raise TemplateProblem("an object needs another error profile", line=1, fix=fix)
    return written  # type: ignore[no-any-return]
