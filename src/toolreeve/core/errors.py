"""Error codes and their traits, and the exceptions that carry them.

`TRAITS` is the only table of error codes: results, JSON-RPC numbers, exit statuses and the documentation all read it.
Stages raise `ToolError`; the pipeline turns it into a result once. `ToolreeveError` and its subclasses are for misuse
of the library itself and do reach the caller.
"""

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any


class ErrorCode(StrEnum):
    FILE_NOT_FOUND = "E_FILE_NOT_FOUND"
    DIR_NOT_FOUND = "E_DIR_NOT_FOUND"
    PATH_NOT_FOUND = "E_PATH_NOT_FOUND"
    PERMISSION = "E_PERMISSION"
    CMD_NOT_ALLOWED = "E_CMD_NOT_ALLOWED"
    PATH_FORBIDDEN = "E_PATH_FORBIDDEN"
    WRITE_DISABLED = "E_WRITE_DISABLED"
    URL_FORBIDDEN = "E_URL_FORBIDDEN"
    DENIED = "E_DENIED"
    APPROVAL_DENIED = "E_APPROVAL_DENIED"
    APPROVAL_TIMEOUT = "E_APPROVAL_TIMEOUT"
    APPROVAL_PENDING = "E_APPROVAL_PENDING"
    BUDGET = "E_BUDGET"
    TOOL_EXEC = "E_TOOL_EXEC"
    READ_ERROR = "E_READ_ERROR"
    WRITE_ERROR = "E_WRITE_ERROR"
    LIST_ERROR = "E_LIST_ERROR"
    SEARCH_ERROR = "E_SEARCH_ERROR"
    HTTP_TIMEOUT = "E_HTTP_TIMEOUT"
    HTTP_ERROR = "E_HTTP_ERROR"
    HTTP_METHOD = "E_HTTP_METHOD"
    CALC_ERROR = "E_CALC_ERROR"
    AUDIT_ERROR = "E_AUDIT_ERROR"
    INVALID_PATH = "E_INVALID_PATH"
    INVALID_PARAMS = "E_INVALID_PARAMS"
    TOOL_NOT_FOUND = "E_TOOL_NOT_FOUND"
    TIMEOUT = "E_TIMEOUT"
    CANCELLED = "E_CANCELLED"
    LIMIT = "E_LIMIT"
    CIRCUIT_OPEN = "E_CIRCUIT_OPEN"
    RATE_LIMITED = "E_RATE_LIMITED"
    UPSTREAM = "E_UPSTREAM"
    TOOL_CHANGED = "E_TOOL_CHANGED"
    WORKER_UNAVAILABLE = "E_WORKER_UNAVAILABLE"
    WORKER_LOST = "E_WORKER_LOST"


class Severity(StrEnum):
    RECOVERABLE = "recoverable"
    FATAL = "fatal"
    OTHER = "other"


class ExitStatus:
    """Exit statuses of the command line; documented for scripts."""

    OK = 0
    TOOL_ERROR = 1
    USAGE = 2
    DENIED = 3
    TIMEOUT = 4
    NOT_FOUND = 5
    UNAVAILABLE = 6
    TAMPERED = 7
    LOST = 8


@dataclass(frozen=True, slots=True)
class Traits:
    severity: Severity
    retryable: bool
    jsonrpc: int
    exit_status: int
    meaning: str

    @property
    def recoverable(self) -> bool:
        return self.severity is Severity.RECOVERABLE


def _recoverable(meaning: str) -> Traits:
    return Traits(
        Severity.RECOVERABLE, retryable=False, jsonrpc=-32002, exit_status=ExitStatus.TOOL_ERROR, meaning=meaning
    )


def _fatal(meaning: str, *, jsonrpc: int = -32001, exit_status: int = ExitStatus.DENIED) -> Traits:
    return Traits(Severity.FATAL, retryable=False, jsonrpc=jsonrpc, exit_status=exit_status, meaning=meaning)


def _other(
    meaning: str, *, retryable: bool = False, jsonrpc: int = -32603, exit_status: int = ExitStatus.TOOL_ERROR
) -> Traits:
    return Traits(Severity.OTHER, retryable=retryable, jsonrpc=jsonrpc, exit_status=exit_status, meaning=meaning)


