import pytest

from toolreeve.core.errors import ErrorCode, ToolError
from toolreeve.execution.stopped import stopped_read, stopped_write


@pytest.mark.parametrize(
    ("printed", "path"),
    [
        ("touch: cannot touch 'PWN': Read-only file system\n", "PWN"),
        ("bash: line 1: out.txt: Read-only file system\n", "out.txt"),
        ("sed: couldn't open file README.md: Read-only file system\n", "README.md"),
        ("OSError: [Errno 30] Read-only file system: 'src/a b.py'\n", "src/a b.py"),
        ("Error: EROFS: read-only file system, open '/project/x.json'\n", "/project/x.json"),
        ("error: Read-only file system (os error 30)\n", "a file"),
        ("grep: no match\n", ""),
    ],
)
def test_the_file_that_a_program_could_not_write_is_found_in_what_it_printed(printed: str, path: str) -> None:
    assert stopped_write(ToolError(ErrorCode.TOOL_EXEC, "exit code 1", data={"stderr": printed})) == path


def test_an_error_without_output_stopped_no_write() -> None:
    assert stopped_write(ToolError(ErrorCode.TIMEOUT, "the tool did not finish")) == ""


@pytest.mark.parametrize(
    ("printed", "named"),
    [
        ("cat: secrets.yaml: Permission denied\n", "secrets.yaml"),
        ("grep: ./a/b.pem: Permission denied\ngrep: ./.secrets: Permission denied\n", "./a/b.pem, ./.secrets"),
        ("PermissionError: [Errno 13] Permission denied: 'conf/credentials.json'\n", "conf/credentials.json"),
        ("Error: EACCES: permission denied, open '/project/x.tfstate'\n", "/project/x.tfstate"),
        ('error: open("secrets.yaml"): Permission denied\n', "secrets.yaml"),
        ("mv: cannot move 'secrets.yaml' to 'x': Device or resource busy\n", "secrets.yaml"),
    ],
)
def test_the_sensitive_files_that_a_program_could_not_read_are_named(printed: str, named: str) -> None:
    why = stopped_read(ToolError(ErrorCode.TOOL_EXEC, "exit code 1", data={"stderr": printed}))

    assert why.startswith(f"it uses {named}: ")


@pytest.mark.parametrize("printed", ["cat: /root/x: Permission denied\n", "secrets.yaml: 3 findings\n", ""])
def test_other_failures_are_not_taken_for_a_hidden_file(printed: str) -> None:
    assert stopped_read(ToolError(ErrorCode.TOOL_EXEC, "exit code 1", data={"stderr": printed})) == ""
