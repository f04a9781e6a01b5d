"""The one table of error codes."""

from toolreeve.core.errors import TRAITS, ErrorCode, ExitStatus

RECOVERABLE = {"E_FILE_NOT_FOUND", "E_DIR_NOT_FOUND", "E_PATH_NOT_FOUND"}
FATAL = {
    "E_PERMISSION", "E_CMD_NOT_ALLOWED", "E_PATH_FORBIDDEN", "E_WRITE_DISABLED", "E_URL_FORBIDDEN", "E_DENIED",
    "E_APPROVAL_DENIED", "E_APPROVAL_TIMEOUT", "E_BUDGET", "E_TOOL_CHANGED",
}  # fmt: skip


def test_every_code_is_in_the_table() -> None:
    assert set(TRAITS) == set(ErrorCode)


def test_the_documented_codes_have_the_documented_class() -> None:
    assert {str(code) for code, traits in TRAITS.items() if traits.recoverable} == RECOVERABLE
    assert {str(code) for code, traits in TRAITS.items() if traits.severity == "fatal"} == FATAL


def test_a_refusal_is_never_worth_a_retry() -> None:
    assert not any(traits.retryable for traits in TRAITS.values() if traits.severity == "fatal")


def test_no_failure_exits_like_a_success() -> None:
    assert all(traits.exit_status != ExitStatus.OK for traits in TRAITS.values())