TRAITS: Mapping[ErrorCode, Traits] = {
    ErrorCode.FILE_NOT_FOUND: _recoverable("The file does not exist; similar names are suggested."),
    ErrorCode.DIR_NOT_FOUND: _recoverable("A directory of the path does not exist; similar ones are suggested."),
    ErrorCode.PATH_NOT_FOUND: _recoverable("Nothing exists at the path; alternatives are suggested."),
    ErrorCode.PERMISSION: _fatal("The operating system refused, or approval is needed and nobody can be asked."),
    ErrorCode.CMD_NOT_ALLOWED: _fatal("This role may not run the command."),
    ErrorCode.PATH_FORBIDDEN: _fatal("The path is outside the allowed roots or protected."),
    ErrorCode.WRITE_DISABLED: _fatal("Writing is turned off (`workspace.allow_write = false`)."),
    ErrorCode.URL_FORBIDDEN: _fatal("The network guard refuses the URL or its address."),
    ErrorCode.DENIED: _fatal("The policy denies the call."),
    ErrorCode.APPROVAL_DENIED: _fatal("A person or an approval policy denied the call."),
    ErrorCode.APPROVAL_TIMEOUT: _fatal("Nobody answered the approval request in time.", exit_status=ExitStatus.TIMEOUT),
    ErrorCode.APPROVAL_PENDING: _other(
        "The call waits for a person's approval; nothing has taken effect yet.",
        jsonrpc=-32001,
        exit_status=ExitStatus.DENIED,
    ),
    ErrorCode.BUDGET: _fatal("The budget does not cover the call."),
    ErrorCode.TOOL_EXEC: _other("The tool failed while it ran.", retryable=True),
    ErrorCode.READ_ERROR: _other("The file could not be read.", retryable=True),
    ErrorCode.WRITE_ERROR: _other("The file could not be written; nothing was changed.", retryable=True),
    ErrorCode.LIST_ERROR: _other("The directory could not be listed.", retryable=True),
    ErrorCode.SEARCH_ERROR: _other("The search failed."),
    ErrorCode.HTTP_TIMEOUT: _other("The HTTP request took too long.", retryable=True, exit_status=ExitStatus.TIMEOUT),
    ErrorCode.HTTP_ERROR: _other("The HTTP request failed.", retryable=True),
    ErrorCode.HTTP_METHOD: _other("The HTTP method is not supported.", jsonrpc=-32602, exit_status=ExitStatus.USAGE),
    ErrorCode.CALC_ERROR: _other("The expression cannot be calculated.", jsonrpc=-32602),
    ErrorCode.AUDIT_ERROR: _other("The audit log could not be read or written.", exit_status=ExitStatus.UNAVAILABLE),
    ErrorCode.INVALID_PATH: _other("The path is not valid.", jsonrpc=-32602, exit_status=ExitStatus.USAGE),
    ErrorCode.INVALID_PARAMS: _other(
        "The arguments do not match the tool's schema.", jsonrpc=-32602, exit_status=ExitStatus.USAGE
    ),
    ErrorCode.TOOL_NOT_FOUND: _other("No tool has that name.", jsonrpc=-32601, exit_status=ExitStatus.NOT_FOUND),
    ErrorCode.TIMEOUT: _other(
        "The call took longer than its time limit.", retryable=True, exit_status=ExitStatus.TIMEOUT
    ),
    ErrorCode.CANCELLED: _other("The call was cancelled before it ended.", jsonrpc=-32800),
    ErrorCode.LIMIT: _other("A resource limit stopped the call; the message names it."),
    ErrorCode.CIRCUIT_OPEN: _other(
        "The tool failed too often; its circuit breaker is open.", retryable=True, exit_status=ExitStatus.UNAVAILABLE
    ),
    ErrorCode.RATE_LIMITED: _other(
        "The rate limit of the tool is reached.", retryable=True, exit_status=ExitStatus.UNAVAILABLE
    ),
    ErrorCode.UPSTREAM: _other(
        "An MCP server or a connected service failed or is down.", retryable=True, exit_status=ExitStatus.UNAVAILABLE
    ),
    ErrorCode.TOOL_CHANGED: _fatal("The tool's definition changed since it was pinned; a person must accept it."),
    ErrorCode.WORKER_UNAVAILABLE: _other(
        "No worker took the call; nothing of it ran.", retryable=True, exit_status=ExitStatus.UNAVAILABLE
    ),
    ErrorCode.WORKER_LOST: _other(
        "The worker that ran the call is gone; what the call did is unknown.", exit_status=ExitStatus.UNAVAILABLE
    ),
}


class ToolError(Exception):
    """A refusal or failure of a stage or a tool. The pipeline turns it into a result; no caller sees it raised.

    `data` keeps what there was before the failure; `meta` sets fields of the result's `Meta`, such as `sandbox`.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        suggestions: Sequence[str] = (),
        detail: Any = None,
        retryable: bool | None = None,
        data: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.suggestions = tuple(suggestions)
        self.detail = detail
        self.retryable = TRAITS[code].retryable if retryable is None else retryable
        self.data = data
        self.meta = meta


LONGEST_CRASH = 4_000


def describe_crash(problem: BaseException) -> str:
    """The exception's type and message, bounded in length; total, even if its `__str__` raises."""
    try:
        message = str(problem)
    except Exception:
        message = "(its message cannot be shown)"
    if len(message) > LONGEST_CRASH:
        message = f"{message[:LONGEST_CRASH]}… ({len(message)} characters)"
    return f"{type(problem).__name__}: {message}"


LONGEST_TRACEBACK = 16_000


def describe_traceback(problem: BaseException) -> str:
    """The traceback, for logs and the record; bounded in length, its end is kept."""
    text = "".join(traceback.format_exception(problem, limit=-50))
    return text if len(text) <= LONGEST_TRACEBACK else f"…{text[-LONGEST_TRACEBACK:]}"


class ToolreeveError(Exception):
    """The library was misused: a bad argument to a constructor, a bad configuration. `code` is for the command line."""

    code = ErrorCode.INVALID_PARAMS


class ConfigError(ToolreeveError):
    """A configuration file, variable or flag is wrong; the message names the place, the key and the fix."""

    def __init__(
        self, problem: str, *, source: str | Path, line: int | None = None, key: str = "", fix: str = ""
    ) -> None:
        self.problem = problem
        self.source = str(source)
        self.line = line
        self.key = key
        self.fix = fix
        place = self.source if line is None else f"{self.source}:{line}"
        named = f"{key}: " if key else ""
        remedy = f"\n  fix: {fix}" if fix else ""
        super().__init__(f"{place}: {named}{problem}{remedy}")


class ConfigErrors(ToolreeveError):
    """All problems of a configuration at once."""

    def __init__(self, problems: Sequence[ConfigError]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
