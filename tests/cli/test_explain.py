import json
import os

from tests.cli.conftest import Shell


def test_each_value_gets_a_line_of_json_in_order(shell: Shell) -> None:
    (shell.workspace / "a.txt").write_text("")
    values = ["a.txt", "../x", "/proc/self/root/etc/passwd", "new/../a.txt", ".env"]

    lines = [json.loads(line) for line in shell.run("explain", "path", *values).out.splitlines()]

    assert [line["value"] for line in lines] == values
    assert [line["decision"] for line in lines] == ["allow", "deny", "deny", "deny", "deny"]
    assert lines[0]["resolved"] == os.path.realpath("a.txt")
    assert all(line["reason"] for line in lines)


def test_values_are_read_from_standard_input_whatever_bytes_they_are(shell: Shell) -> None:
    printed = shell.spawn("explain", "path", "-", stdin=b"a.txt\n\xff\xfe\n\n/etc/passwd")

    lines = [json.loads(line) for line in printed.out.splitlines()]

    assert printed.status == 0
    assert [line["decision"] for line in lines][-1] == "deny"
    assert len(lines) == 4
