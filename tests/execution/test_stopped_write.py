import pytest

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.execution.stopped_write import stopped_write


@pytest.mark.parametrize(
    ("printed", "path"),
    [
        ("touch: cannot touch 'PWN': Read-only file system\n", "PWN"),
        ("bash: line 1: out.txt: Read-only file system\n", "out.txt"),
        ("sed: couldn't open file README.md: Read-only file system\n", "README.md"),
        ("OSError: [Errno 30] Read-only file system: 'src/a b.py'\n", "src/a b.py"),
        ("Error: EROFS: read-only file system, open '/work/x.json'\n", "/work/x.json"),
        ("error: Read-only file system (os error 30)\n", "a file"),
        ("grep: no match\n", ""),
    ],
)
def test_the_file_that_a_program_could_not_write_is_found_in_what_it_printed(printed: str, path: str) -> None:
    assert stopped_write(ToolError(ErrorCode.TOOL_EXEC, "exit code 1", data={"stderr": printed})) == path


def test_an_error_without_output_stopped_no_write() -> None:
    assert stopped_write(ToolError(ErrorCode.TIMEOUT, "the tool did not finish")) == ""
